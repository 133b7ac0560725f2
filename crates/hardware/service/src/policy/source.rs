//! Where a policy comes from.

use serde::{Deserialize, Serialize};

/// Where a policy comes from. Paths are text, because the service sends this to its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicySource {
    /// The default policy, because there is no policy file.
    Default {
        /// The path at which there is no file.
        file: String,
        /// Whether the group exists whose members the default policy allows to change settings.
        group_exists: bool,
    },
    /// A policy file.
    File {
        /// The path of the file.
        file: String,
    },
}

impl PolicySource {
    /// The path of the policy file, whether or not it exists.
    pub fn file(&self) -> &str {
        match self {
            Self::Default { file, .. } | Self::File { file } => file,
        }
    }
}

impl std::fmt::Display for PolicySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default { file, .. } => write!(f, "the default policy (there is no {file})"),
            Self::File { file } => f.write_str(file),
        }
    }
}
