//! Limits that a chosen configuration must meet.

use sweetspot_quantity::{Quantity, Ratio};

use crate::objective::same;
use crate::{Basis, NoValue, Outcome, Value};

/// A bound on a value, such as `time<=+5%`.
///
/// The limit applies to the mean over the runs, without an allowance for noise. A value equal to the bound meets the
/// limit, and so does one that misses it only by floating-point rounding (one part in 10^12). A percentage is
/// relative to the absolute value of the reference; therefore `+5%` means upwards for negative values too. A
/// reported value is in SI units unless its name ends in another unit (`latency_ms`); a bound without a unit is in
/// the unit of the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub(crate) value: Value,
    pub(crate) side: Side,
    pub(crate) level: Level,
}

/// Whether a limit allows the values below or above its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Values up to the bound, written `<=`.
    AtMost,
    /// Values from the bound on, written `>=`.
    AtLeast,
}

/// The bound of a limit, relative or absolute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    /// The allowed change against the reference, as a share; negative if the bound is below the reference.
    Relative(Ratio),
    /// The bound itself, in the base unit of its dimension.
    Absolute(f64, Dimension),
}

/// The physical dimension of a value, which determines the units that its limit may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Time,
    Energy,
    Power,
    Frequency,
    Share,
    Unitless,
}

/// A limit that an outcome does not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokenLimit {
    /// The limit that the outcome does not meet.
    pub limit: Limit,
    /// By how much the outcome misses the limit, or why that is unknown.
    pub excess: Result<Excess, NoValue>,
}

/// By how much an outcome misses a limit, in the unit of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excess {
    /// The outcome's value of the quantity that the limit bounds.
    pub value: f64,
    /// The largest or smallest value that the limit allows.
    pub allowed: f64,
}

impl Excess {
    /// The distance between the outcome's value and the allowed value, as a share of the allowed value; `None` if the
    /// allowed value is zero.
    pub fn relative(&self) -> Option<Ratio> {
        let share = (self.value - self.allowed).abs() / self.allowed.abs();
        share.is_finite().then_some(Ratio::new(share))
    }
}

impl std::fmt::Display for BrokenLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.excess {
            Ok(excess) => match excess.relative() {
                Some(share) => write!(f, "misses the limit `{}` by {share:.1}", self.limit),
                None => write!(
                    f,
                    "misses the limit `{}` with the value {}",
                    self.limit, excess.value
                ),
            },
            Err(reason) => write!(
                f,
                "cannot be checked against the limit `{}`: {reason}",
                self.limit
            ),
        }
    }
}

impl Limit {
    /// The value that the limit applies to, such as the time.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// The side of the bound that is allowed.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether the bound is a percentage of the reference.
    pub const fn is_relative(&self) -> bool {
        matches!(self.level, Level::Relative(_))
    }

    /// The largest or smallest value that the limit allows, in the unit of the limited value.
    pub fn allowed<'a>(&self, basis: impl Into<Basis<'a>>) -> Result<f64, NoValue> {
        match self.level {
            Level::Relative(by) => {
                let of_reference = self.value.of(basis.into().reference()?);
                let value = of_reference.map_err(|reason| NoValue::Reference(Box::new(reason)))?;
                Ok(value + value.abs() * by.get())
            }
            Level::Absolute(number, Dimension::Unitless) => Ok(number),
            Level::Absolute(number, _) => Ok(number / unit_factor(&self.value)),
        }
    }

    /// Checks that an outcome meets the limit.
    pub fn check<'a>(
        &self,
        outcome: &Outcome,
        basis: impl Into<Basis<'a>>,
    ) -> Result<(), Box<BrokenLimit>> {
        let broken = |excess| {
            Err(Box::new(BrokenLimit {
                limit: self.clone(),
                excess,
            }))
        };
        let (value, allowed) = match (self.value.of(outcome), self.allowed(basis)) {
            (Ok(value), Ok(allowed)) => (value, allowed),
            (Err(reason), _) | (_, Err(reason)) => return broken(Err(reason)),
        };
        let is_met = match self.side {
            Side::AtMost => value <= allowed,
            Side::AtLeast => value >= allowed,
        };
        if is_met || same(value, allowed) {
            Ok(())
        } else {
            broken(Ok(Excess { value, allowed }))
        }
    }
}

/// The unit suffixes of reported values' names: each with its factor to the base unit, and its dimension.
const UNIT_SUFFIXES: [(&str, f64, Dimension); 10] = [
    ("_s", 1.0, Dimension::Time),
    ("_ms", 1e-3, Dimension::Time),
    ("_us", 1e-6, Dimension::Time),
    ("_ns", 1e-9, Dimension::Time),
    ("_j", 1.0, Dimension::Energy),
    ("_mj", 1e-3, Dimension::Energy),
    ("_kj", 1e3, Dimension::Energy),
    ("_w", 1.0, Dimension::Power),
    ("_mw", 1e-3, Dimension::Power),
    ("_mhz", 1.0, Dimension::Frequency),
];

/// The unit at the end of a reported value's name: its factor to the base unit, and its dimension.
fn unit_of_name(name: &str) -> Option<(f64, Dimension)> {
    let lower = name.to_ascii_lowercase();
    let ends = |suffix: &str| {
        // A rate (`tokens_per_s`) is not a time.
        lower
            .strip_suffix(suffix)
            .is_some_and(|stem| !stem.ends_with("per"))
    };
    UNIT_SUFFIXES
        .iter()
        .find(|(suffix, ..)| ends(suffix))
        .map(|(_, size, dimension)| (*size, *dimension))
}

/// The factor by which a value in its own unit is multiplied to get the base unit.
fn unit_factor(value: &Value) -> f64 {
    match value {
        Value::Reported(name) => unit_of_name(name).map_or(1.0, |(size, _)| size),
        _ => 1.0,
    }
}

impl Dimension {
    /// The dimension of a value; unknown for a reported value whose name does not end in a unit.
    pub(crate) fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Time | Value::DeviceTime => Some(Self::Time),
            Value::Energy | Value::EnergyPerItem => Some(Self::Energy),
            Value::AveragePower => Some(Self::Power),
            Value::Items | Value::ItemsPerSecond | Value::ItemsPerJoule | Value::Gpus => {
                Some(Self::Unitless)
            }
            Value::Reported(name) => match name.replace('-', "_").as_str() {
                "power_cap" => Some(Self::Power),
                "core_clock" | "memory_clock" => Some(Self::Frequency),
                "batch" => Some(Self::Unitless),
                name => unit_of_name(name).map(|(_, dimension)| dimension),
            },
        }
    }
}

/// Writes a quantity with its unit and without spaces, such as `180W`.
pub(crate) fn compact<Q: Quantity + std::fmt::Display>(value: f64) -> String {
    Q::from_base(value).to_string().replace(' ', "")
}
