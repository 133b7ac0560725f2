//! What a choice must keep to.

use sweetspot_quantity::{Quantity, Ratio};

use crate::objective::same;
use crate::{Basis, NoValue, Outcome, Value};

/// A bound on a value, such as `time<=+5%`.
///
/// It is held against the mean over the runs as it is, without an allowance for noise; a value at the bound
/// keeps to it, and so does one that misses it by the rounding of arithmetic (one part in 10^12). A
/// percentage is of the size of the reference's value, so that `+5%` is upwards for negative ones too. A
/// reported value is taken to be in SI units, unless its name ends in another (`latency_ms`); a bare number
/// is in the value's own unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub(crate) value: Value,
    pub(crate) side: Side,
    pub(crate) level: Level,
}

/// Which side of a bound is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
}

/// Where a bound lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    /// So much above the reference; negative below.
    Relative(Ratio),
    /// In base units of a dimension.
    Absolute(f64, Dimension),
}

/// What a number measures, as told by its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Time,
    Energy,
    Power,
    Frequency,
    Share,
    Bare,
}

/// A limit that an outcome does not keep to.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// The limit.
    pub limit: Limit,
    /// By how much, or why that is not known.
    pub by: Result<Excess, NoValue>,
}

/// By how much a limit is missed, in the value's own unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Excess {
    /// What there is.
    pub value: f64,
    /// What is allowed.
    pub allowed: f64,
}

impl Excess {
    /// The distance as a share of what is allowed; nothing where that is zero.
    pub fn relative(&self) -> Option<Ratio> {
        let share = (self.value - self.allowed).abs() / self.allowed.abs();
        share.is_finite().then_some(Ratio::new(share))
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.by {
            Ok(excess) => match excess.relative() {
                Some(share) => write!(f, "misses `{}` by {share:.1}", self.limit),
                None => write!(f, "misses `{}` at {}", self.limit, excess.value),
            },
            Err(reason) => write!(f, "cannot be held to `{}`: {reason}", self.limit),
        }
    }
}

impl Limit {
    /// Of what.
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Which side is allowed.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether it is a percentage of the reference.
    pub const fn is_relative(&self) -> bool {
        matches!(self.level, Level::Relative(_))
    }

    /// The most or least that is allowed, in the value's own unit.
    pub fn allowed<'a>(&self, basis: impl Into<Basis<'a>>) -> Result<f64, NoValue> {
        match self.level {
            Level::Relative(by) => {
                let of_reference = self.value.of(basis.into().reference()?);
                let value = of_reference.map_err(|reason| NoValue::Reference(Box::new(reason)))?;
                Ok(value + value.abs() * by.get())
            }
            Level::Absolute(number, Dimension::Bare) => Ok(number),
            Level::Absolute(number, _) => Ok(number / own_unit(&self.value)),
        }
    }

    /// Whether an outcome keeps to it.
    pub fn check<'a>(
        &self,
        outcome: &Outcome,
        basis: impl Into<Basis<'a>>,
    ) -> Result<(), Box<Broken>> {
        let broken = |by| {
            Err(Box::new(Broken {
                limit: self.clone(),
                by,
            }))
        };
        let (value, allowed) = match (self.value.of(outcome), self.allowed(basis)) {
            (Ok(value), Ok(allowed)) => (value, allowed),
            (Err(reason), _) | (_, Err(reason)) => return broken(Err(reason)),
        };
        let kept = match self.side {
            Side::AtMost => value <= allowed,
            Side::AtLeast => value >= allowed,
        };
        if kept || same(value, allowed) {
            Ok(())
        } else {
            broken(Ok(Excess { value, allowed }))
        }
    }
}

/// Units that end the name of a reported value, and their size in SI units.
const ENDINGS: [(&str, f64, Dimension); 10] = [
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

fn ending(name: &str) -> Option<(f64, Dimension)> {
    let lower = name.to_ascii_lowercase();
    let ends = |ending: &str| {
        // A rate (`tokens_per_s`) is not a time.
        lower
            .strip_suffix(ending)
            .is_some_and(|stem| !stem.ends_with("per"))
    };
    ENDINGS
        .iter()
        .find(|(ending, ..)| ends(ending))
        .map(|(_, size, dimension)| (*size, *dimension))
}

/// The size of the unit that a value is given in.
fn own_unit(value: &Value) -> f64 {
    match value {
        Value::Reported(name) => ending(name).map_or(1.0, |(size, _)| size),
        _ => 1.0,
    }
}

impl Dimension {
    /// Of a value; unknown for a reported one whose name does not say.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Time | Value::DeviceTime => Some(Self::Time),
            Value::Energy | Value::EnergyPerItem => Some(Self::Energy),
            Value::AveragePower => Some(Self::Power),
            Value::Items | Value::ItemsPerSecond | Value::ItemsPerJoule | Value::Gpus => {
                Some(Self::Bare)
            }
            Value::Reported(name) => match name.replace('-', "_").as_str() {
                "power_cap" => Some(Self::Power),
                "core_clock" | "memory_clock" => Some(Self::Frequency),
                "batch" => Some(Self::Bare),
                name => ending(name).map(|(_, dimension)| dimension),
            },
        }
    }
}

/// The text of a quantity without spaces.
pub(crate) fn compact<Q: Quantity + std::fmt::Display>(value: f64) -> String {
    Q::from_base(value).to_string().replace(' ', "")
}
