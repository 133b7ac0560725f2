//! Errors of a replay.

use sweetspot_decide::search::SearchSpaceError;

/// Why recorded measurements cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReplayError {
    /// The file is not a CSV file.
    #[error("{file} is not a CSV file: {reason}")]
    Format {
        /// The name of the file.
        file: String,
        /// Why the CSV parser rejects the file.
        reason: String,
    },
    /// The file lacks a column.
    #[error("{file} has no column `{wanted}`; it has {}", found.join(", "))]
    Column {
        /// The name of the file.
        file: String,
        /// The name of the missing column.
        wanted: String,
        /// The names of the columns that the file has.
        found: Vec<String>,
    },
    /// A cell is not a number above zero.
    #[error("{file}, line {line}: `{column}` is `{cell}`, but a number above zero is needed")]
    Cell {
        /// The name of the file.
        file: String,
        /// The number of the line, from 1.
        line: u64,
        /// The name of the column.
        column: String,
        /// The text of the cell.
        cell: String,
    },
    /// The file has no rows.
    #[error("{0} has no rows: there is nothing to replay")]
    Empty(String),
    /// The points of a curve cannot be searched.
    #[error("the curve {curve} cannot be searched: {reason}")]
    Space {
        /// The name of the curve.
        curve: String,
        /// Why the points cannot be searched.
        reason: SearchSpaceError,
    },
    /// No measurement was recorded at the reference.
    #[error("the curve {curve} has no record at the reference {wanted}; it has {}", found.join(", "))]
    Reference {
        /// The name of the curve.
        curve: String,
        /// The value of the first knob that was requested as the reference.
        wanted: String,
        /// The recorded values of that knob.
        found: Vec<String>,
    },
    /// A study varies nothing, or something that is not a number.
    #[error("the study {study} {why}, so there is no curve to search")]
    Study {
        /// The name of the study.
        study: String,
        /// Why the study is not a curve.
        why: String,
    },
    /// The objective cannot be computed on a curve.
    #[error("{objective} cannot be computed on the curve {curve}: {reason}")]
    NoValue {
        /// The name of the curve.
        curve: String,
        /// The name of the objective.
        objective: String,
        /// Why the objective cannot be computed.
        reason: String,
    },
    /// There are no other curves to learn from.
    #[error("a leave-one-out prior learns from the other curves, but there is only one curve")]
    NoOthers,
}
