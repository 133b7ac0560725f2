//! The stages of a tuner.

use sweetspot_quantity::Seconds;

use super::super::load::Activity;
use super::super::load_change::LoadLevel;
use super::super::notice::GiveUpReason;
use super::super::window::{TuneWindow, WindowPurpose};

/// The stage of a tuner.
#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// The tuner has not asked for a point yet.
    New,
    /// The tuner asked for a point and waits for the result.
    Setting { point: usize, task: Task },
    /// The tuner waits for a steady load at the reference.
    Waiting { since: f64 },
    /// The tuner measures a window.
    Measuring { point: usize, task: Task, from: f64 },
    /// The tuner holds the choice.
    Holding(HeldChoice),
    /// The job reports no progress; the tuner then returns to the stage before.
    Stalled(Box<Stage>),
    /// The tuner gave up.
    GaveUp { at: Seconds, reason: GiveUpReason },
}

/// The purpose of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// The first window of the reference.
    Reference,
    /// The lowest cap, where the mean power is below it: peaks may still reach it.
    Probe,
    /// A setting from the strategy or from an earlier run.
    Try,
    /// A neighbour of the answer, or the reference again, before the answer becomes the choice.
    Check,
    /// The reference on a warm chip, which savings are computed from.
    Recheck,
    /// The choice.
    Hold,
}

/// A choice that is held and watched.
#[derive(Clone, Debug)]
pub(super) struct HeldChoice {
    /// The time at which the choice was set.
    pub(super) since: f64,
    /// The start of the present window.
    pub(super) from: f64,
    /// The usual level of the load; unknown before the first window.
    pub(super) usual: Option<LoadLevel>,
    /// The latest consecutive windows that differ from the usual level.
    pub(super) deviating: Vec<TuneWindow>,
}

impl Task {
    pub(super) const fn purpose(self, is_reference: bool) -> WindowPurpose {
        match self {
            Self::Reference | Self::Recheck => WindowPurpose::Reference,
            Self::Check if is_reference => WindowPurpose::Reference,
            Self::Probe | Self::Try | Self::Check => WindowPurpose::Explore,
            Self::Hold => WindowPurpose::Hold,
        }
    }
}

impl Stage {
    /// The activity that the consumption of this stage belongs to.
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
            // The effect of somebody else's setting does not count.
            Self::GaveUp {
                reason: GiveUpReason::ChangedExternally(_),
                ..
            } => None,
            Self::GaveUp { .. } => Some(Activity::Reference),
        }
    }

    /// Discards what was measured before a time in the present window.
    pub(super) fn restart_window(&mut self, at: f64) {
        match self {
            Self::Waiting { since } => *since = since.max(at),
            Self::Measuring { from, .. } => *from = from.max(at),
            Self::Holding(choice) => choice.from = choice.from.max(at),
            Self::New | Self::Setting { .. } | Self::Stalled(_) | Self::GaveUp { .. } => {}
        }
    }
}
