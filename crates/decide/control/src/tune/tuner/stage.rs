//! The stages of a tuner.

use sweetspot_quantity::Seconds;

use super::super::load::Activity;
use super::super::load_change::LoadLevel;
use super::super::notice::GiveUpReason;
use super::super::window::{TuneWindow, WindowPurpose};

/// What a tuner is doing or waiting for.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The tuner has not asked for any setting yet.
    New,
    /// The tuner asked the caller to set a point and waits for the result.
    Setting { point: usize, task: Task },
    /// The tuner waits for a steady load at the reference.
    Waiting { since: f64 },
    /// The tuner measures at a point; readings before `from` are ignored.
    Measuring { point: usize, task: Task, from: f64 },
    /// The chosen setting is set, and the load is watched.
    Holding(HeldChoice),
    /// The job reports no progress; when progress resumes, the tuner returns to this earlier stage.
    Stalled(Box<Stage>),
    /// The tuner stopped tuning.
    GaveUp { at: Seconds, reason: GiveUpReason },
}

/// The purpose for which a point is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The first measurement of the reference.
    Reference,
    /// A measurement at the lowest power cap although the mean power is below that cap: peaks may still reach it.
    Probe,
    /// A measurement of a setting that the strategy proposes or that an earlier run chose.
    Try,
    /// A check before the recommendation becomes the choice: a measurement of a neighbouring setting, or of the
    /// reference again.
    Check,
    /// A measurement of the reference on a warm chip, from which savings are computed.
    Recheck,
    /// A measurement of settings that differ between the GPUs, or of the setting for all GPUs before it.
    Balance,
    /// The point is the choice and stays set for the rest of the load.
    Hold,
}

/// A chosen setting while it is set, and the usual power and throughput of the load.
#[derive(Clone, Debug)]
pub(super) struct HeldChoice {
    /// The time at which the choice was set, in seconds since the start of the job.
    pub(super) since: f64,
    /// The start of the present measurement window, in seconds since the start of the job.
    pub(super) from: f64,
    /// The usual power and throughput of the load; absent before the first measurement window.
    pub(super) usual: Option<LoadLevel>,
    /// The latest consecutive measurement windows that differ from the usual level.
    pub(super) deviating: Vec<TuneWindow>,
}

impl Task {
    /// The purpose of the measurement window in which this task is done.
    pub(super) const fn purpose(self, is_reference: bool) -> WindowPurpose {
        match self {
            Self::Reference | Self::Recheck => WindowPurpose::Reference,
            Self::Check if is_reference => WindowPurpose::Reference,
            Self::Probe | Self::Try | Self::Check | Self::Balance => WindowPurpose::Explore,
            Self::Hold => WindowPurpose::Hold,
        }
    }
}

impl Stage {
    /// The activity to which the time and energy of this stage are assigned.
    pub(super) fn activity(&self) -> Option<Activity> {
        match self {
            Self::New | Self::Stalled(_) => None,
            Self::Waiting { .. }
            | Self::Setting {
                task: Task::Reference,
                ..
            } => Some(Activity::Waiting),
            Self::Measuring {
                task: Task::Reference,
                ..
            } => Some(Activity::Reference),
            Self::Setting { .. } | Self::Measuring { .. } => Some(Activity::Exploring),
            Self::Holding(_) => Some(Activity::Holding),
            // Consumption at a setting that somebody else made is not assigned to the tuner.
            Self::GaveUp {
                reason: GiveUpReason::ChangedExternally(_),
                ..
            } => None,
            Self::GaveUp { .. } => Some(Activity::Reference),
        }
    }

    /// Restarts the present measurement window at this time.
    pub(super) fn restart_window(&mut self, at: f64) {
        match self {
            Self::Waiting { since } => *since = since.max(at),
            Self::Measuring { from, .. } => *from = from.max(at),
            Self::Holding(choice) => choice.from = choice.from.max(at),
            Self::New | Self::Setting { .. } | Self::Stalled(_) | Self::GaveUp { .. } => {}
        }
    }
}
