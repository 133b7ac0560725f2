//! The energy of a machine from an external meter, which is slow and shows its values late.
//!
//! A value of a meter is the mean over an averaging time that ended some time before the value could be read. Both times
//! are unknown for most meters. They are estimated from the fast sensors of the GPUs and the processors, whose power is a
//! part of what the meter measures: for each pair of delay and averaging time, the meter's values are compared with means
//! of the fast power over the times that they would cover. What is left uncertain is averaged over, so that the delay and
//! the averaging are part of the energy's interval.

mod alignment;
#[cfg(test)]
mod averaging_tests;
mod calibration;
mod counter;
mod curve;
mod energy;
mod fast_power;
mod line_fit;
mod samples;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

pub use alignment::Alignment;
pub use calibration::{
    CalibrationError, CalibrationFit, CalibrationLine, CalibrationPower, calibrate,
};
pub use energy::{MeterCheck, MeterEnergy, MeterEnergyError, MeterMethod, meter_energy};
pub use fast_power::FastPower;
pub use samples::{MeterBehaviour, meter_behaviour};
