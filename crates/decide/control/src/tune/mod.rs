//! Finds the best setting of a training job while it runs, and applies it.
//!
//! A [`Tuner`] takes events (energy, progress, an applied setting) and returns what to set. It waits for a steady
//! load, measures the reference, lets a search strategy try settings, applies the best one and watches the load.
//! When the load changes, it measures the reference again at the default setting: with the tuned setting as the
//! reference, the setting would fall further each time.
//!
//! It asks only for points of its search space, one at a time; every search ends; and it never overwrites a setting
//! that somebody else changed. It has no clock, thread or device of its own.

mod balance;
mod criteria;
mod drift;
mod job;
mod knob_choice;
mod ladder;
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

pub use criteria::{find_unsupported_criterion, needs_progress, progress_requirement};
pub use job::{PointTable, TunedJob};
pub use knob_choice::KnobChoice;
pub use ladder::{GpuLadder, GpuLadders, fit_to};
pub use notice::{BalanceFailure, EarlyStop, GiveUpReason, PROGRESS_HELP, TuneNotice};
pub use outcome::{
    BalancedPoint, DailySavings, ExploringCost, LoadOutcome, RatioInterval, Savings, TuneOutcome,
};
pub use request::{
    EarlierChoice, SettingsScope, SettingsScopeError, TuneKnob, TuneKnobError, TuneRequest,
};
pub use space::{TuneSpace, TuneSpaceError};
pub use tuner::Tuner;
pub use window::{TuneWindow, WindowPurpose};

use sweetspot_decide::Criteria;
use sweetspot_decide::search::{SearchSpace, StrategyName};
use sweetspot_device::Settings;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::limit::EvidenceSpan;

/// The configuration of a [`Tuner`].
#[derive(Clone, Debug)]
pub struct TuneConfig {
    /// The settings to choose from; the power caps if the tuner chooses the knob.
    pub space: SearchSpace,
    /// The core clocks to choose from in place of the power caps, if the tuner chooses the knob for each load. The first
    /// one is the reference of [`Self::space`], and the others are the points after those of that space.
    pub clocks: Option<SearchSpace>,
    /// Whether the core clock could be tuned instead: the device has one that can be set, and this tuning leaves it alone.
    pub suggests_clocks: bool,
    /// The name of each point of the search space for display, such as `180 W`.
    pub labels: Vec<String>,
    /// The objective and the limits of the choice.
    pub criteria: Criteria,
    /// The strategy that chooses which settings to try.
    pub strategy: StrategyName,
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The settings that each GPU can have by itself; absent if all GPUs get the same setting.
    pub each: Option<GpuLadders>,
    /// The time from a change of the setting until readings are affected by the new setting alone.
    pub settle: Seconds,
    /// The maximum cost of exploring, as a share of the job's time or energy.
    pub budget: Ratio,
    /// The length of the job, as far as it is known.
    pub job: JobLength,
    /// The time after which the search is repeated; absent if it is repeated only when the load changes.
    pub retune_every: Option<Seconds>,
    /// The choice of an earlier run of the same job, which is tried first; absent if there is none.
    pub remembered: Option<RememberedChoice>,
    /// The sum of the lowest power caps of all GPUs; absent if power caps are tuned together with another knob or not at
    /// all.
    pub lowest_cap: Option<Watts>,
    /// The seed of the strategy's random numbers.
    pub seed: u64,
}

/// The length of a job, as far as it is known in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum JobLength {
    /// The length of the job is unknown.
    #[default]
    Unknown,
    /// The job processes this many items.
    Items(f64),
    /// The job takes about this time.
    Time(Seconds),
}

/// The choice of an earlier run of the same job.
#[derive(Clone, Debug, PartialEq)]
pub struct RememberedChoice {
    /// The index of the chosen point in the search space.
    pub point: usize,
    /// The settings of each GPU that were derived from that point; absent if all GPUs had the same setting.
    pub each: Option<Vec<Settings>>,
    /// By how much the objective was better at that point than at the reference, as a share.
    pub gain: Ratio,
    /// By how much the chosen setting was expected to be worse than the true best one, as a share; absent if the
    /// strategy has no model.
    pub expected_regret: Option<Ratio>,
}

/// An event of a job. Times count from the start of the job; a reading may arrive later than the time it was taken
/// at.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneEvent {
    /// The energy counters of all devices were read.
    Energy {
        /// The time at which the counters were read, since the start of the job.
        at: Seconds,
        /// The sum of the energy counters of all devices; only differences between two readings matter.
        total: Joules,
    },
    /// The energy counter of each device was read; sent before [`TuneEvent::Energy`] if there are several devices.
    EnergyOfEach {
        /// The time at which the counters were read, since the start of the job.
        at: Seconds,
        /// The energy counter of each device; only differences between two readings matter.
        totals: Vec<Joules>,
    },
    /// The job reported its progress.
    Progress {
        /// The time at which the job reported, since the start of the job.
        at: Seconds,
        /// The number of items that the job has processed since its start.
        total: f64,
    },
    /// The counters that tell what limits the devices were read.
    Limits(EvidenceSpan),
    /// The job entered or left a phase. The value is the outermost phase that the job is in now; `None` outside all
    /// phases.
    Phase(Option<String>),
    /// The point with this index, which the tuner asked for, is now set on the devices.
    Applied(usize),
    /// A point that the tuner asked for cannot be set.
    Rejected {
        /// The index of the rejected point in the search space.
        point: usize,
        /// The error message of the device.
        reason: String,
    },
    /// Another program changed a setting of a device; the text says which one.
    ChangedExternally(String),
    /// A device or a rank of the job was lost; the text says which one.
    Lost(String),
    /// The job ended.
    Ended,
    /// Time passed without another event; the caller sends it regularly.
    Tick,
}

/// An action that a tuner asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneAction {
    /// Set the point with this index on the devices, and report the result as [`TuneEvent::Applied`] or
    /// [`TuneEvent::Rejected`].
    Set(usize),
    /// Show this notice to the user.
    Notify(TuneNotice),
    /// Report this state to the workload.
    ReportState(TuningState),
}

/// The state of tuning that is reported to the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TuningState {
    /// The tuner has stopped, or has not started, changing settings.
    Off,
    /// The tuner tries settings.
    Exploring,
    /// The tuner has chosen a setting and applied it.
    Settled,
}
