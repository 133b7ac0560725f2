//! The conditions of a simulated run of `hold`: how long it lasts, how requests arrive, and what disturbs it.

use sweetspot_control::tune::SettingsScope;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::Arrivals;

/// The kind of simulated power sensor that the control algorithm reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sensor {
    /// A sensor that shows, ten times a second, the mean power of a whole second, 0.1 s late.
    Averaged,
    /// A driver's buffer of 20 ms samples, which is read every half second.
    Buffered,
    /// The power that `nvidia-smi` shows on a Pascal GPU: a new value every 20 ms, the mean of the 10 ms before it,
    /// without delay.
    Instant,
}

/// A disturbance of the simulated run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disturbance {
    /// The power cap changes to this value.
    Cap(Watts),
    /// From now on each item takes the device this many times as much work; the work for the host stays the same.
    Heavier(Ratio),
    /// One sensor reading has this wrong value.
    FalseSpike(Watts),
    /// The sensor stops giving readings (`true`) or resumes (`false`).
    Silence(bool),
}

/// How the total power cap is divided among the GPUs of a simulated job.
#[derive(Clone, Debug, PartialEq)]
pub enum CapsOfGpus {
    /// As `hold` divides it.
    Divided(SettingsScope),
    /// Each GPU has this cap.
    Fixed(Vec<Watts>),
}

/// The conditions of a simulated run of `hold`: how long it lasts, how requests arrive, and what disturbs it.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// How long the simulated run lasts.
    pub time: Seconds,
    /// The seed of the random differences between runs and between batches.
    pub seed: u64,
    /// The kind of power sensor that the control algorithm reads.
    pub sensor: Sensor,
    /// How requests arrive; `None` means a closed loop, in which a request is always waiting.
    pub arrivals: Option<Arrivals>,
    /// The disturbances, each with the time at which it happens.
    pub script: Vec<(Seconds, Disturbance)>,
    /// Whether the outcome includes power and settings over time.
    pub keep_samples: bool,
    /// Whether the outcome includes every reading that the control algorithm received.
    pub keep_readings: bool,
    /// How the total power cap is divided, if the program runs on several GPUs.
    pub caps_of_gpus: CapsOfGpus,
}

impl Conditions {
    /// Conditions without disturbances and without samples; requests are always waiting.
    pub fn steady(time: Seconds, seed: u64) -> Self {
        Self {
            time,
            seed,
            sensor: Sensor::Averaged,
            arrivals: None,
            script: Vec::new(),
            keep_samples: false,
            keep_readings: false,
            caps_of_gpus: CapsOfGpus::Divided(SettingsScope::Each),
        }
    }
}
