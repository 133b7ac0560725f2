//! The textual form of limits.

use std::fmt::{Display, Formatter};
use std::str::FromStr;

use sweetspot_quantity::{Joules, Megahertz, ParseQuantityError, Quantity, Ratio, Seconds, Watts};

use crate::limit::{Dimension, Level, Limit, Side, compact};
use crate::{Objective, Value};

/// A text that is not a valid limit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LimitError {
    /// There is no `<=` or `>=` between a name and a number.
    #[error(
        "`{0}` is not a limit: write the name of a value, <= or >=, and a number, such as time<=+5%"
    )]
    Form(String),
    /// The name of the value has invalid characters.
    #[error("`{limit}` is not a limit: `{name}` is not the name of a value")]
    Name {
        /// The text of the limit.
        limit: String,
        /// The invalid name of the value.
        name: String,
    },
    /// The name is that of an objective which is not a value of a run, so it cannot be limited.
    #[error(
        "`{limit}` is not a limit: {objective} is an objective; limit time, energy or another value instead"
    )]
    Objective {
        /// The text of the limit.
        limit: String,
        /// The objective that the text names.
        objective: Objective,
    },
    /// The bound is a percentage of the reference and has no sign.
    #[error(
        "`{limit}` needs a sign: write {value}{side}+5% or {value}{side}-5%, against the reference"
    )]
    Sign {
        /// The text of the limit.
        limit: String,
        /// The value that the limit bounds.
        value: Value,
        /// The side of the bound that is allowed.
        side: Side,
    },
    /// The bound is not a percentage and has a sign.
    #[error(
        "in `{0}` only a percentage has a sign: write the number alone, or a percentage of the reference such as +5%"
    )]
    Signed(String),
    /// The bound is -100% or below, which no value can meet.
    #[error("`{0}` can never be met: no value lies at or below -100% of the reference")]
    Never(String),
    /// The number is invalid or has a wrong unit.
    #[error("`{limit}` is not a limit: {reason}")]
    Quantity {
        /// The text of the limit.
        limit: String,
        /// What is wrong with the number.
        reason: ParseQuantityError,
    },
    /// The bound is not a number with a unit that a limit can have.
    #[error(
        "`{0}` is not a limit: write a number, and a unit where the value has one (s, ms, J, kJ, W, MHz, %)"
    )]
    Number(String),
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        let (name, side, bound) = [("<=", Side::AtMost), (">=", Side::AtLeast)]
            .into_iter()
            .find_map(|(symbol, side)| {
                let (name, bound) = text.split_once(symbol)?;
                Some((name.trim(), side, bound.trim()))
            })
            .filter(|(name, _, bound)| !name.is_empty() && !bound.is_empty())
            .ok_or_else(|| LimitError::Form(text.to_owned()))?;
        let value = parse_value(name, text)?;
        let level = parse_bound(&value, side, bound, text)?;
        Ok(Self { value, side, level })
    }
}

/// Parses the name of the limited value; `limit` is the whole text, for error messages.
fn parse_value(name: &str, limit: &str) -> Result<Value, LimitError> {
    let is_name = name
        .chars()
        .all(|c| c.is_alphanumeric() || "_-./:".contains(c));
    if !is_name || name.starts_with(|c: char| !c.is_alphabetic() && c != '_') {
        return Err(LimitError::Name {
            limit: limit.to_owned(),
            name: name.to_owned(),
        });
    }
    match (Value::named(name), name.parse::<Objective>()) {
        (Value::Reported(_), Ok(objective)) => Err(LimitError::Objective {
            limit: limit.to_owned(),
            objective,
        }),
        (value, _) => Ok(value),
    }
}

/// Parses the bound, a percentage or a number with a unit.
fn parse_bound(value: &Value, side: Side, bound: &str, limit: &str) -> Result<Level, LimitError> {
    let dimension = Dimension::of_value(value);
    let signed = bound.starts_with(['+', '-']);
    let whole = || limit.to_owned();
    if bound.ends_with('%') {
        let ratio: Ratio = parse_quantity(bound, limit)?;
        return match (signed, dimension) {
            (true, Some(_)) if ratio.get() <= -1.0 => Err(LimitError::Never(whole())),
            (true, _) => Ok(Level::Relative(ratio + Ratio::ZERO)),
            (false, None) => Ok(Level::Absolute(ratio.get(), Dimension::Share)),
            (false, Some(_)) => Err(LimitError::Sign {
                limit: whole(),
                value: value.clone(),
                side,
            }),
        };
    }
    // A plus sign would look like a change against the reference; only reported values can be negative.
    if bound.starts_with('+') || (signed && dimension.is_some()) {
        return Err(LimitError::Signed(whole()));
    }
    let is_reported = matches!(value, Value::Reported(_));
    match dimension {
        Some(Dimension::Unitless) => parse_unitless(bound.strip_suffix("/s").unwrap_or(bound))
            .ok_or_else(|| LimitError::Number(whole())),
        Some(_) if is_reported && parse_unitless(bound).is_some() => {
            parse_unitless(bound).ok_or_else(|| LimitError::Number(whole()))
        }
        Some(dimension) => parse_absolute(dimension, bound, limit),
        None => parse_unitless(bound)
            .or_else(|| {
                let dimensions = [
                    Dimension::Time,
                    Dimension::Energy,
                    Dimension::Power,
                    Dimension::Frequency,
                ];
                dimensions
                    .into_iter()
                    .find_map(|dimension| parse_absolute(dimension, bound, limit).ok())
            })
            .ok_or_else(|| LimitError::Number(whole())),
    }
}

/// Parses a number without a unit; `None` if the text is not a finite number.
fn parse_unitless(text: &str) -> Option<Level> {
    let plain = text
        .trim()
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number = text.trim().parse::<f64>().ok();
    number
        .filter(|number| plain && number.is_finite())
        .map(|number| Level::Absolute(number + 0.0, Dimension::Unitless))
}

/// Parses a number with a unit of this dimension.
fn parse_absolute(dimension: Dimension, text: &str, limit: &str) -> Result<Level, LimitError> {
    let number = match dimension {
        Dimension::Time => parse_quantity::<Seconds>(text, limit)?.get(),
        Dimension::Energy => parse_quantity::<Joules>(text, limit)?.get(),
        Dimension::Power => parse_quantity::<Watts>(text, limit)?.get(),
        Dimension::Frequency => parse_quantity::<Megahertz>(text, limit)?.get(),
        Dimension::Share | Dimension::Unitless => parse_quantity::<Ratio>(text, limit)?.get(),
    };
    Ok(Level::Absolute(number + 0.0, dimension))
}

/// Parses a quantity and returns its value in the base unit.
fn parse_quantity<Q: Quantity + FromStr<Err = ParseQuantityError>>(
    text: &str,
    limit: &str,
) -> Result<Q, LimitError> {
    text.parse().map_err(|reason| LimitError::Quantity {
        limit: limit.to_owned(),
        reason,
    })
}

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::AtMost => "<=",
            Self::AtLeast => ">=",
        })
    }
}

impl Display for Limit {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Relative(ratio) => {
                let sign = if ratio.get() < 0.0 { "" } else { "+" };
                format!("{sign}{}", compact::<Ratio>(ratio.get()))
            }
            Level::Absolute(number, dimension) => match dimension {
                Dimension::Time => compact::<Seconds>(number),
                Dimension::Energy => compact::<Joules>(number),
                Dimension::Power => compact::<Watts>(number),
                Dimension::Frequency => compact::<Megahertz>(number),
                Dimension::Share => compact::<Ratio>(number),
                Dimension::Unitless => number.to_string(),
            },
        };
        f.pad(&format!("{}{}{level}", self.value, self.side))
    }
}
