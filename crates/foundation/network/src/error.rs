//! Errors of networks and their files.

/// The reason why a network cannot be read from a name, a description or an ONNX file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// No built-in network has this name.
    #[error(
        "there is no network `{name}`; the nearest are {}; you can also give the path of an .onnx file",
        near.join(", ")
    )]
    Unknown {
        /// The name that was given.
        name: String,
        /// The most similar built-in names.
        near: Vec<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The path of the file.
        path: String,
        /// The operating system's explanation.
        reason: String,
    },
    /// A line of a network description is invalid.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The name or path of the description.
        file: String,
        /// The line number, counted from 1.
        line: usize,
        /// The problem, as a clause for the user.
        problem: String,
    },
    /// A network from a description cannot have an input of this name or size.
    #[error("the network `{network}` cannot have the input {input}: {problem}")]
    InputSize {
        /// The name of the network, or the path of its description.
        network: String,
        /// The input as it was given, such as `input=3x8x8`.
        input: String,
        /// The problem, as a clause for the user.
        problem: String,
    },
    /// An ONNX file is invalid, truncated or too large.
    #[error("{file}: {problem}")]
    File {
        /// The path of the ONNX file.
        file: String,
        /// The problem, as a clause for the user.
        problem: String,
    },
    /// The shape of an input of an ONNX file is unknown or invalid.
    #[error("{file}: input `{input}` {problem}")]
    Input {
        /// The path of the ONNX file.
        file: String,
        /// The input's name.
        input: String,
        /// The problem, as a clause for the user.
        problem: String,
    },
    /// A node of an ONNX file is invalid.
    #[error("{file}: node {node}: {problem}")]
    Node {
        /// The path of the ONNX file.
        file: String,
        /// The node's name and operator.
        node: String,
        /// The problem, as a clause for the user.
        problem: String,
    },
}
