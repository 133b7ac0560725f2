//! Ways to come to a window's energy.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MethodChoice {
    /// The best that the sensors allow; the others are checks.
    #[default]
    Auto,
    /// The energy counter.
    Counter,
    /// The driver's buffer of samples.
    Buffer,
    /// Looking at the power so often, as the papers did.
    Poll(Seconds),
}

/// A method that does not exist.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("method '{0}' is unknown: use auto, counter, buffer or poll:TIME (poll:2ms, poll:500ms)")]
pub struct UnknownMethod(String);

/// Looks closer together than this would keep a core busy.
const FASTEST: Seconds = Seconds::new(0.001);
const SLOWEST: Seconds = Seconds::new(60.0);

impl FromStr for MethodChoice {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownMethod(text.to_owned());
        match text {
            "auto" => Ok(Self::Auto),
            "counter" => Ok(Self::Counter),
            "buffer" => Ok(Self::Buffer),
            _ => {
                let every = text.strip_prefix("poll:").ok_or_else(unknown)?;
                let every: Seconds = every.parse().map_err(|_| unknown())?;
                if every < FASTEST || every > SLOWEST {
                    return Err(unknown());
                }
                Ok(Self::Poll(every))
            }
        }
    }
}

impl std::fmt::Display for MethodChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Counter => f.pad("counter"),
            Self::Buffer => f.pad("buffer"),
            Self::Poll(every) => f.pad(&format!("poll:{}", every.to_string().replace(' ', ""))),
        }
    }
}

/// What a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The counter, read between its moves at the window's ends.
    Counter,
    /// The counter, on a window moved to its moves.
    CounterSnapped,
    /// The counter for the bulk, the buffer's samples for the fractions at the ends.
    CounterAndBuffer,
    /// The buffer's samples.
    Buffer,
    /// The buffer's samples and a power sensor over a short window.
    BufferAndPoll,
    /// A power sensor over a short window, looked at again and again.
    PollInstant,
    /// A power sensor over a long window, looked at again and again.
    PollAverage,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Counter => "counter",
            Self::CounterSnapped => "counter, snapped",
            Self::CounterAndBuffer => "counter+buffer",
            Self::Buffer => "buffer",
            Self::BufferAndPoll => "buffer+poll",
            Self::PollInstant => "poll (instant)",
            Self::PollAverage => "poll (average)",
        })
    }
}
