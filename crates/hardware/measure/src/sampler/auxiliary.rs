//! Readings other than power and energy.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Amount, Device, Moment, SensorKind, Throttle};
use sweetspot_quantity::{Celsius, Megahertz, Ratio};

/// Utilisation, clocks, temperature and throttle reasons at one moment. A value is absent if the device has
/// no such sensor or its read failed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuxiliaryReadings {
    /// The moment at which the sensors were read.
    pub at: Moment,
    /// The share of recent time in which any kernel ran on the device.
    pub utilisation: Option<Ratio>,
    /// The core clock at this moment.
    pub core_clock: Option<Megahertz>,
    /// The memory clock at this moment.
    pub memory_clock: Option<Megahertz>,
    /// The temperature of the chip.
    pub temperature: Option<Celsius>,
    /// The reasons why the device does not run faster.
    pub throttle: Option<Throttle>,
}

impl AuxiliaryReadings {
    /// Reads these sensors. `at` is stored as the time of the readings.
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
