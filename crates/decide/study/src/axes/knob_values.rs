//! The values of one knob, as people write them: `150..300:5`, `150,180,210`, `all`.

use std::fmt::Display;

use sweetspot_device::Domain;
use sweetspot_quantity::{ParseQuantityError, Quantity, parse_bare};

/// More values than this on one axis are a slip of the pen.
pub const MOST_VALUES: usize = 10_000;

/// An axis that cannot be explored.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AxisError {
    /// No values.
    #[error(
        "the axis `{0}` is empty: write `all`, a range such as 150..300:5, or a list such as 150,180,210"
    )]
    Empty(String),
    /// A value that is not a quantity.
    #[error("in the axis `{axis}`, {problem}")]
    Value {
        /// As written.
        axis: String,
        /// What is wrong.
        problem: ParseQuantityError,
    },
    /// A range without a step.
    #[error("the range `{0}` has no step: write {0}:5, for example")]
    NoStep(String),
    /// A step of nothing or less.
    #[error("the range `{0}` has a step that leads nowhere: the step must be more than zero")]
    Step(String),
    /// A range from high to low.
    #[error("the range `{axis}` is reversed: write {low}..{high}:{step}")]
    Reversed {
        /// As written.
        axis: String,
        /// Its lower end.
        low: String,
        /// Its upper end.
        high: String,
        /// Its step.
        step: String,
    },
    /// A value written twice.
    #[error("the axis `{axis}` has {value} twice")]
    Duplicate {
        /// As written.
        axis: String,
        /// Which value.
        value: String,
    },
    /// More values than anybody means.
    #[error("the axis `{axis}` has {count} values, more than {MOST_VALUES}: take a larger step")]
    TooMany {
        /// As written.
        axis: String,
        /// How many.
        count: u64,
    },
    /// A value that the device does not offer.
    #[error("{value} is not supported by {device}: {offered}")]
    NotOffered {
        /// Which value.
        value: String,
        /// By whom.
        device: String,
        /// What is offered.
        offered: String,
    },
}

/// Reads an axis over what `device` offers. `all` is every level, or the range in steps of
/// `usual_step` with both its ends.
pub fn parse_axis<Q: Quantity + Display>(
    text: &str,
    domain: &Domain<Q>,
    usual_step: Q,
    device: &str,
) -> Result<Vec<Q>, AxisError> {
    let text = text.trim();
    let values = if text == "all" {
        everything(text, domain, usual_step)?
    } else if let Some((low, rest)) = text.split_once("..") {
        range(text, low, rest)?
    } else {
        list(text)?
    };
    if values.is_empty() {
        return Err(AxisError::Empty(text.to_owned()));
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(AxisError::Duplicate {
                axis: text.to_owned(),
                value: value.to_string(),
            });
        }
        if !domain.contains(*value) {
            return Err(AxisError::NotOffered {
                value: value.to_string(),
                device: device.to_owned(),
                offered: domain.describe_nearest(*value),
            });
        }
    }
    Ok(values)
}

fn everything<Q: Quantity + Display>(
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

/// From the lower end in steps as far as the upper one; a hair of rounding does not lose the end.
fn steps<Q: Quantity>(axis: &str, low: Q, high: Q, step: Q) -> Result<Vec<Q>, AxisError> {
    let count = ((high.base() - low.base()) / step.base() + 1e-9).floor();
    if count >= MOST_VALUES as f64 {
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

fn list<Q: Quantity + Display>(axis: &str) -> Result<Vec<Q>, AxisError> {
    if axis.is_empty() {
        return Err(AxisError::Empty(axis.to_owned()));
    }
    let count = axis.split(',').count();
    if count > MOST_VALUES {
        return Err(AxisError::TooMany {
            axis: format!("{}...", axis.chars().take(20).collect::<String>()),
            count: count as u64,
        });
    }
    axis.split(',').map(|text| value(axis, text)).collect()
}

fn value<Q: Quantity>(axis: &str, text: &str) -> Result<Q, AxisError> {
    parse_bare(text).map_err(|problem| AxisError::Value {
        axis: axis.to_owned(),
        problem,
    })
}
