//! What a power cap binds: a mean, or every reading.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::Seconds;

/// What the power cap binds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapOn {
    /// The mean power over this time, as for a power supply or a rack.
    Mean(Seconds),
    /// Every single reading of a fast sensor, as for a circuit breaker.
    Reading,
}

/// The text does not say what a power cap binds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapOnError {
    /// The text is neither a mean nor `reading`.
    #[error("unknown: use mean:TIME, such as mean:1s, or reading")]
    Unknown,
    /// The time of the mean is not a time, or not one that can be averaged over.
    #[error("the time of the mean must be from 20ms to 60s, such as mean:1s")]
    Time,
}

impl CapOn {
    /// The shortest and the longest time of a mean, in seconds: no sensor is faster, and the search for a setting needs
    /// several such times.
    const MEAN_TIMES: std::ops::RangeInclusive<f64> = 0.02..=60.0;

    /// The time for which a setting is observed before its power is compared with the cap: that of the mean, or a second
    /// of single readings.
    pub fn observation_time(self) -> Seconds {
        match self {
            Self::Mean(time) => time,
            Self::Reading => Seconds::new(1.0),
        }
    }
}

impl CapOn {
    /// What is compared with the cap, in words: `1 s mean`, or `reading`.
    pub fn noun(self) -> String {
        match self {
            Self::Mean(time) => format!("{} s mean", time.get()),
            Self::Reading => "reading".to_owned(),
        }
    }
}

impl Default for CapOn {
    fn default() -> Self {
        Self::Mean(Seconds::new(1.0))
    }
}

impl FromStr for CapOn {
    type Err = CapOnError;

    fn from_str(text: &str) -> Result<Self, CapOnError> {
        if text == "reading" {
            return Ok(Self::Reading);
        }
        let time = text.strip_prefix("mean:").ok_or(CapOnError::Unknown)?;
        let time: Seconds = time.parse().map_err(|_| CapOnError::Time)?;
        match Self::MEAN_TIMES.contains(&time.get()) {
            true => Ok(Self::Mean(time)),
            false => Err(CapOnError::Time),
        }
    }
}

impl Display for CapOn {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mean(time) => write!(f, "mean:{}s", time.get()),
            Self::Reading => f.write_str("reading"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_are_written() {
        for cap_on in [
            CapOn::default(),
            CapOn::Mean(Seconds::new(0.1)),
            CapOn::Mean(Seconds::new(60.0)),
            CapOn::Reading,
        ] {
            assert_eq!(cap_on.to_string().parse(), Ok(cap_on));
        }
        assert_eq!("mean:100ms".parse(), Ok(CapOn::Mean(Seconds::new(0.1))));
        for text in ["mean:0s", "mean:", "mean:2min", "mean:-1s", "mean:x"] {
            assert_eq!(text.parse::<CapOn>(), Err(CapOnError::Time), "{text}");
        }
        assert_eq!("median".parse::<CapOn>(), Err(CapOnError::Unknown));
    }
}
