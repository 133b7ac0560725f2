//! Reads the sensors and the power cap of a part.

use std::io;

use sweetspot_device::{
    Amount, Descriptor, Device, PowerLimits, ReadError, Reading, SensorKind, Settings,
};
use sweetspot_quantity::Watts;

use crate::error::{counter_error, limits_error, read_error};
use crate::part::{CapFiles, HostPart};
use crate::sysfs::read_number;

/// Reads a number of microwatts.
pub(crate) fn read_watts(path: &std::path::Path) -> io::Result<Watts> {
    Ok(Watts::new(read_number(path)? as f64 / 1e6))
}

impl CapFiles {
    /// The limit that is requested.
    pub fn requested(&self) -> io::Result<Watts> {
        read_watts(&self.limit)
    }

    /// Whether the limit is switched on.
    pub fn is_enabled(&self) -> io::Result<bool> {
        match &self.enabled {
            Some(path) => Ok(read_number(path)? != 0),
            None => Ok(true),
        }
    }
}

impl Device for HostPart {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError> {
        let file = self.file(sensor).ok_or(ReadError::Unsupported(sensor))?;
        let number = read_number(&file.path).map_err(|error| read_error(sensor, &error))?;
        let at = self.clock.now();
        let amount = match sensor {
            SensorKind::EnergyCounter => {
                let energy = self.counter.advance(at, number).map_err(counter_error)?;
                Amount::Energy(energy)
            }
            _ => Amount::Power(Watts::new(number as f64 / 1e6)),
        };
        Ok(Reading {
            source: sensor,
            at,
            amount,
        })
    }

    fn power_limits(&mut self) -> Result<PowerLimits, ReadError> {
        let none = || ReadError::Limits("the device has no power cap".to_owned());
        let cap = self.cap.as_ref().ok_or_else(none)?;
        let requested = cap.requested().map_err(|error| limits_error(&error))?;
        // A twin that is switched off or cannot be read does not lower the cap.
        let twin = cap
            .twin
            .as_ref()
            .filter(|twin| twin.is_enabled().unwrap_or(false));
        let twin = twin.and_then(|twin| twin.requested().ok());
        Ok(PowerLimits {
            requested,
            enforced: twin.map_or(requested, |twin| twin.min(requested)),
            default: self.default_cap().unwrap_or(requested),
        })
    }

    fn cap_is_enabled(&self) -> Option<bool> {
        self.cap.as_ref()?.is_enabled().ok()
    }

    fn settings(&mut self) -> Result<Settings, ReadError> {
        if self.cap.is_none() {
            return Ok(Settings::default());
        }
        Ok(Settings {
            power_cap: Some(self.power_limits()?.requested),
            ..Settings::default()
        })
    }
}
