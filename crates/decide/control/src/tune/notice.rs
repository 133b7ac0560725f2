//! The notices of a tuner.

use std::fmt::{Display, Formatter};

use sweetspot_quantity::{Ratio, Seconds, Watts};

/// Something that the user should know.
#[derive(Clone, Debug, PartialEq)]
pub enum TuneNotice {
    /// The job has not reported any progress.
    NoProgress {
        /// The time since the start.
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
        /// The name of the setting.
        label: String,
        /// The message of the device.
        reason: String,
    },
    /// The load changed while a setting was held.
    LoadChanged {
        /// The relative change of items in a second, where known.
        rate: Option<Ratio>,
        /// The relative change of power.
        power: Ratio,
    },
    /// The job entered a phase that is a load of its own.
    PhaseChanged(Option<String>),
    /// The choice was held for the configured time and is searched for again.
    RetuneDue,
    /// Exploring ended before the strategy was done.
    StoppedEarly(EarlyStop),
    /// The choice of an earlier run is as good as it was.
    RememberedConfirmed(String),
    /// The choice of an earlier run is not as good as it was.
    RememberedNotConfirmed(String),
    /// The tuner holds a setting.
    Holding {
        /// The name of the setting.
        label: String,
        /// Whether it is the reference because no setting is better.
        nothing_better: bool,
    },
    /// No setting meets the limits.
    OutsideLimits,
    /// The tuner gave up.
    GaveUp(GiveUpReason),
}

/// The reason why exploring ended before the strategy was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlyStop {
    /// The time for exploring is over.
    Time,
    /// The budget is spent.
    Budget,
    /// Exploring drew too much energy compared with the best setting.
    Energy,
}

/// The reason why a tuner gave up.
#[derive(Clone, Debug, PartialEq)]
pub enum GiveUpReason {
    /// The devices draw less than the lowest cap, and setting it changes nothing.
    CapDoesNotBind {
        /// The power of all devices.
        power: Watts,
        /// The sum of their lowest caps.
        lowest: Watts,
    },
    /// The job is too short to pay for exploring.
    TooShort {
        /// The expected time of the whole job.
        time: Seconds,
    },
    /// Windows of the same setting differ too much.
    TooNoisy(Ratio),
    /// The device rejected several settings.
    SettingsRejected(String),
    /// Somebody else changed a setting.
    ChangedExternally(String),
}

impl Display for GiveUpReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CapDoesNotBind { power, lowest } => write!(
                f,
                "the cap does not bind: the job draws {power:.0}, and the lowest cap of {lowest:.0} changes nothing; --knob core-clock can save here"
            ),
            Self::TooShort { time } => write!(
                f,
                "the job is too short for exploring to pay off: it takes about {time:.0}; a larger --budget allows it"
            ),
            Self::TooNoisy(noise) => write!(
                f,
                "progress is too noisy to compare settings: windows of one setting differ by {:.0} %",
                noise.get() * 100.0
            ),
            Self::SettingsRejected(why) => write!(f, "the device rejected several settings: {why}"),
            Self::ChangedExternally(what) => write!(f, "{what}: tuning stops"),
        }
    }
}

impl Display for TuneNotice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoProgress { waited, needed_for } => write!(
                f,
                "no progress was reported in {waited:.0}, but {needed_for} needs it: {PROGRESS_HELP}"
            ),
            Self::ProgressStalled(time) => write!(
                f,
                "no progress for {time:.0}: tuning pauses until progress resumes"
            ),
            Self::ProgressResumed => f.write_str("progress resumed: tuning continues"),
            Self::Unsteady(time) => write!(
                f,
                "the load is not steady after {time:.0}: tuning continues with longer windows"
            ),
            Self::SettingRejected { label, reason } => {
                write!(f, "the device rejected {label}, which is not tried again: {reason}")
            }
            Self::LoadChanged { rate, power } => {
                let signed = |ratio: &Ratio| format!("{:+.0} %", ratio.get() * 100.0);
                f.write_str("the load changed (")?;
                if let Some(rate) = rate {
                    write!(f, "items a second {}, ", signed(rate))?;
                }
                write!(f, "power {}): tuning starts again", signed(power))
            }
            Self::PhaseChanged(Some(name)) => write!(f, "the job is in the phase '{name}' now"),
            Self::PhaseChanged(None) => f.write_str("the job is in no named phase now"),
            Self::RetuneDue => {
                f.write_str("the time of --retune-every is over: tuning starts again")
            }
            Self::StoppedEarly(EarlyStop::Time) => {
                f.write_str("the time for exploring is over: the best setting so far is held")
            }
            Self::StoppedEarly(EarlyStop::Budget) => {
                f.write_str("exploring has used the --budget: the best setting so far is held")
            }
            Self::StoppedEarly(EarlyStop::Energy) => f.write_str(
                "exploring drew 2 % of the job's energy more than the best setting: the best setting so far is held",
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
            } => write!(f, "no setting is better than the reference: {label} is held"),
            Self::Holding { label, .. } => write!(f, "{label} is held"),
            Self::OutsideLimits => {
                f.write_str("no tried setting meets the limits: the reference is held")
            }
            Self::GaveUp(why) => why.fmt(f),
        }
    }
}

/// Help text on how a job reports its progress.
pub const PROGRESS_HELP: &str = "report it by `sweetspot.progress(items=N)` in a Python program, `sweetspot_progress` in C or `Writer::progress` in Rust (docs/link.md), or give --progress 'REGEX' for the command's output; --objective power needs none";
