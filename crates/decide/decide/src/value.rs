//! The values of an outcome that limits and Pareto fronts refer to.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use crate::{NoValue, Outcome};

/// A value of an outcome: measured, computed from measured values, or reported by the workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// The time of a run.
    Time,
    /// The energy of a run.
    Energy,
    /// Energy divided by time, in watts.
    AveragePower,
    /// The number of items processed in a run.
    Items,
    /// Items divided by time.
    ItemsPerSecond,
    /// Energy divided by items.
    EnergyPerItem,
    /// Items divided by energy.
    ItemsPerJoule,
    /// The number of GPUs that a run used.
    Gpus,
    /// The time multiplied by the number of GPUs.
    DeviceTime,
    /// A value that the workload reported under this name.
    Reported(String),
}

/// The values that are measured or computed from measured values, by name.
const MEASURED_VALUES: [(&str, Value); 9] = [
    ("time", Value::Time),
    ("energy", Value::Energy),
    ("average_power", Value::AveragePower),
    ("items", Value::Items),
    ("items_per_s", Value::ItemsPerSecond),
    ("energy_per_item", Value::EnergyPerItem),
    ("items_per_joule", Value::ItemsPerJoule),
    ("gpus", Value::Gpus),
    ("device_time", Value::DeviceTime),
];

/// Names of objectives that are also accepted as names of values.
const ALIASES: [(&str, Value); 2] = [
    ("power", Value::AveragePower),
    ("throughput", Value::ItemsPerSecond),
];

impl Value {
    /// The value that has this name; any unknown name stands for a value that the workload reports.
    pub fn named(name: &str) -> Self {
        let underscored = name.replace('-', "_");
        let known = MEASURED_VALUES.iter().chain(&ALIASES);
        known
            .into_iter()
            .find(|(known, _)| *known == underscored)
            .map_or_else(
                || Self::Reported(name.to_owned()),
                |(_, value)| value.clone(),
            )
    }

    /// The names of all measured values.
    pub fn measured_names() -> impl Iterator<Item = &'static str> {
        MEASURED_VALUES.iter().map(|(name, _)| *name)
    }

    /// Returns this value of an outcome, in SI units, or why the outcome has none.
    pub fn of(&self, outcome: &Outcome) -> Result<f64, NoValue> {
        let value = match self {
            Self::Time => time(outcome)?,
            Self::Energy => energy(outcome)?,
            Self::AveragePower => energy(outcome)? / time(outcome)?,
            Self::Items => items(outcome)?,
            Self::ItemsPerSecond => items(outcome)? / time(outcome)?,
            Self::EnergyPerItem => energy(outcome)? / items(outcome)?,
            Self::ItemsPerJoule => items(outcome)? / energy(outcome)?,
            Self::Gpus => outcome.gpus as f64,
            Self::DeviceTime => time(outcome)? * outcome.gpus as f64,
            Self::Reported(name) => *outcome
                .values
                .get(name)
                .ok_or_else(|| NoValue::NotReported(name.clone()))?,
        };
        finite(value)
    }

    /// Whether less or more is usually better; unknown for a reported value.
    pub const fn usual_direction(&self) -> Option<Direction> {
        match self {
            Self::Time
            | Self::Energy
            | Self::AveragePower
            | Self::EnergyPerItem
            | Self::Gpus
            | Self::DeviceTime => Some(Direction::Least),
            Self::Items | Self::ItemsPerSecond | Self::ItemsPerJoule => Some(Direction::Most),
            Self::Reported(_) => None,
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let known = MEASURED_VALUES.iter().find(|(_, value)| value == self);
        f.pad(match (known, self) {
            (_, Self::Reported(name)) => name,
            (Some((name, _)), _) => name,
            (None, _) => "",
        })
    }
}

/// Returns a value, or an error if it is infinite or not a number.
pub(crate) fn finite(value: f64) -> Result<f64, NoValue> {
    value.is_finite().then_some(value).ok_or(NoValue::NotFinite)
}

/// Returns the time of an outcome in seconds, or an error if it is not above zero.
pub(crate) fn time(outcome: &Outcome) -> Result<f64, NoValue> {
    let time = outcome.time.get();
    (time > 0.0 && time.is_finite())
        .then_some(time)
        .ok_or(NoValue::ZeroTime)
}

/// Returns the energy of an outcome in joules, or an error if it is not above zero: then the sensor has not updated
/// yet, and the run would win every comparison.
pub(crate) fn energy(outcome: &Outcome) -> Result<f64, NoValue> {
    let energy = outcome.energy.ok_or(NoValue::NoEnergy)?.get();
    (energy > 0.0 && energy.is_finite())
        .then_some(energy)
        .ok_or(NoValue::ZeroEnergy)
}

/// Returns the number of items of an outcome, or an error if it is unknown or not above zero.
pub(crate) fn items(outcome: &Outcome) -> Result<f64, NoValue> {
    outcome
        .items
        .filter(|items| *items > 0.0 && items.is_finite())
        .ok_or(NoValue::NoItems)
}

/// Whether less or more of a value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Less of the value is better.
    Least,
    /// More of the value is better.
    Most,
}

impl Direction {
    /// Returns the value as a cost (less is better): negated if more of the value is better.
    pub(crate) fn as_cost(self, value: f64) -> f64 {
        match self {
            Self::Least => value,
            Self::Most => -value,
        }
    }
}

/// A value and whether less or more of it is better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aim {
    /// The value to minimise or maximise.
    pub value: Value,
    /// Whether the value is minimised or maximised.
    pub direction: Direction,
}

impl Aim {
    /// Less time and less energy, as on the axes of figure 1 of power_capping_2022.
    pub const TIME_AND_ENERGY: [Self; 2] = [Self::least(Value::Time), Self::least(Value::Energy)];

    /// Creates the aim to minimise a value.
    pub const fn least(value: Value) -> Self {
        Self {
            value,
            direction: Direction::Least,
        }
    }

    /// Creates the aim to maximise a value.
    pub const fn most(value: Value) -> Self {
        Self {
            value,
            direction: Direction::Most,
        }
    }
}

/// The error that a text names a value without `:min` or `:max`, although the direction is not obvious.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` needs a direction: write `{0}:min` or `{0}:max`")]
pub struct AimError(String);

impl FromStr for Aim {
    type Err = AimError;

    /// Parses texts such as `time`, `accuracy:max` and `latency_p99:min`.
    fn from_str(text: &str) -> Result<Self, AimError> {
        let (name, direction) = match text.rsplit_once(':') {
            Some((name, "min")) => (name, Some(Direction::Least)),
            Some((name, "max")) => (name, Some(Direction::Most)),
            _ => (text, None),
        };
        let value = Value::named(name.trim());
        direction
            .or_else(|| value.usual_direction())
            .map(|direction| Self { direction, value })
            .ok_or_else(|| AimError(text.to_owned()))
    }
}

impl Display for Aim {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let direction = match self.direction {
            Direction::Least => "min",
            Direction::Most => "max",
        };
        f.pad(&format!("{}:{direction}", self.value))
    }
}
