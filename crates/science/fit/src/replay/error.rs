//! Why records cannot be replayed.

use sweetspot_decide::search::SearchSpaceError;

/// Why records cannot be replayed, and what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// No CSV.
    #[error("{file} is no CSV file: {reason}")]
    Format {
        /// Which file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A column that is not there.
    #[error("{file} has no column `{wanted}`; it has {}", there.join(", "))]
    Column {
        /// Which file.
        file: String,
        /// Which column.
        wanted: String,
        /// Those that are there.
        there: Vec<String>,
    },
    /// A cell that is no usable number.
    #[error("{file}, line {line}: `{column}` is `{cell}`, and a number above zero is needed")]
    Cell {
        /// Which file.
        file: String,
        /// Counted from 1.
        line: u64,
        /// Which column.
        column: String,
        /// What is there.
        cell: String,
    },
    /// A file without rows.
    #[error("{0} has no rows: there is nothing to replay")]
    Empty(String),
    /// Rows that are no space.
    #[error("the curve {curve} cannot be searched: {reason}")]
    Space {
        /// Which.
        curve: String,
        /// Why.
        reason: SearchSpaceError,
    },
    /// A reference that is not recorded.
    #[error("the curve {curve} has no record at the reference {wanted}; it has {}", there.join(", "))]
    Reference {
        /// Which.
        curve: String,
        /// What was asked for.
        wanted: String,
        /// What there is.
        there: Vec<String>,
    },
    /// A study that varies nothing, or something without numbers.
    #[error("the study {study} {why}, so that there is no curve to search")]
    Study {
        /// Which.
        study: String,
        /// What is the matter.
        why: String,
    },
    /// No value to judge by.
    #[error("the curve {curve} has no value of {objective}: {reason}")]
    NoValue {
        /// Which.
        curve: String,
        /// Of what.
        objective: String,
        /// Why.
        reason: String,
    },
    /// Only one curve.
    #[error(
        "`--prior leave-one-out` learns from the other curves, and there is one curve alone; use --group, or --prior none"
    )]
    NoOthers,
}
