//! What a run in virtual time is made under.

use sweetspot_quantity::{Ratio, Seconds, Watts};

use crate::sim_workload::Arrivals;

/// How the holder reads power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sensor {
    /// The mean of the last second, ten times a second, a tenth of a second late.
    Averaged,
    /// The driver's buffer of 20 ms samples, emptied every half second.
    Buffered,
}

/// Something that happens in the middle of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// Another cap.
    Cap(Watts),
    /// From now on an item is so many times the work for the device, and as much for the host as before.
    Heavier(Ratio),
    /// One reading is so high.
    FalseSpike(Watts),
    /// The sensor says nothing, or speaks again.
    Silence(bool),
}

/// What a run is made under.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// How long.
    pub time: Seconds,
    /// Of what differs from run to run and from batch to batch.
    pub seed: u64,
    /// How power is read.
    pub sensor: Sensor,
    /// How requests come; the next is there whenever the last is answered where nothing is said.
    pub arrivals: Option<Arrivals>,
    /// What happens meanwhile, by its time.
    pub script: Vec<(Seconds, Disturbance)>,
    /// Whether power and settings over time are kept.
    pub keep: bool,
}

impl Conditions {
    /// Nothing happens, and nothing is kept.
    pub fn steady(time: Seconds, seed: u64) -> Self {
        Self {
            time,
            seed,
            sensor: Sensor::Averaged,
            arrivals: None,
            script: Vec::new(),
            keep: false,
        }
    }
}
