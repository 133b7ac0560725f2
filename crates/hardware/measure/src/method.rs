//! Methods to determine the energy of a measurement window.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// The method to measure energy that the user chose.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MethodChoice {
    /// The best method that the sensors allow, with the other methods as checks.
    #[default]
    Auto,
    /// The energy counter alone.
    Counter,
    /// The samples of the driver's buffer alone.
    Buffer,
    /// Polling a power sensor at this interval, as the published studies did.
    Poll(Seconds),
}

/// The error when a text is not the name of a method.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("method '{0}' is unknown: use auto, counter, buffer or poll:TIME (poll:2ms, poll:500ms)")]
pub struct UnknownMethod(String);

/// The shortest accepted interval between two polls: shorter ones would keep a core busy.
const MIN_POLL_INTERVAL: Seconds = Seconds::new(0.001);
/// The longest accepted interval between two polls.
const MAX_POLL_INTERVAL: Seconds = Seconds::new(60.0);

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
                if every < MIN_POLL_INTERVAL || every > MAX_POLL_INTERVAL {
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

/// The method by which an energy was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The energy counter alone; the energy between the window's ends and the nearest counter steps is
    /// estimated.
    Counter,
    /// The energy counter for whole update periods, and the buffer's samples for the fractions at the
    /// window's ends.
    CounterAndBuffer,
    /// The samples of the driver's buffer alone.
    Buffer,
    /// The buffer's samples and polled values of [`sweetspot_device::SensorKind::InstantPower`].
    BufferAndPoll,
    /// Polled values of [`sweetspot_device::SensorKind::InstantPower`].
    PollInstant,
    /// Polled values of [`sweetspot_device::SensorKind::AveragePower`].
    PollAverage,
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Counter => "counter",
            Self::CounterAndBuffer => "counter+buffer",
            Self::Buffer => "buffer",
            Self::BufferAndPoll => "buffer+poll",
            Self::PollInstant => "poll (instant)",
            Self::PollAverage => "poll (average)",
        })
    }
}
