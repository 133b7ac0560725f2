//! Errors of fitting a workload profile.

/// Why measured rows cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// The file is not a CSV file.
    #[error("{file}: not a CSV file with a header: {reason}")]
    Format {
        /// The name of the file.
        file: String,
        /// Why the CSV parser rejects the file.
        reason: String,
    },
    /// A required column is missing.
    #[error("{file}: there is no column {wanted}; there are {}", found.join(", "))]
    Column {
        /// The name of the file.
        file: String,
        /// The names of the columns of which at least one is needed, in words.
        wanted: &'static str,
        /// The names of the columns that the file has.
        found: Vec<String>,
    },
    /// A value is out of range.
    #[error("{file}:{line}: `{column}`: `{value}` must be {allowed}")]
    Value {
        /// The name of the file.
        file: String,
        /// The number of the line, from 1.
        line: u64,
        /// The name of the column.
        column: String,
        /// The value in the file.
        value: String,
        /// What the value must be, in words.
        allowed: &'static str,
    },
    /// No row belongs to the requested network, or to training or inference as requested.
    #[error("{file}: there are no rows of {what}; there are {}", found.join(", "))]
    NoRows {
        /// The name of the file.
        file: String,
        /// The network, or `training` or `inference`, that the user requested.
        what: String,
        /// The networks, or `training` and `inference`, that have rows in the file.
        found: Vec<String>,
    },
    /// The file has rows of several workloads, and the user chose none of them.
    #[error("{file} has rows of several {what}: choose one of {}", found.join(", "))]
    Several {
        /// The name of the file.
        file: String,
        /// What the file has several of: `networks` or `kinds` (training and inference).
        what: &'static str,
        /// The networks or kinds that have rows in the file.
        found: Vec<String>,
    },
}

/// Why no profile can be fitted to measured rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FitError {
    /// There are fewer than two different rows.
    #[error(
        "{rows} {} too few to fit a profile: at least two are needed, with different batch sizes or settings",
        if *rows == 1 { "row is" } else { "rows are" }
    )]
    TooFew {
        /// The number of different rows.
        rows: usize,
    },
    /// The GPU cannot run the configuration of a row.
    #[error("the row with batch {batch} cannot have been measured on this GPU: {reason}")]
    Row {
        /// The batch size of the row.
        batch: u64,
        /// Why the simulated GPU cannot run this configuration.
        reason: String,
    },
    /// The fit did not converge.
    #[error(
        "no profile fits these rows: check that they are from this GPU, in items per second and watts"
    )]
    NoResult,
}
