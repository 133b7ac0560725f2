//! A bound on a latency of a server.

use std::fmt;
use std::str::FromStr;

use sweetspot_metrics::{Histogram, MetricsChange};
use sweetspot_quantity::{Ratio, Seconds, parse_bare};

/// A latency of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyKind {
    /// The time from a request to its first token.
    FirstToken,
    /// The time between two tokens of a request.
    InterToken,
    /// The time from a request to its last token.
    EndToEnd,
}

/// A bound on a latency: the quantile that must not be above it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// The latency.
    pub kind: LatencyKind,
    /// The share of requests or tokens that must keep the bound.
    pub quantile: Ratio,
    /// The bound.
    pub bound: Seconds,
}

/// Why a text is not a bound on a latency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a latency bound: write ttft-p99=500ms, itl-p95=40ms or e2e-p90=10s")]
pub struct InvalidSlo(String);

impl LatencyKind {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstToken => "ttft",
            Self::InterToken => "itl",
            Self::EndToEnd => "e2e",
        }
    }

    /// The times of this kind on a page.
    pub fn times(self, change: &MetricsChange) -> Option<&Histogram> {
        match self {
            Self::FirstToken => change.first_token.as_ref(),
            Self::InterToken => change.inter_token.as_ref(),
            Self::EndToEnd => change.end_to_end.as_ref(),
        }
    }
}

impl FromStr for Slo {
    type Err = InvalidSlo;

    fn from_str(text: &str) -> Result<Self, InvalidSlo> {
        let invalid = || InvalidSlo(text.to_owned());
        let (name, bound) = text.split_once('=').ok_or_else(invalid)?;
        let (kind, percent) = name.split_once("-p").ok_or_else(invalid)?;
        let kind = match kind {
            "ttft" => LatencyKind::FirstToken,
            "itl" => LatencyKind::InterToken,
            "e2e" => LatencyKind::EndToEnd,
            _ => return Err(invalid()),
        };
        let percent: f64 = percent.parse().map_err(|_| invalid())?;
        // A number without a unit would mean seconds, where people think of milliseconds.
        let has_unit = bound.parse::<f64>().is_err();
        let bound = parse_bare::<Seconds>(bound).map_err(|_| invalid())?;
        let is_valid = has_unit && (1.0..100.0).contains(&percent) && bound > Seconds::ZERO;
        match is_valid {
            true => Ok(Self {
                kind,
                quantile: Ratio::new(percent / 100.0),
                bound,
            }),
            false => Err(invalid()),
        }
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = (self.quantile.get() * 1e4).round() / 100.0;
        let millis = (self.bound.get() * 1e6).round() / 1e3;
        write!(f, "{}-p{percent}={millis}ms", self.kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_written() {
        for text in ["ttft-p99=500ms", "itl-p95=40ms", "e2e-p99.9=10000ms"] {
            assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "ttft",
            "ttft-p99",
            "ttft-p99=500",
            "ttft-p0=1s",
            "ttft-p100=1s",
            "x-p50=1s",
            "itl-pNaN=1s",
            "itl-p95=-1s",
        ] {
            assert!(text.parse::<Slo>().is_err(), "{text}");
        }
    }
}
