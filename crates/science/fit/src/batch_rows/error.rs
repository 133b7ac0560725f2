//! Why no profile could be fitted.

/// Measured rows that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// Not CSV at all.
    #[error("{file}: not a CSV file with a header: {reason}")]
    Format {
        /// Its name in messages.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// A column that is needed is missing.
    #[error("{file}: there is no column {wanted}; there are {}", there.join(", "))]
    Column {
        /// Its name in messages.
        file: String,
        /// `batch`, or the names that would do.
        wanted: &'static str,
        /// The columns there are.
        there: Vec<String>,
    },
    /// A value that cannot be.
    #[error("{file}:{line}: `{column}`: `{value}` is not possible; allowed is {allowed}")]
    Value {
        /// Its name in messages.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Which column.
        column: String,
        /// As written.
        value: String,
        /// What could be.
        allowed: &'static str,
    },
    /// Nothing is left of what was asked for.
    #[error("{file}: there are no rows of {what}; there are {}", there.join(", "))]
    NoRows {
        /// Its name in messages.
        file: String,
        /// What was asked for.
        what: String,
        /// What there is.
        there: Vec<String>,
    },
    /// Several workloads, and the user does not say which.
    #[error("{file} has rows of several {what}: choose one with {flag} ({})", there.join(", "))]
    Several {
        /// Its name in messages.
        file: String,
        /// `networks` or `kinds`.
        what: &'static str,
        /// How to choose.
        flag: &'static str,
        /// What there is.
        there: Vec<String>,
    },
}

/// Rows that no profile can be fitted to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// Fewer values than a profile needs.
    #[error(
        "{rows} {} too few to fit a profile: at least two are needed, with different batch sizes or settings",
        if *rows == 1 { "row is" } else { "rows are" }
    )]
    TooFew {
        /// Different ones.
        rows: usize,
    },
    /// A row that the GPU cannot have run.
    #[error("the row with batch {batch} cannot have been measured on this GPU: {reason}")]
    Row {
        /// Its batch size.
        batch: u64,
        /// What the simulator says.
        reason: String,
    },
    /// The least squares went nowhere.
    #[error(
        "no profile comes near these rows: are they of this GPU, and in items a second and watts?"
    )]
    NoResult,
}
