//! The energy of a window with its method and its uncertainty.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::readings::{Gap, Span};
use crate::method::Method;

/// The energy drawn in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The best estimate.
    pub value: Joules,
    /// The 95 % confidence interval. It excludes the board's own gain error, which its sensors cannot see.
    pub interval95: (Joules, Joules),
    /// The method that produced the value.
    pub method: Method,
    /// The part of the window that the value covers.
    pub covered: Span,
    /// The spans without readings. Gaps within `covered` were bridged, and `interval95` is wide enough for
    /// them.
    pub missing: Vec<Gap>,
    /// Remarks about the value.
    pub notes: Vec<Note>,
}

impl Energy {
    /// The standard deviation.
    pub fn deviation(&self) -> Joules {
        (self.interval95.1 - self.value) / Z95
    }

    /// Multiplies the interval's width.
    pub(crate) fn inflate(&mut self, by: f64) {
        let half = self.deviation() * (by * Z95);
        self.interval95 = ((self.value - half).max(Joules::ZERO), self.value + half);
    }

    /// The parts at either end of a window that the value does not cover, except those no longer than the usual
    /// time between two readings.
    pub fn uncovered(&self, window: &Span) -> impl Iterator<Item = Span> + use<> {
        let ends = [
            Span::new(window.begin, self.covered.begin.max(window.begin)),
            Span::new(self.covered.end.min(window.end), window.end),
        ];
        let shortest = USUAL_READING_GAP.max(window.length() * 0.01);
        ends.into_iter()
            .filter(move |part| part.length() > shortest)
    }

    /// The mean power of the covered part.
    pub fn power(&self) -> Watts {
        self.value / self.covered.length()
    }
}

/// The usual time between two readings.
const USUAL_READING_GAP: Seconds = Seconds::new(0.02);

/// The 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.96;

/// A remark about a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// The window was shortened to where readings are.
    Trimmed {
        /// The time left out at the beginning.
        begin: Seconds,
        /// The time left out at the end.
        end: Seconds,
    },
    /// The sensor sees only this part of the time, so it may miss a load in step with it.
    Partial(Ratio),
    /// The wall clock was set within the window: samples before and after it may be misplaced.
    ClockStepped,
    /// There were too few readings to learn how power varies: the interval is a conservative guess.
    FewReadings,
}

impl Note {
    /// Whether the remark puts the value in doubt.
    pub fn is_warning(&self) -> bool {
        !matches!(self, Self::Partial(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trimmed { begin, end } => {
                write!(
                    f,
                    "without readings: {begin:.3} at the beginning, {end:.3} at the end"
                )
            }
            Self::Partial(share) => write!(f, "the sensor sees {share} of the time"),
            Self::ClockStepped => f.write_str("the wall clock was set within the window"),
            Self::FewReadings => f.write_str("few readings: the interval is a conservative guess"),
        }
    }
}

/// A value and the values of the other methods for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedEnergy {
    /// The value of the chosen method.
    pub energy: Energy,
    /// The values of the other methods.
    pub checks: Vec<Check>,
}

impl CheckedEnergy {
    /// The checks that differ by more than both values' uncertainty.
    pub fn warnings(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.agrees)
    }
}

/// The value of another method for the same window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The other method's value.
    pub energy: Energy,
    /// The difference relative to the chosen value.
    pub difference: Ratio,
    /// Whether the difference is within three standard deviations of both together.
    pub agrees: bool,
}

/// The number of standard deviations beyond which two values disagree; with fewer, one of several checks would
/// differ by chance too often.
const MAX_DEVIATIONS_APART: f64 = 3.0;

impl Check {
    pub(crate) fn of(other: Energy, chosen: &Energy) -> Option<Self> {
        // Values for spans of different length cannot be compared.
        let length = |energy: &Energy| energy.covered.length();
        if (length(&other) - length(chosen)).abs() > length(chosen) * 0.01 {
            return None;
        }
        let apart = other.value - chosen.value;
        let joint = other.deviation().get().hypot(chosen.deviation().get());
        Some(Self {
            difference: apart / chosen.value,
            agrees: apart.abs().get() <= MAX_DEVIATIONS_APART * joint,
            energy: other,
        })
    }
}

/// The reason why a window has no energy value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnergyError {
    /// The window does not end after it begins.
    #[error("a window of {0:.3} has no energy: it must end after it begins")]
    Empty(Seconds),
    /// The sensor has no readings in the window.
    #[error("no {what} within the window of {window:.3}: use another method, or a longer window")]
    NoReadings {
        /// The kind of readings that is missing.
        what: &'static str,
        /// The length of the window.
        window: Seconds,
    },
}
