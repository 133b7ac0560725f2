//! What can be wrong with a network.

/// A name, a description or an ONNX file that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// No built-in network has this name.
    #[error(
        "there is no network `{name}`; the nearest are {}; a path to an .onnx file is taken as well",
        near.join(", ")
    )]
    Unknown {
        /// As asked for.
        name: String,
        /// The nearest names.
        near: Vec<String>,
    },
    /// The file cannot be read at all.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// As asked for.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// A line of a description.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The description.
        file: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// An ONNX file that is not one, or is cut off, or is too much.
    #[error("{file}: {problem}")]
    File {
        /// As asked for.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An input of an ONNX file.
    #[error("{file}: input `{input}` {problem}")]
    Input {
        /// As asked for.
        file: String,
        /// Its name.
        input: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A node of an ONNX file.
    #[error("{file}: node {node}: {problem}")]
    Node {
        /// As asked for.
        file: String,
        /// Its name and operator.
        node: String,
        /// What is wrong with it.
        problem: String,
    },
}
