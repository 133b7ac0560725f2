//! Waits between the runs of a sweep until the GPUs are cool.

use std::time::{Duration, Instant};

use sweetspot_device::{Amount, SensorKind};
use sweetspot_quantity::Celsius;
use sweetspot_study::Configuration;

use super::SweepError;
use super::runner::SweepRunner;
use crate::SessionError;
use crate::host::{DevicesError, Gpu};

/// How long a GPU may take to cool down before the sweep fails.
const COOLING_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// The interval between two checks of the temperature.
const TEMPERATURE_INTERVAL: Duration = Duration::from_millis(500);

impl SweepRunner<'_, '_> {
    /// Waits until every GPU of the job is cool enough.
    pub(super) fn wait_until_cool(
        &mut self,
        configuration: &Configuration,
    ) -> Result<(), SessionError> {
        let Some(wanted) = self.real.cool_to else {
            return Ok(());
        };
        let start = Instant::now();
        for gpu in self.real.job_gpus(configuration) {
            let mut gpu = gpu.reopen()?;
            loop {
                let temperature = read_temperature(&mut gpu)?;
                if temperature <= wanted {
                    break;
                }
                if start.elapsed() > COOLING_TIMEOUT {
                    return Err(SweepError::TooHot {
                        device: gpu.descriptor().name.clone(),
                        temperature,
                        wanted,
                        minutes: COOLING_TIMEOUT.as_secs() / 60,
                    }
                    .into());
                }
                self.signals
                    .wait_until(Instant::now() + TEMPERATURE_INTERVAL)?;
            }
        }
        Ok(())
    }
}

/// Reads the temperature of a GPU.
fn read_temperature(gpu: &mut Gpu) -> Result<Celsius, DevicesError> {
    let reading = gpu.read(SensorKind::Temperature);
    match reading.map(|reading| reading.amount) {
        Ok(Amount::Temperature(temperature)) => Ok(temperature),
        _ => Err(DevicesError::NotSupported {
            device: gpu.descriptor().name.clone(),
            problem:
                "the temperature cannot be read, so the sweep cannot wait until the GPU is cool"
                    .to_owned(),
        }),
    }
}
