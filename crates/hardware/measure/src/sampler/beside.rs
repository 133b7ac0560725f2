//! What is kept beside power.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Amount, Device, Moment, SensorKind, Throttle};
use sweetspot_quantity::{Celsius, Megahertz, Ratio};

/// Utilisation, clocks, temperature and throttling at one moment; what is not known is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// When.
    pub at: Moment,
    /// Share of time in which anything ran.
    pub utilisation: Option<Ratio>,
    /// Clock of the cores.
    pub core_clock: Option<Megahertz>,
    /// Clock of the memory.
    pub memory_clock: Option<Megahertz>,
    /// Of the chip.
    pub temperature: Option<Celsius>,
    /// Why it does not run faster.
    pub throttle: Option<Throttle>,
}

impl Beside {
    /// Reads everything that the device has.
    pub fn read(device: &mut dyn Device, at: Moment) -> Self {
        let mut row = Self {
            at,
            utilisation: None,
            core_clock: None,
            memory_clock: None,
            temperature: None,
            throttle: None,
        };
        let sensors = [
            SensorKind::Utilisation,
            SensorKind::CoreClock,
            SensorKind::MemoryClock,
            SensorKind::Temperature,
            SensorKind::ThrottleReasons,
        ];
        for sensor in sensors {
            if device.descriptor().sensor(sensor).is_none() {
                continue;
            }
            match device.read(sensor).map(|reading| reading.amount) {
                Ok(Amount::Share(share)) => row.utilisation = Some(share),
                Ok(Amount::Frequency(clock)) if sensor == SensorKind::CoreClock => {
                    row.core_clock = Some(clock);
                }
                Ok(Amount::Frequency(clock)) => row.memory_clock = Some(clock),
                Ok(Amount::Temperature(degrees)) => row.temperature = Some(degrees),
                Ok(Amount::Throttle(reasons)) => row.throttle = Some(reasons),
                Ok(_) | Err(_) => {}
            }
        }
        row
    }
}
