//! The result of tuning a job.

use sweetspot_decide::Criteria;
use sweetspot_decide::search::StrategyName;
use sweetspot_device::{Descriptor, Settings};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::{TuneKnob, TuneOutcome};

/// The result of tuning a job, with the settings and devices that were used.
#[derive(Clone, Debug)]
pub struct TunedJob {
    /// The command of the job, or the name of the simulated workload.
    pub workload: String,
    /// The GPUs on which the job ran.
    pub devices: Vec<Descriptor>,
    /// The knob that was tuned.
    pub knob: TuneKnob,
    /// The objective and the limits of the choice.
    pub criteria: Criteria,
    /// The strategy that chose which settings to try.
    pub strategy: StrategyName,
    /// The settings of each point of the search space.
    pub settings: Vec<Settings>,
    /// The name of each point of the search space for display, such as `180 W`.
    pub labels: Vec<String>,
    /// The index of the point that all others were compared with.
    pub reference: usize,
    /// The choices, measurements and notices of the tuner.
    pub tuned: TuneOutcome,
    /// The time from the start to the end of the job.
    pub time: Seconds,
    /// The energy of all GPUs over the job, if it is known.
    pub energy: Option<Joules>,
    /// The number of items that the job processed, if it is known.
    pub items: Option<f64>,
    /// The time at which each workload of a simulated job began, from the start of the job.
    pub begins: Vec<Seconds>,
    /// The total power of all GPUs over time, as pairs of time since the start of the job and power.
    pub power: Vec<(Seconds, Watts)>,
    /// Whether the settings that every device had before the job were restored.
    pub restored: bool,
}

impl TunedJob {
    /// The index of the point that was chosen and set at the end of the job; `None` if no choice was made.
    pub fn choice(&self) -> Option<usize> {
        let last = self.tuned.last_choice().or(self.tuned.loads.last());
        last?.choice
    }

    /// Whether no tried setting met the limits at the end of the job.
    pub fn is_outside_limits(&self) -> bool {
        self.tuned.loads.iter().any(|load| load.outside_limits)
    }

    /// Whether the tuner made a choice (possibly the reference) that stayed set until the end of the job.
    pub fn is_settled(&self) -> bool {
        self.tuned.gave_up.is_none() && !self.tuned.ended_early && !self.is_outside_limits()
    }
}
