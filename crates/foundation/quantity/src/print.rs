//! Printing of quantities: exact by default, rounded if a precision is given (`{:.1}`).

use std::fmt::{Formatter, Result};

use crate::{Quantity, Scale};

/// Writes a quantity with its unit, exactly or with the formatter's precision.
pub(crate) fn print<Q: Quantity>(quantity: Q, f: &mut Formatter<'_>) -> Result {
    let value = quantity.base();
    let (symbol, exponent) = unit_for::<Q>(value);
    let number = match f.precision() {
        Some(digits) => format!("{:.digits$}", scale_down(value, exponent)),
        None => exact(value, exponent),
    };
    let text = format!("{number} {symbol}");
    match f.width() {
        Some(width) => write!(f, "{text:>width$}"),
        None => f.write_str(&text),
    }
}

/// The symbol and exponent of the unit for printing: the largest in which the value is at least 1, or else the
/// smallest.
fn unit_for<Q: Quantity>(value: f64) -> (&'static str, i32) {
    let mut printed = Q::UNITS
        .iter()
        .filter(|unit| unit.printed)
        .filter_map(|unit| match unit.scale {
            Scale::Ten(exponent) => Some((unit.symbol, exponent)),
            Scale::Factor(_) => None,
        });
    let smallest = printed.next().unwrap_or((Q::BASE, 0));
    if value == 0.0 || !value.is_finite() {
        return Q::UNITS
            .iter()
            .find(|unit| unit.printed && unit.scale == Scale::Ten(0))
            .map_or(smallest, |unit| (unit.symbol, 0));
    }
    printed
        .rfind(|(_, exponent)| value.abs() >= 10f64.powi(*exponent))
        .unwrap_or(smallest)
}

/// Divides a value by ten to the power `exponent`.
fn scale_down(value: f64, exponent: i32) -> f64 {
    if exponent >= 0 {
        value / 10f64.powi(exponent)
    } else {
        value * 10f64.powi(-exponent)
    }
}

/// The shortest decimal text that parses back to the same value, in the unit with this power of ten.
fn exact(value: f64, unit_exponent: i32) -> String {
    if !value.is_finite() {
        return value.to_string();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let point = exponent - unit_exponent + 1;
    let number = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else {
        let point = point.unsigned_abs() as usize;
        if point >= digits.len() {
            format!("{digits}{}", "0".repeat(point - digits.len()))
        } else {
            format!("{}.{}", &digits[..point], &digits[point..])
        }
    };
    let number = if value == 0.0 { "0" } else { &number };
    format!("{sign}{number}")
}
