//! The best setting while a training runs.
//!
//! A [`Tuner`] is told what happens (energy drawn, items done, a setting in force) and says what to set. It
//! waits until the load is steady, measures the reference, lets a search strategy try settings, holds the best
//! one and watches it. When the load changes it begins again, with a reference of the new load: one that was
//! measured at the tuned setting would ratchet downwards.
//!
//! It promises to ask only for places of its space, one at a time, to end every search, and to fight nobody
//! over a setting. It has no clock, thread or device of its own.

mod change;
mod claim;
mod drift;
mod job;
mod load;
mod noise;
mod notice;
mod question;
mod request;
mod series;
mod space;
mod tuner;
mod watch;
mod window;

pub use claim::{Claim, Cost, Share, Tuned, TunedLoad};
pub use job::TunedJob;
pub use notice::{Cut, GaveUp, Notice, WAYS_TO_TELL_PROGRESS};
pub use question::{cannot_answer, needs_progress, progress_is_for};
pub use request::{EarlierChoice, TuneKnob, TuneKnobError, TuneRequest};
pub use space::{TuneSpace, TuneSpaceError};
pub use tuner::Tuner;
pub use window::{Purpose, Window};

use sweetspot_decide::Criteria;
use sweetspot_decide::search::{SearchSpace, StrategyName};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

/// What a tuner works by.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What can be set.
    pub space: SearchSpace,
    /// What each place is called: `180 W`.
    pub labels: Vec<String>,
    /// What is wanted.
    pub question: Criteria,
    /// How it is searched for.
    pub strategy: StrategyName,
    /// Devices of the job.
    pub gpus: u64,
    /// From a change of the setting to the first reading that is of the new one alone.
    pub settle: Seconds,
    /// What exploring may cost, of the job's time or energy.
    pub budget: Ratio,
    /// How long the job is.
    pub job: JobLength,
    /// How long a choice is held before it is looked for again.
    pub retune_every: Option<Seconds>,
    /// What an earlier run chose.
    pub remembered: Option<Remembered>,
    /// The lowest cap, of all devices together, where a cap is all that is set.
    pub lowest_cap: Option<Watts>,
    /// Of random draws.
    pub seed: u64,
}

/// How long a job is, as far as it is known beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum JobLength {
    /// Not at all.
    #[default]
    Unknown,
    /// It does so many items.
    Items(f64),
    /// It takes about this long.
    Time(Seconds),
}

/// The choice of an earlier run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Remembered {
    /// Which.
    pub place: usize,
    /// By how much its objective was better than the reference's, as a fraction.
    pub gain: f64,
    /// By how much it was expected to be worse than the true best.
    pub expected_regret: Option<f64>,
}

/// What happens to a job. Times count from its start; a reading may be told some time after its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The devices have drawn so much, all together.
    Energy {
        /// When that was.
        at: Seconds,
        /// Since any origin.
        total: Joules,
    },
    /// The job has done so many items.
    Progress {
        /// When that was.
        at: Seconds,
        /// Since its start; it never falls.
        total: f64,
    },
    /// The job is in this phase from now on: the outermost one that it has begun and not ended.
    Phase(Option<String>),
    /// A place that was asked for is set.
    Applied(usize),
    /// It cannot be set.
    Refused {
        /// Which.
        place: usize,
        /// What the device says.
        why: String,
    },
    /// Somebody else changed a setting.
    Changed(String),
    /// The job is over.
    Ended,
    /// Nothing; time passes.
    Tick,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Set this place, and say what became of it.
    Set(usize),
    /// Tell the user.
    Say(Notice),
    /// Tell the workload.
    Tell(Tuning),
}

/// What a tuner does to a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tuning {
    /// Nothing.
    Off,
    /// It tries settings.
    Exploring,
    /// It holds one.
    Settled,
}
