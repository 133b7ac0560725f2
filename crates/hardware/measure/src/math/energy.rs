//! The energy of a window, with where it comes from and how sure it is.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::readings::{Gap, Span};
use crate::method::Method;

/// Energy drawn in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The best value.
    pub value: Joules,
    /// It lies in here in 95 of 100 cases. A board's own gain error, which no sensor of it can see, is not
    /// part of it.
    pub interval95: (Joules, Joules),
    /// What it came from.
    pub method: Method,
    /// The part of the window that the value is true of.
    pub covered: Span,
    /// Where readings were missing; between the ends of `covered` the gap was bridged and `interval95` is
    /// wide enough for it.
    pub missing: Vec<Gap>,
    /// What else should be known.
    pub notes: Vec<Note>,
}

impl Energy {
    /// One standard deviation.
    pub fn deviation(&self) -> Joules {
        (self.interval95.1 - self.value) / Z95
    }

    /// A wider interval.
    pub(crate) fn inflate(&mut self, by: f64) {
        let half = self.deviation() * (by * Z95);
        self.interval95 = ((self.value - half).max(Joules::ZERO), self.value + half);
    }

    /// The parts at either end of a window that the value is not true of. Parts that lie between two readings
    /// in the ordinary way do not count.
    pub fn uncovered(&self, window: &Span) -> impl Iterator<Item = Span> + use<> {
        let ends = [
            Span::new(window.begin, self.covered.begin.max(window.begin)),
            Span::new(self.covered.end.min(window.end), window.end),
        ];
        let shortest = BETWEEN_READINGS.max(window.length() * 0.01);
        ends.into_iter()
            .filter(move |part| part.length() > shortest)
    }

    /// Mean power of the covered part.
    pub fn power(&self) -> Watts {
        self.value / self.covered.length()
    }
}

/// Shorter parts of a window without readings lie between two readings in the ordinary way.
const BETWEEN_READINGS: Seconds = Seconds::new(0.02);

/// Of the normal distribution.
pub(crate) const Z95: f64 = 1.96;

/// Something to know about a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// The window's ends were moved to where readings are.
    Trimmed {
        /// Left out before.
        begin: Seconds,
        /// Left out after.
        end: Seconds,
    },
    /// The sensor looks at this part of the time only: a load in step with it would not be seen.
    Partial(Ratio),
    /// The wall clock was set within the window: samples before and after it may be misplaced.
    ClockStepped,
    /// There was too little to learn how power moved: the interval is a guess on the safe side.
    FewReadings,
}

impl Note {
    /// Whether a reader should think twice about the value.
    pub fn is_a_warning(&self) -> bool {
        !matches!(self, Self::Partial(_))
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Trimmed { begin, end } => {
                write!(
                    f,
                    "without readings: {begin:.3} at the begin, {end:.3} at the end"
                )
            }
            Self::Partial(share) => write!(f, "the sensor sees {share} of the time"),
            Self::ClockStepped => f.write_str("the wall clock was set within the window"),
            Self::FewReadings => f.write_str("few readings: the interval is a safe guess"),
        }
    }
}

/// A value and what the other methods say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The value.
    pub energy: Energy,
    /// The other methods.
    pub checks: Vec<Check>,
}

impl Measured {
    /// Checks that differ by more than both values' uncertainty.
    pub fn warnings(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.agrees)
    }
}

/// Another method's value for the same window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The other value.
    pub energy: Energy,
    /// Against the value that was chosen.
    pub difference: Ratio,
    /// Whether the difference is within three deviations of both together.
    pub agrees: bool,
}

/// Three deviations: of several checks one would else differ by chance too often.
const SUSPICIOUS: f64 = 3.0;

impl Check {
    pub(crate) fn of(other: Energy, chosen: &Energy) -> Option<Self> {
        // Parts of different length cannot be compared.
        let length = |energy: &Energy| energy.covered.length();
        if (length(&other) - length(chosen)).abs() > length(chosen) * 0.01 {
            return None;
        }
        let apart = other.value - chosen.value;
        let joint = other.deviation().get().hypot(chosen.deviation().get());
        Some(Self {
            difference: apart / chosen.value,
            agrees: apart.abs().get() <= SUSPICIOUS * joint,
            energy: other,
        })
    }
}

/// No value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnergyError {
    /// The window ends before it begins.
    #[error("a window of {0:.3} has no energy: it must end after it begins")]
    Empty(Seconds),
    /// The sensor has nothing in it.
    #[error("no {what} within the window of {window:.3}: use another method, or a longer window")]
    Nothing {
        /// Which readings.
        what: &'static str,
        /// How long it is.
        window: Seconds,
    },
}
