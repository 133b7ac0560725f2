//! Errors of networks and their files.

/// An input of an ONNX file whose shape is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSizes {
    /// The name of the input.
    pub input: String,
    /// The shape with the names of the sizes that are missing, such as `1x3xHxW`, and a batch of 1; `None` if the file has
    /// no shape at all.
    pub shape: Option<String>,
    /// The names of the sizes that are missing, each once.
    pub sizes: Vec<String>,
}

/// Lists inputs with their shapes.
fn describe(inputs: &[MissingSizes]) -> String {
    let named = inputs.iter().map(|missing| match &missing.shape {
        Some(shape) => format!("`{}` is {shape}", missing.input),
        None => format!("`{}` has no shape", missing.input),
    });
    named.collect::<Vec<_>>().join(", ")
}

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
    /// An ONNX file leaves sizes of its inputs open.
    #[error("{file} leaves sizes of its inputs open: {}", describe(inputs))]
    MissingSizes {
        /// The path of the ONNX file.
        file: String,
        /// The inputs whose sizes are missing.
        inputs: Vec<MissingSizes>,
    },
    /// An input of an ONNX file does not exist, or its shape is invalid.
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
