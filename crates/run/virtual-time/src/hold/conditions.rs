//! The conditions of a simulated hold.

use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::Arrivals;

/// The sensor that the holder reads power from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sensor {
    /// The mean of the last second, ten times a second, a tenth of a second late.
    Averaged,
    /// The driver's buffer of 20 ms samples, emptied every half second.
    Buffered,
}

/// Something that happens during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The cap changes.
    Cap(Watts),
    /// From now on an item is this many times the work for the device; its work for the host stays.
    Heavier(Ratio),
    /// One reading has this value.
    FalseSpike(Watts),
    /// The sensor stops (true) or resumes (false) giving readings.
    Silence(bool),
}

/// The conditions of a simulated hold.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// The length of the run.
    pub time: Seconds,
    /// The seed of what differs from run to run and from batch to batch.
    pub seed: u64,
    /// The power sensor.
    pub sensor: Sensor,
    /// How requests arrive; if absent, in a closed loop.
    pub arrivals: Option<Arrivals>,
    /// What happens during the run, with its time.
    pub script: Vec<(Seconds, Disturbance)>,
    /// Whether power and settings over time are kept.
    pub keep_samples: bool,
}

impl Conditions {
    /// Conditions without disturbances; samples are not kept.
    pub fn steady(time: Seconds, seed: u64) -> Self {
        Self {
            time,
            seed,
            sensor: Sensor::Averaged,
            arrivals: None,
            script: Vec::new(),
            keep_samples: false,
        }
    }
}
