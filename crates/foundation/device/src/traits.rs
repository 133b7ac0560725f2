//! The two faces of a device.

use crate::{
    Applied, Descriptor, Drained, Knob, PowerLimits, ReadError, Reading, SensorKind, Settings,
    WriteError,
};

/// A device that can be read.
pub trait Device {
    /// What it is and offers.
    fn descriptor(&self) -> &Descriptor;

    /// The newest value of a sensor; of a buffer, the newest sample.
    fn read(&mut self, sensor: SensorKind) -> Result<Reading, ReadError>;

    /// Everything that the driver's buffer has gathered since the last drain.
    fn drain(&mut self) -> Result<Drained, ReadError> {
        Err(ReadError::Unsupported(SensorKind::BufferedPower))
    }

    /// The power limits, requested, enforced and default apart.
    fn power_limits(&mut self) -> Result<PowerLimits, ReadError>;

    /// What is set now, as far as it can be told: a knob that is not named is at its default, or has no
    /// getter.
    fn settings(&mut self) -> Result<Settings, ReadError> {
        Ok(Settings {
            power_cap: Some(self.power_limits()?.requested),
            ..Settings::default()
        })
    }
}

/// The right to set a device: the device itself in a simulation, a guard's client for a real one.
pub trait Actuator {
    /// Brings the named knobs to the wanted state and says what is in force now. All values are
    /// checked before the first is written.
    fn apply(&mut self, settings: &Settings) -> Result<Applied, WriteError>;

    /// Frees a knob: back to the device's default. What was set before it may be unknown (NVML cannot tell
    /// a locked clock), so this is how a lock is undone.
    fn reset(&mut self, knob: Knob) -> Result<(), WriteError>;
}
