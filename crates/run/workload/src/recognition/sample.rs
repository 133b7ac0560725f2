//! What one line of output says about progress.

use super::format::Format;

/// A line that reports progress.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// The format of the line.
    pub format: Format,
    /// The words that name the bar or counter. Numbers are left out, so the bars of all epochs have the same name.
    pub name: String,
    /// What the work is done for.
    pub role: Role,
    /// How much the form of the line alone says.
    pub evidence: Evidence,
    /// What the line counts, such as `it`, `step` or `images`.
    pub unit: String,
    /// How much is done.
    pub amount: Amount,
}

/// How much is done, as a line reports it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Amount {
    /// The number that is done, in this epoch or at all, and the number to do if the line contains it.
    Done { done: f64, total: Option<f64> },
    /// The present rate per second.
    Rate(f64),
    /// One more unit: every such line stands for the same amount of work.
    One,
    /// A headline that begins an epoch.
    NewEpoch,
}

/// What the work behind a bar or counter is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The line says that it is about training.
    Training,
    /// The line does not say what it is about.
    Unknown,
    /// Validation, testing or prediction.
    Validation,
    /// Work before the training, such as loading, tokenising or downloading.
    Preparation,
}

impl Role {
    /// Whether such work is progress of a training.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Training | Self::Unknown)
    }
}

/// How much the form of a line alone says about its being progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Evidence {
    /// A word and a number, which many programs print that train nothing.
    Weak,
    /// A counter beside a loss or another measure of training.
    Medium,
    /// The form of a known framework or progress bar.
    Strong,
}

impl Sample {
    /// A line of a known framework or progress bar.
    pub fn strong(format: Format, role: Role, unit: &str, done: f64, total: Option<f64>) -> Self {
        Self {
            format,
            name: String::new(),
            role,
            evidence: Evidence::Strong,
            unit: unit.to_owned(),
            amount: Amount::Done { done, total },
        }
    }

    /// The same line, named by these words.
    pub fn named(self, name: String) -> Self {
        Self { name, ..self }
    }
}
