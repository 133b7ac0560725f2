//! Errors of meters, grouped by what the caller can do about them.

/// The reason why a meter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterError {
    /// The user's text or file is wrong; the message says what to write.
    #[error("{0}")]
    Invalid(String),
    /// The meter refuses, or is not what the user named; trying again does not help.
    #[error("meter {meter}: {reason}")]
    Refused {
        /// The meter, as the user named it.
        meter: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// The meter did not answer, or not in its format; it may be temporary.
    #[error("meter {meter}: {reason}")]
    Failed {
        /// The meter, as the user named it.
        meter: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// A problem with one exchange with a meter, before the meter's name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Trying again does not help.
    Refused(String),
    /// Trying again may help.
    Failed(String),
}

impl Problem {
    /// Adds the name of the meter.
    pub fn of(self, meter: &str) -> MeterError {
        let meter = meter.to_owned();
        match self {
            Self::Refused(reason) => MeterError::Refused { meter, reason },
            Self::Failed(reason) => MeterError::Failed { meter, reason },
        }
    }

    /// The text of the problem.
    pub fn text(&self) -> &str {
        match self {
            Self::Refused(text) | Self::Failed(text) => text,
        }
    }
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => {
                Self::Failed("it did not answer in time".to_owned())
            }
            std::io::ErrorKind::PermissionDenied => Self::Refused(format!(
                "no permission to open it ({error}): become a member of the group that owns it, or use --as-root"
            )),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// The longest part of an answer that a message repeats.
const SHOWN_CHARACTERS: usize = 60;

/// A part of a meter's answer, safe and short enough for a message.
pub(crate) fn excerpt(answer: &str) -> String {
    let safe: String = answer
        .trim()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(SHOWN_CHARACTERS + 1)
        .collect();
    match safe.chars().count() > SHOWN_CHARACTERS {
        true => format!(
            "{}...",
            safe.chars().take(SHOWN_CHARACTERS).collect::<String>()
        ),
        false => safe,
    }
}
