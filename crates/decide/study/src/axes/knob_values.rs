//! Parses the values of one knob as users write them: `150..300:5`, `150,180,210`, `all`.

use std::fmt::Display;

use sweetspot_device::Domain;
use sweetspot_quantity::{ParseQuantityError, Quantity, parse_bare};

/// The maximum number of values on one axis; more are rejected as a probable typing error.
const MAX_AXIS_VALUES: usize = 10_000;

/// Why the values of a knob cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AxisError {
    /// The axis has no values.
    #[error(
        "the axis `{0}` is empty: write `all`, a range such as 150..300:5, or a list such as 150,180,210"
    )]
    Empty(String),
    /// A value is not a number with a valid unit.
    #[error("in the axis `{axis}`, {problem}")]
    Value {
        /// The axis as the user wrote it.
        axis: String,
        /// What is wrong with the value.
        problem: ParseQuantityError,
    },
    /// A range is written with a dash.
    #[error("`{axis}` is not a range: write {range}")]
    Dash {
        /// The axis as the user wrote it.
        axis: String,
        /// The range that was probably meant.
        range: String,
    },
    /// A range has no step.
    #[error("the range `{0}` has no step: write {0}:5, for example")]
    NoStep(String),
    /// A range has a step of zero or less.
    #[error("the range `{0}` has the wrong step: the step must be more than zero")]
    Step(String),
    /// A range runs from high to low.
    #[error("the range `{axis}` is reversed: write {low}..{high}:{step}")]
    Reversed {
        /// The axis as the user wrote it.
        axis: String,
        /// The lower end of the range.
        low: String,
        /// The upper end of the range.
        high: String,
        /// The step of the range.
        step: String,
    },
    /// A value is given twice.
    #[error("the axis `{axis}` has {value} twice")]
    Duplicate {
        /// The axis as the user wrote it.
        axis: String,
        /// The value that occurs twice.
        value: String,
    },
    /// The axis has too many values.
    #[error(
        "the axis `{axis}` has {count} values, more than {MAX_AXIS_VALUES}: take a larger step"
    )]
    TooMany {
        /// The axis as the user wrote it.
        axis: String,
        /// The number of values on the axis.
        count: u64,
    },
    /// The device does not support a value.
    #[error("{value} is not supported by {device}: {supported}")]
    NotSupported {
        /// The value that the device does not support.
        value: String,
        /// The name of the device.
        device: String,
        /// A phrase with supported values, such as `choose 150 W to 300 W`.
        supported: String,
    },
}

/// The values of an axis that the device supports.
#[derive(Clone, Debug, PartialEq)]
pub struct KnobValues<Q> {
    /// The values, without duplicates.
    pub values: Vec<Q>,
    /// The values that the device does not have, each with the nearest one that replaces it.
    pub replaced: Vec<(Q, Q)>,
}

/// Parses the values of an axis. A value between two levels of `device` is replaced by the nearest level: nobody knows
/// the levels of a clock by heart. `all` means every supported level, or the supported range in steps of `usual_step`
/// with both ends.
pub fn parse_axis<Q: Quantity + Display>(
    text: &str,
    domain: &Domain<Q>,
    usual_step: Q,
    device: &str,
) -> Result<KnobValues<Q>, AxisError> {
    let text = text.trim();
    let given = if text == "all" {
        all_values(text, domain, usual_step)?
    } else if let Some((low, rest)) = text.split_once("..") {
        range(text, low, rest)?
    } else if let Some((low, high)) = dashed_range::<Q>(text) {
        return Err(AxisError::Dash {
            axis: text.to_owned(),
            range: format!("{}..{}:{}", low.base(), high.base(), usual_step.base()),
        });
    } else {
        list(text)?
    };
    if given.is_empty() {
        return Err(AxisError::Empty(text.to_owned()));
    }
    let (mut values, mut replaced) = (Vec::new(), Vec::new());
    for (index, value) in given.iter().enumerate() {
        if given[..index].contains(value) {
            return Err(AxisError::Duplicate {
                axis: text.to_owned(),
                value: value.to_string(),
            });
        }
        let nearest = domain.nearest(*value);
        let nearest = nearest.ok_or_else(|| AxisError::NotSupported {
            value: value.to_string(),
            device: device.to_owned(),
            supported: domain.describe_nearest(*value),
        })?;
        if nearest != *value {
            replaced.push((*value, nearest));
        }
        if !values.contains(&nearest) {
            values.push(nearest);
        }
    }
    Ok(KnobValues { values, replaced })
}

/// The ends of a range that is written with a dash, such as `150-300`; `None` for anything else.
fn dashed_range<Q: Quantity>(text: &str) -> Option<(Q, Q)> {
    let (low, high) = text.split_once('-')?;
    let (low, high) = (parse_bare::<Q>(low).ok()?, parse_bare::<Q>(high).ok()?);
    (low < high).then_some((low, high))
}

/// The values of `all`: every supported level, or the supported range in steps.
fn all_values<Q: Quantity + Display>(
    axis: &str,
    domain: &Domain<Q>,
    usual_step: Q,
) -> Result<Vec<Q>, AxisError> {
    match domain {
        Domain::Levels(levels) => Ok(levels.clone()),
        Domain::Range { min, max } => {
            let mut values = steps(axis, *min, *max, usual_step)?;
            if values.last().is_none_or(|last| last < max) {
                values.push(*max);
            }
            Ok(values)
        }
    }
}

/// Parses a range such as `150..300:5`.
fn range<Q: Quantity + Display>(axis: &str, low: &str, rest: &str) -> Result<Vec<Q>, AxisError> {
    let (high, step) = rest
        .split_once(':')
        .ok_or_else(|| AxisError::NoStep(axis.to_owned()))?;
    let (low, high, step) = (
        value::<Q>(axis, low)?,
        value::<Q>(axis, high)?,
        value::<Q>(axis, step)?,
    );
    if step.base() <= 0.0 {
        return Err(AxisError::Step(axis.to_owned()));
    }
    if high < low {
        return Err(AxisError::Reversed {
            axis: axis.to_owned(),
            low: high.base().to_string(),
            high: low.base().to_string(),
            step: step.base().to_string(),
        });
    }
    steps(axis, low, high, step)
}

/// The values from `low` to `high` in equal steps, both ends included even if rounding errors occur.
fn steps<Q: Quantity>(axis: &str, low: Q, high: Q, step: Q) -> Result<Vec<Q>, AxisError> {
    let count = ((high.base() - low.base()) / step.base() + 1e-9).floor();
    if count >= MAX_AXIS_VALUES as f64 {
        return Err(AxisError::TooMany {
            axis: axis.to_owned(),
            count: (count as u64).saturating_add(1),
        });
    }
    let value = |index: u32| low.base() + f64::from(index) * step.base();
    Ok((0..=count as u32)
        .map(|index| Q::from_base(value(index).min(high.base())))
        .collect())
}

/// Parses a list such as `150,180,210`.
fn list<Q: Quantity + Display>(axis: &str) -> Result<Vec<Q>, AxisError> {
    if axis.is_empty() {
        return Err(AxisError::Empty(axis.to_owned()));
    }
    let count = axis.split(',').count();
    if count > MAX_AXIS_VALUES {
        return Err(AxisError::TooMany {
            axis: format!("{}...", axis.chars().take(20).collect::<String>()),
            count: count as u64,
        });
    }
    axis.split(',').map(|text| value(axis, text)).collect()
}

/// Parses one value of an axis; `axis` is the whole text, for error messages.
fn value<Q: Quantity>(axis: &str, text: &str) -> Result<Q, AxisError> {
    parse_bare(text).map_err(|problem| AxisError::Value {
        axis: axis.to_owned(),
        problem,
    })
}
