//! The energy drawn in a measurement window, with its method and its uncertainty.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::readings::{Gap, Span};
use crate::method::Method;

/// The energy that a device drew in a measurement window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// The best estimate of the energy.
    pub value: Joules,
    /// The 95 % confidence interval. It excludes the board's own gain error, which its sensors cannot see.
    pub interval95: (Joules, Joules),
    /// The method by which the value was measured.
    pub method: Method,
    /// The part of the measurement window for which there are readings; `value` is the energy of this part.
    pub covered: Span,
    /// The time spans without readings. Those within `covered` were bridged, and `interval95` allows for
    /// them.
    pub missing: Vec<Gap>,
    /// Remarks about the reliability of the value.
    pub notes: Vec<Note>,
    /// The part of the standard deviation that comes from the gain of the driver's buffer.
    #[serde(skip)]
    pub(crate) gain_deviation: Joules,
}

impl Energy {
    /// The part of the standard deviation that comes from the gain of the driver's buffer. Windows that follow each
    /// other have it in common, as long as the energy counter is not read again.
    pub fn gain_deviation(&self) -> Joules {
        self.gain_deviation.min(self.deviation())
    }

    /// The standard deviation of the estimate.
    pub fn deviation(&self) -> Joules {
        (self.interval95.1 - self.value) / Z95
    }

    /// Multiplies the width of the 95 % interval by a factor.
    pub(crate) fn inflate(&mut self, by: f64) {
        let half = self.deviation() * (by * Z95);
        self.interval95 = ((self.value - half).max(Joules::ZERO), self.value + half);
    }

    /// The parts at the beginning and end of a measurement window that the value does not cover. Parts no
    /// longer than the usual time between two readings are ignored.
    pub fn uncovered(&self, window: &Span) -> impl Iterator<Item = Span> + use<> {
        let ends = [
            Span::new(window.begin, self.covered.begin.max(window.begin)),
            Span::new(self.covered.end.min(window.end), window.end),
        ];
        let shortest = USUAL_READING_GAP.max(window.length() * 0.01);
        ends.into_iter()
            .filter(move |part| part.length() > shortest)
    }

    /// The mean power in the covered part of the measurement window.
    pub fn power(&self) -> Watts {
        self.value / self.covered.length()
    }
}

/// The usual time between two samples of the driver's buffer.
const USUAL_READING_GAP: Seconds = Seconds::new(0.02);

/// The 97.5 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.96;

/// A remark about the reliability of an energy value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// There are no readings at an end of the measurement window, so the value covers a shorter span.
    Trimmed {
        /// The time at the beginning of the measurement window that the value does not cover.
        begin: Seconds,
        /// The time at the end of the measurement window that the value does not cover.
        end: Seconds,
    },
    /// The power sensor measures only this part of the time, so it may misjudge a load whose period matches
    /// the sensor's.
    Partial(Ratio),
    /// The wall clock was set within the measurement window, so samples around that moment may have wrong
    /// times.
    ClockStepped,
    /// There were too few readings to learn how power varies, so the interval is a conservative guess.
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
            Self::Partial(share) => write!(f, "the sensor measures only {share} of the time"),
            Self::ClockStepped => {
                f.write_str("the wall clock was set within the measurement window")
            }
            Self::FewReadings => {
                f.write_str("few readings: the 95 % interval is a conservative guess")
            }
        }
    }
}

/// The energy of a measurement window by the chosen method, and by the other methods for comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckedEnergy {
    /// The energy as measured by the chosen method.
    pub energy: Energy,
    /// The energy as measured by each other method, compared with the chosen one.
    pub checks: Vec<Check>,
}

impl CheckedEnergy {
    /// The checks that disagree with the chosen method's value.
    pub fn warnings(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.agrees)
    }
}

/// The value of another method for the same measurement window, compared with the chosen one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The energy as measured by the other method.
    pub energy: Energy,
    /// The difference between the two methods' energies, relative to that of the chosen method.
    pub difference: Ratio,
    /// Whether the two energies differ by at most three times their combined standard deviation.
    pub agrees: bool,
}

/// Two energies disagree if they differ by more than this many standard deviations. With fewer, one of
/// several checks would disagree by chance too often.
const MAX_DEVIATIONS_APART: f64 = 3.0;

impl Check {
    /// Compares the energy by another method with that of the chosen method; `None` if the two
    /// cover times of different length.
    pub(crate) fn compare(other: Energy, chosen: &Energy) -> Option<Self> {
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

/// The reason why the energy of a measurement window cannot be computed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnergyError {
    /// The measurement window has this length, which is not positive.
    #[error("the measurement window has a length of {0:.3}: it must end after it begins")]
    Empty(Seconds),
    /// The method's sensor has no readings in the measurement window.
    #[error(
        "no {what} within the measurement window of {window:.3}: use another method, or a longer window"
    )]
    NoReadings {
        /// The kind of readings that are missing, such as "samples of the driver's buffer".
        what: &'static str,
        /// The length of the measurement window.
        window: Seconds,
    },
}
