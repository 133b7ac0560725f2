//! `hold`: inference under a power cap, in virtual time on simulated GPUs.

mod simulated;

pub use simulated::{Conditions, Disturbance, Held, Rig, Sensor, Sighting};
