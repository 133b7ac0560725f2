//! Finds the best setting of a training job while it runs, and applies it.
//!
//! A [`Tuner`] takes events (energy, progress, an applied setting) and returns what to set. It waits for a steady
//! load, measures the reference, lets a search strategy try settings, applies the best one and watches the load.
//! When the load changes, it measures the reference again at the default setting: with the tuned setting as the
//! reference, the setting would fall further each time.
//!
//! It asks only for points of its search space, one at a time; every search ends; and it never overwrites a setting
//! that somebody else changed. It has no clock, thread or device of its own.

mod criteria;
mod drift;
mod job;
mod load;
mod load_change;
mod monitor;
mod noise;
mod notice;
mod outcome;
mod request;
mod series;
mod space;
mod tuner;
mod window;

pub use criteria::{find_unsupported_flag, needs_progress, progress_requirement};
pub use job::TunedJob;
pub use notice::{EarlyStop, GiveUpReason, PROGRESS_HELP, TuneNotice};
pub use outcome::{ExploringCost, LoadOutcome, RatioInterval, Savings, TuneOutcome};
pub use request::{EarlierChoice, TuneKnob, TuneKnobError, TuneRequest};
pub use space::{TuneSpace, TuneSpaceError};
pub use tuner::Tuner;
pub use window::{TuneWindow, WindowPurpose};

use sweetspot_decide::Criteria;
use sweetspot_decide::search::{SearchSpace, StrategyName};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

/// The configuration of a tuner.
#[derive(Clone, Debug)]
pub struct TuneConfig {
    /// The settings to choose from.
    pub space: SearchSpace,
    /// The name of each point of the space, such as `180 W`.
    pub labels: Vec<String>,
    /// The objective and the limits of the choice.
    pub criteria: Criteria,
    /// The strategy that chooses which settings to try.
    pub strategy: StrategyName,
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The time from a change of the setting to the first reading that is affected by the new setting alone.
    pub settle: Seconds,
    /// The maximum cost of exploring, as a share of the job's time or energy.
    pub budget: Ratio,
    /// The length of the job.
    pub job: JobLength,
    /// The time after which the search is repeated; absent if it is repeated only when the load changes.
    pub retune_every: Option<Seconds>,
    /// The choice of an earlier run of the same job.
    pub remembered: Option<RememberedChoice>,
    /// The sum of the lowest caps of all devices; absent if the cap is not the only knob.
    pub lowest_cap: Option<Watts>,
    /// The seed of random draws.
    pub seed: u64,
}

/// The length of a job, as far as it is known in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum JobLength {
    /// The length is unknown.
    #[default]
    Unknown,
    /// The job processes this many items.
    Items(f64),
    /// The job takes about this time.
    Time(Seconds),
}

/// The choice of an earlier run of the same job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RememberedChoice {
    /// The chosen point of the space.
    pub point: usize,
    /// The relative improvement of the objective over the reference.
    pub gain: Ratio,
    /// By how much the chosen setting was expected to be worse than the true best one, as a fraction.
    pub expected_regret: Option<Ratio>,
}

/// An event of a job. Times count from the start of the job; a reading may arrive later than the time it was taken
/// at.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneEvent {
    /// The energy counters of all devices were read.
    Energy {
        /// The time of the reading.
        at: Seconds,
        /// The energy of all devices since an arbitrary time.
        total: Joules,
    },
    /// The job reported its progress.
    Progress {
        /// The time of the report.
        at: Seconds,
        /// The number of items since the start of the job, which never falls.
        total: f64,
    },
    /// The job entered or left a phase: the outermost phase that it is in now, if any.
    Phase(Option<String>),
    /// A point that the tuner asked for is set.
    Applied(usize),
    /// A point that the tuner asked for cannot be set.
    Rejected {
        /// The index of the point.
        point: usize,
        /// The message of the device.
        reason: String,
    },
    /// Somebody else changed a setting.
    ChangedExternally(String),
    /// The job ended.
    Ended,
    /// Time passed and nothing else happened.
    Tick,
}

/// An action that a tuner asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneAction {
    /// Set this point and report the result as an event.
    Set(usize),
    /// Show this notice to the user.
    Notify(TuneNotice),
    /// Report this state to the workload.
    ReportState(TuningState),
}

/// The state of tuning that a workload can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningState {
    /// The tuner sets nothing.
    Off,
    /// The tuner tries settings.
    Exploring,
    /// The tuner has chosen a setting and applied it.
    Settled,
}
