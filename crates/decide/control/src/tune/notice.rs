//! The notices of a tuner.

use std::fmt::{Display, Formatter};

use sweetspot_device::Knob;
use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::KnobChoice;
use crate::limit::LoadLimit;

/// A message for the user about the progress of tuning.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneNotice {
    /// The job has not reported any progress.
    NoProgress {
        /// The time since the start of the job.
        waited: Seconds,
        /// The objective or limit that needs progress.
        needed_for: String,
    },
    /// The job has reported no progress for this time.
    ProgressStalled(Seconds),
    /// The job reports progress again.
    ProgressResumed,
    /// The load has not become steady within this time.
    Unsteady(Seconds),
    /// The device rejected a setting.
    SettingRejected {
        /// The name of the rejected setting, such as `180 W`.
        label: String,
        /// The error message of the device.
        reason: String,
    },
    /// The tuner chose the knob to tune for a load.
    KnobChosen(KnobChoice),
    /// The device rejected a setting of the chosen knob, so the other one is tuned.
    OtherKnob {
        /// The knob that cannot be set.
        rejected: Knob,
        /// The knob that is tuned in its place.
        tuned: Knob,
        /// The error message of the device.
        reason: String,
    },
    /// The load changed after a setting had been chosen.
    LoadChanged {
        /// The relative change of items per second, if known.
        rate: Option<Ratio>,
        /// The relative change of the job's power.
        power: Ratio,
    },
    /// The job entered this phase, or left all phases, and is tuned as another load.
    PhaseChanged(Option<String>),
    /// The time [`super::TuneConfig::retune_every`] has passed since the choice, so the search is repeated.
    RetuneDue,
    /// Exploring ended before the strategy had converged.
    StoppedEarly(EarlyStop),
    /// The setting of this name, chosen in an earlier run, is as good as it was then.
    RememberedConfirmed(String),
    /// The setting of this name, chosen in an earlier run, is not as good as it was then.
    RememberedNotConfirmed(String),
    /// The tuner chose a setting and applied it.
    Holding {
        /// The name of the chosen setting, such as `180 W`.
        label: String,
        /// Whether the setting is the reference, because no other one is better.
        nothing_better: bool,
    },
    /// A setting of its own is looked for on each GPU, which takes about this time.
    Balancing(Seconds),
    /// Each GPU has a setting of its own.
    Balanced {
        /// The name of the settings, such as `215/180 W`.
        label: String,
        /// The share of the energy that they save compared with the setting for all GPUs.
        saved: Ratio,
    },
    /// The GPUs keep one setting for all, for this reason.
    NotBalanced(BalanceFailure),
    /// No tried setting meets the limits, so the reference stays set.
    OutsideLimits,
    /// The tuner stopped tuning for this reason.
    GaveUp(GiveUpReason),
}

/// The reason why the GPUs of a job get no settings of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceFailure {
    /// No GPU is so much faster than the others that slowing it down saves energy.
    NothingToSpare,
    /// The settings that were found made the job slower.
    Slower,
    /// The rest of the job is too short.
    TooShort,
}

/// The reason why exploring ended before the strategy had converged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStop {
    /// The maximum time for exploring is over.
    Time,
    /// Exploring has cost as much time or energy as [`super::TuneConfig::budget`] allows.
    Budget,
    /// Exploring used too much energy beyond what the best setting needs.
    Energy,
}

/// The reason why a tuner stopped tuning.
#[derive(Clone, Debug, PartialEq)]
pub enum GiveUpReason {
    /// The devices draw less than the lowest power cap, so a cap has no effect.
    CapDoesNotBind {
        /// The mean power of all devices together.
        power: Watts,
        /// The sum of the lowest power caps of all devices.
        lowest: Watts,
        /// Whether the user can tune the core clock instead.
        suggests_clocks: bool,
    },
    /// No setting can save energy under this load, for this reason.
    NothingHelps(LoadLimit),
    /// The job is so short that exploring would cost more than it saves.
    TooShort {
        /// The expected duration of the whole job.
        time: Seconds,
    },
    /// Measurement windows at the same setting differ too much, by this share.
    TooNoisy(Ratio),
    /// The device rejected several settings, the last one with this error message.
    SettingsRejected(String),
    /// Another program changed a setting of a device; the text says which one.
    ChangedExternally(String),
    /// A device or a rank of the job was lost; the text says which one.
    Lost(String),
}

impl Display for GiveUpReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CapDoesNotBind {
                power,
                lowest,
                suggests_clocks,
            } => {
                write!(
                    f,
                    "the cap does not bind: the job draws {power:.0}, and the lowest cap of {lowest:.0} changes nothing"
                )?;
                match suggests_clocks {
                    true => f.write_str("; the knob core-clock can save energy here"),
                    false => Ok(()),
                }
            }
            Self::NothingHelps(limit) => KnobChoice::Nothing(*limit).fmt(f),
            Self::TooShort { time } => write!(
                f,
                "the job is too short for exploring to pay off: it takes about {time:.0}; to tune it nevertheless, raise the exploration budget"
            ),
            Self::TooNoisy(noise) => write!(
                f,
                "the job is too uneven to compare settings: measurements at one setting differ by {:.0} %",
                noise.get() * 100.0
            ),
            Self::SettingsRejected(why) => write!(f, "the device rejected several settings: {why}"),
            Self::ChangedExternally(what) => {
                write!(f, "tuning stops, because a setting was changed: {what}")
            }
            Self::Lost(what) => write!(
                f,
                "tuning stops, and the other GPUs get their default settings: {what}"
            ),
        }
    }
}

impl Display for TuneNotice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoProgress { waited, needed_for } => write!(
                f,
                "no progress was found in the first {waited:.0}, and {needed_for} needs it. The job goes on, and its output is still searched. {PROGRESS_HELP}"
            ),
            Self::ProgressStalled(time) => write!(
                f,
                "no progress for {time:.0}: tuning pauses until progress resumes"
            ),
            Self::ProgressResumed => f.write_str("progress resumed: tuning continues"),
            Self::Unsteady(time) => write!(
                f,
                "the load is not steady after {time:.0}: tuning continues with longer measurements"
            ),
            Self::SettingRejected { label, reason } => {
                write!(f, "the device rejected {label}, which is not tried again: {reason}")
            }
            Self::KnobChosen(choice) => choice.fmt(f),
            Self::OtherKnob {
                rejected,
                tuned,
                reason,
            } => write!(
                f,
                "the {rejected} cannot be set, so the {tuned} is tuned: {reason}"
            ),
            Self::LoadChanged { rate, power } => {
                let signed = |ratio: &Ratio| format!("{:+.0} %", ratio.get() * 100.0);
                f.write_str("the load changed (")?;
                if let Some(rate) = rate {
                    write!(f, "items per second {}, ", signed(rate))?;
                }
                write!(f, "power {}): tuning starts again", signed(power))
            }
            Self::PhaseChanged(Some(name)) => write!(
                f,
                "the job entered the phase '{name}', which is tuned separately"
            ),
            Self::PhaseChanged(None) => f.write_str(
                "the job has left its named phases: work outside phases is tuned separately",
            ),
            Self::RetuneDue => {
                f.write_str("the time between two searches has passed: tuning starts again")
            }
            Self::StoppedEarly(EarlyStop::Time) => {
                f.write_str("the time for exploring is over: the job continues at the best setting so far")
            }
            Self::StoppedEarly(EarlyStop::Budget) => {
                f.write_str("exploring has used its budget: the job continues at the best setting so far")
            }
            Self::StoppedEarly(EarlyStop::Energy) => f.write_str(
                "exploring used 2 % of the job's energy more than the best setting: the job continues at the best setting so far",
            ),
            Self::RememberedConfirmed(label) => {
                write!(f, "{label}, the choice of an earlier run, is as good as before")
            }
            Self::RememberedNotConfirmed(label) => write!(
                f,
                "{label}, the choice of an earlier run, is not as good as before: other settings are tried"
            ),
            Self::Holding {
                label,
                nothing_better: true,
            } => write!(
                f,
                "no setting is better than the reference: the job continues at {label}"
            ),
            Self::Holding { label, .. } => write!(f, "the job continues at {label}"),
            Self::Balancing(time) => write!(
                f,
                "for about {time:.0}, each GPU is slowed down as far as the job stays as fast: a GPU that waits for a slower one wastes energy"
            ),
            Self::Balanced { label, saved } => write!(
                f,
                "each GPU has a setting of its own, and the job is as fast as before for {:.1} % less energy: {label}",
                saved.get() * 100.0
            ),
            Self::NotBalanced(BalanceFailure::NothingToSpare) => f.write_str(
                "the GPUs keep one setting for all: none is so much faster that slowing it down saves energy",
            ),
            Self::NotBalanced(BalanceFailure::Slower) => f.write_str(
                "the GPUs keep one setting for all: with settings of their own the job was slower",
            ),
            Self::NotBalanced(BalanceFailure::TooShort) => f.write_str(
                "the GPUs keep one setting for all: the rest of the job is too short to find one for each",
            ),
            Self::OutsideLimits => {
                f.write_str("no tried setting meets the limits: the job continues at the reference")
            }
            Self::GaveUp(why) => why.fmt(f),
        }
    }
}

/// Help text on how a job reports its progress.
pub const PROGRESS_HELP: &str = "If the program prints its progress, give a pattern for it: --progress 'step ([0-9]+)' for a count, --progress 'images/sec: ([0-9.]+)' for a rate. Otherwise call `sweetspot.progress(items=N)` after each step in Python, `sweetspot_progress` in C or `Writer::progress` in Rust (docs/reference/link.md). The objective power needs no progress";
