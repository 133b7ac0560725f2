//! What a tuner has to tell.

use std::fmt::{Display, Formatter};

use sweetspot_quantity::{Ratio, Seconds, Watts};

/// Something the user should know.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The job has not told of any progress.
    NoProgress {
        /// For so long.
        waited: Seconds,
        /// What needs it.
        is_for: String,
    },
    /// Progress stopped coming.
    Stalled(Seconds),
    /// It came again.
    GoesOn,
    /// The load does not become steady.
    Unsteady(Seconds),
    /// A setting was refused.
    Refused {
        /// What it is called.
        label: String,
        /// What the device says.
        why: String,
    },
    /// The load is no longer what was tuned.
    LoadChanged {
        /// Of items a second, against what was held; nothing where they are not known.
        rate: Option<Ratio>,
        /// Of power.
        power: Ratio,
    },
    /// The job went on to a phase of its own load.
    OtherPhase(Option<String>),
    /// The choice has been held for as long as was asked for.
    TimeToLookAgain,
    /// Exploring ended before it was sure.
    Cut(Cut),
    /// The choice of an earlier run is as good as it was.
    AsRemembered(String),
    /// It is not.
    NotAsRemembered(String),
    /// A setting is held.
    Holds {
        /// What it is called.
        label: String,
        /// Whether it is the reference because nothing was better.
        nothing_better: bool,
    },
    /// No setting keeps within the limits.
    OutsideLimits,
    /// Nothing more is tried.
    GaveUp(GaveUp),
}

/// Why exploring ended before it was sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It took long enough.
    Time,
    /// It cost enough.
    Budget,
    /// It drew enough beyond the best setting.
    Energy,
}

/// Why a tuner leaves a job at the reference.
#[derive(Clone, Debug, PartialEq)]
pub enum GaveUp {
    /// The devices draw less than the lowest cap, and setting it changes nothing.
    CapDoesNotBind {
        /// What they draw.
        power: Watts,
        /// The lowest cap, of all together.
        lowest: Watts,
    },
    /// There is not enough left of the job.
    TooShort {
        /// Of the whole job.
        time: Seconds,
    },
    /// Two windows of the same setting differ too much.
    TooNoisy(Ratio),
    /// Settings were refused again and again.
    Refused(String),
    /// Somebody else sets the same devices.
    Changed(String),
}

impl Display for GaveUp {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CapDoesNotBind { power, lowest } => write!(
                f,
                "the cap does not bind: the job draws {power:.0}, and the lowest cap of {lowest:.0} changes nothing; --knob core-clock can save here"
            ),
            Self::TooShort { time } => write!(
                f,
                "the job is too short to pay back what exploring costs: it takes about {time:.0}; a larger --budget allows it"
            ),
            Self::TooNoisy(noise) => write!(
                f,
                "progress is too noisy to tell settings apart: windows of one setting differ by {:.0} %",
                noise.get() * 100.0
            ),
            Self::Refused(why) => write!(f, "settings are refused again and again: {why}"),
            Self::Changed(what) => write!(f, "{what}: nothing more is set"),
        }
    }
}

impl Display for Notice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoProgress { waited, is_for } => write!(
                f,
                "no progress was heard of in {waited:.0}, and {is_for} needs it: {WAYS_TO_TELL_PROGRESS}"
            ),
            Self::Stalled(time) => write!(
                f,
                "no progress for {time:.0}: tuning waits until it goes on"
            ),
            Self::GoesOn => f.write_str("progress goes on, and so does tuning"),
            Self::Unsteady(time) => write!(
                f,
                "the load is not steady after {time:.0}: it is tuned as it is, with longer windows"
            ),
            Self::Refused { label, why } => {
                write!(f, "{label} is refused and left out: {why}")
            }
            Self::LoadChanged { rate, power } => {
                let signed = |ratio: &Ratio| format!("{:+.0} %", ratio.get() * 100.0);
                f.write_str("the load changed (")?;
                if let Some(rate) = rate {
                    write!(f, "items a second {}, ", signed(rate))?;
                }
                write!(f, "power {}): it is tuned again", signed(power))
            }
            Self::OtherPhase(Some(name)) => write!(f, "the job is in the phase '{name}' now"),
            Self::OtherPhase(None) => f.write_str("the job is in no named phase now"),
            Self::TimeToLookAgain => {
                f.write_str("the choice has been held for as long as --retune-every says: it is looked for again")
            }
            Self::Cut(Cut::Time) => {
                f.write_str("exploring took long enough: the best so far is held")
            }
            Self::Cut(Cut::Budget) => {
                f.write_str("exploring cost what --budget allows: the best so far is held")
            }
            Self::Cut(Cut::Energy) => f.write_str(
                "exploring drew 2 % of the job's energy beyond its best setting: the best so far is held",
            ),
            Self::AsRemembered(label) => {
                write!(f, "{label}, which an earlier run chose, is as good as it was then")
            }
            Self::NotAsRemembered(label) => write!(
                f,
                "{label}, which an earlier run chose, is not as good as it was then: others are tried"
            ),
            Self::Holds {
                label,
                nothing_better: true,
            } => write!(f, "nothing is better than the reference: {label} is held"),
            Self::Holds { label, .. } => write!(f, "{label} is held"),
            Self::OutsideLimits => {
                f.write_str("no setting that was tried keeps within the limits: the reference is held")
            }
            Self::GaveUp(why) => why.fmt(f),
        }
    }
}

/// How a job tells of its progress, for people.
pub const WAYS_TO_TELL_PROGRESS: &str = "there are three ways to give it: `sweetspot.progress(items=N)` in a Python program, `sweetspot_progress` in C or `Writer::progress` in Rust (docs/link.md), or --progress 'REGEX' for what the command prints; --objective power needs none";
