//! Finds and holds the best setting of a training job while it runs.
//!
//! A [`Tuner`] takes events (energy, progress, an applied setting) and returns what to set. It waits for a steady
//! load, measures the reference, lets a search strategy try settings, holds the best one and watches it. When the
//! load changes it starts again with a reference of the new load: a reference measured at the tuned setting would
//! lower the setting further each time.
//!
//! It asks only for points of its space, one at a time, ends every search, and never overwrites a setting that
//! somebody else changed. It has no clock, thread or device of its own.

mod drift;
mod job;
mod load;
mod load_change;
mod monitor;
mod noise;
mod notice;
mod outcome;
mod question;
mod request;
mod series;
mod space;
mod tuner;
mod window;

pub use job::TunedJob;
pub use notice::{EarlyStop, GiveUpReason, PROGRESS_HELP, TuneNotice};
pub use outcome::{ExploringCost, LoadOutcome, RatioInterval, Savings, TuneOutcome};
pub use question::{find_unsupported_flag, needs_progress, progress_requirement};
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
    /// The objective and its limits.
    pub question: Criteria,
    /// The search strategy.
    pub strategy: StrategyName,
    /// The number of devices of the job.
    pub gpus: u64,
    /// The time from a change of the setting to the first reading that contains only the new one.
    pub settle: Seconds,
    /// The largest cost of exploring, as a share of the job's time or energy.
    pub budget: Ratio,
    /// The length of the job.
    pub job: JobLength,
    /// The time after which a held choice is searched for again.
    pub retune_every: Option<Seconds>,
    /// The choice of an earlier run.
    pub remembered: Option<RememberedChoice>,
    /// The sum of the lowest caps of all devices, where the cap is the only knob.
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

/// The choice of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RememberedChoice {
    /// The chosen point of the space.
    pub point: usize,
    /// The relative improvement of the objective over the reference.
    pub gain: Ratio,
    /// The expected relative distance from the true best setting.
    pub expected_regret: Option<Ratio>,
}

/// An event of a job. Times count from its start; a reading may arrive some time after its own.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneEvent {
    /// The energy counters of all devices were read.
    Energy {
        /// The time of the reading.
        at: Seconds,
        /// The energy of all devices, since any origin.
        total: Joules,
    },
    /// The job reported its progress.
    Progress {
        /// The time of the report.
        at: Seconds,
        /// The number of items since the start of the job, which never falls.
        total: f64,
    },
    /// The job entered another phase: the outermost one that it has begun and not ended.
    Phase(Option<String>),
    /// A point that the tuner asked for is set.
    Applied(usize),
    /// A point that the tuner asked for cannot be set.
    Rejected {
        /// The point.
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
    /// The tuner holds a setting.
    Settled,
}
