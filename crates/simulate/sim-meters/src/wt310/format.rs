//! Numbers as the meter writes and reads them.

/// Writes a value in engineering notation with this number of digits: `103.79E+00`.
pub(super) fn engineering(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return format!("{:.1$}E+00", 0.0, digits - 1);
    }
    let rounded: f64 = format!("{value:.*e}", digits - 1).parse().unwrap_or(value);
    let decimal = rounded.abs().log10().floor() as i32;
    let exponent = decimal.div_euclid(3) * 3;
    let mantissa = rounded / 10f64.powi(exponent);
    let before = (decimal - exponent + 1).max(1) as usize;
    let sign = if exponent < 0 { '-' } else { '+' };
    let places = digits.saturating_sub(before);
    format!("{mantissa:.places$}E{sign}{:02}", exponent.abs())
}

/// Reads a number with an optional unit: `0.1`, `100E-03`, `100MS`, `5A`.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_uppercase();
    let units = [
        ("MS", 1e-3),
        ("MA", 1e-3),
        ("S", 1.0),
        ("A", 1.0),
        ("V", 1.0),
    ];
    let with_unit = units.iter().find_map(|(unit, factor)| {
        let value: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(value * factor)
    });
    with_unit
        .or_else(|| text.parse().ok())
        .filter(|value| value.is_finite())
}

/// Reads a switch: `ON`, `OFF`, `1`, `0`.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text.trim().to_ascii_uppercase().as_str() {
        "ON" => Some(true),
        "OFF" => Some(false),
        other => other.parse::<i32>().ok().map(|value| value != 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_five_digits() {
        let cases = [
            (103.79, "103.79E+00"),
            (1.01434, "1.0143E+00"),
            (2150.04, "2.1500E+03"),
            (999.996, "1.0000E+03"),
            (0.04941, "49.410E-03"),
            (-12.3456, "-12.346E+00"),
            (0.0, "0.0000E+00"),
            (1e-9, "1.0000E-09"),
        ];
        for (value, text) in cases {
            assert_eq!(engineering(value, 5), text);
        }
    }

    #[test]
    fn units_are_read() {
        assert_eq!(number("0.25"), Some(0.25));
        assert_eq!(number("100ms"), Some(0.1));
        assert_eq!(number("500MA"), Some(0.5));
        assert_eq!(number(" 300V"), Some(300.0));
        assert_eq!(number("1E-01"), Some(0.1));
        assert_eq!([number("x"), number(""), number("INF")], [None; 3]);
        assert_eq!(
            [switch("on"), switch("0"), switch("x")],
            [Some(true), Some(false), None]
        );
    }
}
