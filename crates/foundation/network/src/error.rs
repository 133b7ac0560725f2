//! Errors of networks and their files.

/// A name, a description or an ONNX file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// No built-in network has this name.
    #[error(
        "there is no network `{name}`; the nearest are {}; a path to an .onnx file is taken as well",
        near.join(", ")
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// The most similar names.
        near: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The path that was given.
        path: String,
        /// The system's explanation.
        reason: String,
    },
    /// A line of a description is wrong.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The description's path.
        file: String,
        /// The line number, counted from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
    /// An ONNX file is invalid, truncated or too large.
    #[error("{file}: {problem}")]
    File {
        /// The path that was given.
        file: String,
        /// The problem.
        problem: String,
    },
    /// An input of an ONNX file cannot be used.
    #[error("{file}: input `{input}` {problem}")]
    Input {
        /// The path that was given.
        file: String,
        /// The input's name.
        input: String,
        /// The problem, and what to do about it.
        problem: String,
    },
    /// A node of an ONNX file is wrong.
    #[error("{file}: node {node}: {problem}")]
    Node {
        /// The path that was given.
        file: String,
        /// The node's name and operator.
        node: String,
        /// The problem.
        problem: String,
    },
}
