//! Reads what limits a GPU: how long it was throttled, and how much of its units is used.

use std::sync::{Mutex, PoisonError};

use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::gpm::gpm_metrics_get;
use nvml_wrapper::{Device, GpmSample, Nvml};
use sweetspot_device::{ThrottleTimes, UnitUse, UnitUseReading};
use sweetspot_quantity::{Ratio, Seconds};

use crate::raw::{DEVICE_SCOPE, long_field};

/// The id of the NVML field for the time throttled by the power cap.
const POWER_CAP_TIME: u32 = 74;
/// The first driver with the field ids of NVML 13 for the other throttle times.
const RENUMBERED_SINCE: (u32, u32) = (580, 82);

/// The ids of the NVML fields for the times throttled by temperature (by software and by hardware) and by the power
/// brake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThrottleFields {
    software_thermal: u32,
    hardware_thermal: u32,
    power_brake: u32,
}

impl ThrottleFields {
    /// The field ids of a driver. NVIDIA renumbered them, so an id of another driver is a different value; if the
    /// driver's version is unknown, there are none.
    pub(crate) fn of_driver(version: &str) -> Option<Self> {
        let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
        let driver = (parts.next()??, parts.next()??);
        let first = if driver >= RENUMBERED_SINCE { 269 } else { 251 };
        Some(Self {
            software_thermal: first,
            hardware_thermal: first + 1,
            power_brake: first + 2,
        })
    }
}

/// Reads the throttle times; an error of the driver means that a time is unknown.
pub(crate) fn throttle_times(
    nvml: &Nvml,
    device: &Device<'_>,
    fields: Option<ThrottleFields>,
) -> ThrottleTimes {
    let read = |id: u32| {
        let nanos = long_field(nvml, device, id, DEVICE_SCOPE);
        let nanos = nanos.inspect_err(|error| tracing::debug!(id, %error, "no throttle time"));
        Some(Seconds::new(nanos.ok()? as f64 * 1e-9))
    };
    let thermal = fields.and_then(|fields| {
        match (read(fields.software_thermal), read(fields.hardware_thermal)) {
            (Some(software), Some(hardware)) => Some(software + hardware),
            (one, other) => one.or(other),
        }
    });
    ThrottleTimes {
        power_cap: read(POWER_CAP_TIME),
        thermal,
        power_brake: fields.and_then(|fields| read(fields.power_brake)),
    }
}

/// Reads the use of a GPU's units with NVML's performance monitoring (GPM), which compares two samples.
#[derive(Debug, Default)]
pub(crate) struct UnitMonitor {
    // A sample may move to another thread, but must not be used by two at the same time.
    earlier: Mutex<Option<GpmSample<'static>>>,
}

impl UnitMonitor {
    /// Takes a sample and compares it with the one before.
    pub(crate) fn read(&mut self, nvml: &'static Nvml, device: &Device<'static>) -> UnitUseReading {
        match device.gpm_support() {
            Ok(true) => {}
            Ok(false) => return UnitUseReading::Unsupported,
            Err(error) => return failed(&error),
        }
        let earlier = self
            .earlier
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let sample = match device.gpm_sample() {
            Ok(sample) => sample,
            Err(error) => {
                *earlier = None;
                return failed(&error);
            }
        };
        let reading = match earlier.as_ref() {
            None => UnitUseReading::Started,
            Some(earlier) => match unit_use(nvml, earlier, &sample) {
                Ok(mean) => UnitUseReading::Mean(mean),
                Err(error) => failed(&error),
            },
        };
        // The sample before is freed here.
        *earlier = Some(sample);
        reading
    }
}

/// The mean use of the units between two samples.
fn unit_use(
    nvml: &'static Nvml,
    earlier: &GpmSample<'static>,
    later: &GpmSample<'static>,
) -> Result<UnitUse, NvmlError> {
    let metrics = [
        GpmMetricId::SmUtil,
        GpmMetricId::AnyTensorUtil,
        GpmMetricId::DramBwUtil,
    ];
    let values = gpm_metrics_get(nvml, earlier, later, &metrics)?;
    let mut shares = values.into_iter().map(|value| {
        let percent = value.ok()?.value;
        percent
            .is_finite()
            .then(|| Ratio::new((percent / 100.0).clamp(0.0, 1.0)))
    });
    let mut next = || shares.next().flatten();
    Ok(UnitUse {
        cores: next(),
        tensor: next(),
        memory: next(),
    })
}

/// Converts an error: the device has no monitors, or they could not be read this time.
fn failed(error: &NvmlError) -> UnitUseReading {
    tracing::debug!(%error, "the use of the GPU's units is unknown");
    match error {
        NvmlError::NotSupported
        | NvmlError::FailedToLoadSymbol(_)
        | NvmlError::FunctionNotFound => UnitUseReading::Unsupported,
        other => UnitUseReading::Failed(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_throttle_times_depend_on_the_driver() {
        let first = |version| ThrottleFields::of_driver(version).map(|ids| ids.software_thermal);
        assert_eq!(first("580.159.04"), Some(269));
        assert_eq!(first("580.82.07"), Some(269));
        assert_eq!(first("580.65.06"), Some(251));
        assert_eq!(first("535.288.01"), Some(251));
        assert_eq!(first("unknown"), None);
        assert_eq!(first(""), None);
    }
}
