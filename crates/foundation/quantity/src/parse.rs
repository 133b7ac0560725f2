//! Parsing of quantities.

use std::marker::PhantomData;

use crate::{Quantity, Scale};

/// The error when a text is not a quantity of the expected kind.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{text}` is not a {kind}: write {correction} ({units})")]
pub struct ParseQuantityError {
    text: Box<str>,
    kind: &'static str,
    /// What to write: the text with the unit that was probably meant, or a description.
    correction: Box<str>,
    units: Box<str>,
}

impl ParseQuantityError {
    /// Creates the error for a text that is not a quantity `Q`.
    fn from_text<Q: Quantity>(text: &str) -> Self {
        let units: Vec<_> = Q::UNITS
            .iter()
            .map(|unit| match unit.symbol {
                "" => "none",
                symbol => symbol,
            })
            .collect();
        let trimmed = text.trim();
        let (number, symbol) = trimmed.split_at(number_length(trimmed));
        let meant = similar_unit::<Q>(symbol.trim_start());
        let meant = meant.filter(|_| number.parse::<f64>().is_ok());
        Self {
            text: text.into(),
            kind: Q::NAME,
            correction: match meant {
                Some(unit) => format!("{number}{unit}").into(),
                None => "a number and a unit".into(),
            },
            units: units.join(", ").into(),
        }
    }
}

/// The unit that a user probably meant with an unknown one: `min` for `m` or `minutes`, `MHz` for `mhz`.
fn similar_unit<Q: Quantity>(symbol: &str) -> Option<&'static str> {
    let written = symbol.to_lowercase();
    if written.is_empty() {
        return None;
    }
    let symbols = || Q::UNITS.iter().map(|unit| unit.symbol);
    let same = symbols().find(|known| known.to_lowercase() == written);
    let longer = || symbols().filter(|known| known.to_lowercase().starts_with(&written));
    let shorter = || {
        let known = symbols().filter(|known| !known.is_empty());
        known.filter(|known| written.starts_with(&known.to_lowercase()))
    };
    same.or_else(|| longer().max_by_key(|known| known.len()))
        .or_else(|| shorter().max_by_key(|known| known.len()))
}

/// Parses a number and a unit; a missing unit is an error unless the quantity has none.
pub(crate) fn parse<Q: Quantity>(text: &str) -> Result<Q, ParseQuantityError> {
    let trimmed = text.trim();
    let split = number_length(trimmed);
    let (number, symbol) = (&trimmed[..split], trimmed[split..].trim_start());
    Q::UNITS
        .iter()
        .find(|unit| unit.symbol == symbol)
        .and_then(|unit| scaled(number, unit.scale))
        .map(Q::from_base)
        .ok_or_else(|| ParseQuantityError::from_text::<Q>(text))
}

/// Parses a command-line value. A number without a unit is in base units: `180` is 180 W.
pub fn parse_bare<Q: Quantity>(text: &str) -> Result<Q, ParseQuantityError> {
    let trimmed = text.trim();
    if number_length(trimmed) == trimmed.len() {
        return scaled(trimmed, Scale::Ten(0))
            .map(Q::from_base)
            .ok_or_else(|| ParseQuantityError::from_text::<Q>(text));
    }
    parse(text)
}

/// Deserialises a quantity from a string such as `180 W`.
pub(crate) fn deserialize<'de, Q: Quantity, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Q, D::Error> {
    struct Visitor<Q>(PhantomData<Q>);
    impl<Q: Quantity> serde::de::Visitor<'_> for Visitor<Q> {
        type Value = Q;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            let example = Q::UNITS.iter().rev().find(|unit| unit.printed);
            let symbol = example.map_or(Q::BASE, |unit| unit.symbol);
            write!(f, "a {} in quotes, such as \"1.5 {symbol}\"", Q::NAME)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Q, E> {
            parse(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Visitor(PhantomData))
}

/// The length of the number at the start of the text. An `e` is an exponent only if digits follow.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits_from = |start: usize| {
        bytes[start..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
            .count()
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mantissa = sign + digits_from(sign);
    if matches!(bytes.get(mantissa), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(mantissa + 1), Some(b'+' | b'-')));
        let exponent = digits_from((mantissa + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            return mantissa + 1 + sign + exponent;
        }
    }
    mantissa
}

/// Parses a number and converts it to base units. A power of ten is added to the exponent in the text, so the
/// result is rounded only once.
fn scaled(number: &str, scale: Scale) -> Option<f64> {
    let value = match scale {
        Scale::Ten(0) => number.parse().ok()?,
        Scale::Ten(shift) => {
            let (mantissa, exponent) = match number.split_once(['e', 'E']) {
                Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
                None => (number, 0),
            };
            let exponent = exponent.checked_add(shift)?;
            format!("{mantissa}e{exponent}").parse().ok()?
        }
        Scale::Factor(factor) => number.parse::<f64>().ok()? * factor,
    };
    f64::is_finite(value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Megahertz, Seconds, Watts};

    #[test]
    fn an_unknown_unit_is_answered_with_the_one_that_was_meant() {
        let time = |text: &str| parse_bare::<Seconds>(text).unwrap_err().to_string();
        assert!(time("5m").starts_with("`5m` is not a time: write 5min ("));
        assert!(time("2 hours").contains("write 2h ("));
        assert!(time("30 sec").contains("write 30s ("));
        assert!(time("5x").contains("write a number and a unit ("));
        assert!(time("m").contains("write a number and a unit ("));
        let clock = parse_bare::<Megahertz>("900mhz").unwrap_err();
        assert!(clock.to_string().contains("write 900MHz ("), "{clock}");
        let power = parse_bare::<Watts>("180 watts").unwrap_err();
        assert!(power.to_string().contains("write 180W ("), "{power}");
    }
}
