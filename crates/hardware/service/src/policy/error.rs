//! Errors of policy files.

/// The largest policy file that is read, in bytes.
pub(super) const MAX_FILE_SIZE: u64 = 1024 * 1024;

/// Why a policy file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A line of the file is wrong.
    #[error("{file}:{line}: {}{message}", key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default())]
    Invalid {
        /// The path of the file.
        file: String,
        /// The number of the line, counted from 1.
        line: usize,
        /// The key whose value is wrong; `None` if the mistake is not in a value.
        key: Option<String>,
        /// What is wrong, and what to write instead.
        message: String,
    },
    /// Users other than root could change the file.
    #[error("{file}: not used, because users other than root could change it: {reason}")]
    NotOnlyRoot {
        /// The path of the file.
        file: String,
        /// Which file or folder does not belong to root or can be written by others.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {reason}")]
    Unreadable {
        /// The path of the file.
        file: String,
        /// The operating system's error message, or what is wrong with the file.
        reason: String,
    },
    /// The file is too large to be a policy.
    #[error(
        "{file} is larger than {} bytes: a policy file must be smaller",
        MAX_FILE_SIZE
    )]
    TooLarge {
        /// The path of the file.
        file: String,
    },
}
