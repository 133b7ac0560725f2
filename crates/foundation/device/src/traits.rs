//! The traits for reading a device and for setting its knobs.

use crate::{
    AppliedSettings, Descriptor, DrainedSamples, Knob, PowerLimits, ReadError, Reading, SensorKind,
    Settings, ThrottleTimes, UnitUseReading, WriteError,
};

/// A device whose sensors and settings can be read.
pub trait Device {
    /// The device's identity, sensors and knobs.
    fn descriptor(&self) -> &Descriptor;

    /// Reads the newest value of a sensor. For [`SensorKind::BufferedPower`] this is the newest sample.
    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError>;

    /// Reads all samples that the driver has added to its buffer since the last call.
    fn drain(&mut self) -> Result<DrainedSamples, ReadError> {
        Err(ReadError::Unsupported(SensorKind::BufferedPower))
    }

    /// Reads the requested, enforced and default power limit.
    fn power_limits(&mut self) -> Result<PowerLimits, ReadError>;

    /// Reads for how long the device was throttled, by reason; a time that the device cannot report is absent.
    fn throttle_times(&mut self) -> ThrottleTimes {
        ThrottleTimes::default()
    }

    /// Reads the mean use of the device's units since the last call on this open device.
    fn unit_use(&mut self) -> UnitUseReading {
        UnitUseReading::Unsupported
    }

    /// Whether the driver stays loaded while no program uses the device (persistence mode); `None` if unknown.
    fn persistence(&self) -> Option<bool> {
        None
    }

    /// Whether the power cap is switched on; `None` if it cannot be switched off.
    fn cap_is_enabled(&self) -> Option<bool> {
        None
    }

    /// Reads the present settings. A knob without a value is at its default or cannot be read.
    fn settings(&mut self) -> Result<Settings, ReadError> {
        Ok(Settings {
            power_cap: Some(self.power_limits()?.requested),
            ..Settings::default()
        })
    }
}

/// Sets the knobs of a device. A simulated device implements this itself; for a real one, the client of the
/// guard process does.
pub trait Actuator {
    /// Sets knobs and returns the values that the device then enforces. All values are checked before the first is
    /// written.
    fn apply(&mut self, settings: &Settings) -> Result<AppliedSettings, WriteError>;

    /// Writes settings that the device had before, even if it would not support them as new ones, and reads them back.
    fn restore(&mut self, settings: &Settings) -> Result<(), WriteError> {
        self.apply(settings).map(drop)
    }

    /// Switches the power cap on or off, on a device where that can be done. [`Actuator::apply`] switches it on.
    fn enable_cap(&mut self, _on: bool) -> Result<(), WriteError> {
        Err(WriteError::Unsupported(Knob::PowerCap))
    }

    /// Resets a knob to the device's default. This is how a clock is unlocked: NVML cannot report the lock that
    /// was set before.
    fn reset(&mut self, knob: Knob) -> Result<(), WriteError>;

    /// Keeps the driver loaded while no program uses the device (persistence mode), or lets it unload.
    fn set_persistence(&mut self, _on: bool) -> Result<(), WriteError> {
        Err(WriteError::Persistence(
            "the device has no persistence mode".to_owned(),
        ))
    }
}
