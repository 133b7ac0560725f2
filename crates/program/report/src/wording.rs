//! Numbers and sentences in readable form.

use std::time::Duration;

use crate::figure::number;

/// Formats a value with its unit and four significant digits: `15.93 MJ s`.
pub fn format_amount(value: f64, unit: &str) -> String {
    let takes_prefix = unit.starts_with('J') || unit == "W" || unit == "Wh";
    let (scaled, prefix) = match value.abs() {
        _ if !takes_prefix => (value, ""),
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        size if size > 0.0 && size < 0.1 => (value * 1e3, "m"),
        _ => (value, ""),
    };
    match unit {
        "" => number(scaled),
        // Small amounts of money or time keep four significant digits.
        unit if !takes_prefix && scaled != 0.0 && scaled.abs() < 0.1 => {
            let digits = 3 - scaled.abs().log10().floor() as i32;
            format!("{scaled:.0$} {unit}", digits.clamp(4, 12) as usize)
        }
        unit => format!("{} {prefix}{unit}", number(scaled)),
    }
}

/// Formats a relative change: `+5.0 %`.
pub fn format_percent(change: f64) -> String {
    let text = format!("{:+.1} %", 100.0 * change);
    text.replace("-0.0 %", "0.0 %").replace("+0.0 %", "0.0 %")
}

/// Joins names: `a, b and c`; many names become their number and the first and last name.
pub fn join_words(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, .., last] if names.len() > 6 => {
            format!("{} of them, from {first} to {last}", names.len())
        }
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Formats a duration: `1 h 23 min`, `45 s`.
pub fn duration_text(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    match (hours, minutes) {
        (0, 0) if seconds < 10 => format!("{:.1} s", time.as_secs_f64()),
        (0, 0) => format!("{seconds} s"),
        (0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_prefixes() {
        assert_eq!(format_amount(15_934_000.0, "J s"), "15.93 MJ s");
        assert_eq!(format_amount(0.92, ""), "0.92");
        assert_eq!(format_amount(264.1, "s"), "264.1 s");
        assert_eq!(format_amount(0.0012, "J/item"), "1.2 mJ/item");
        assert_eq!(format_amount(0.003_993_4, "EUR"), "0.003993 EUR");
        assert_eq!(format_amount(0.0, "EUR"), "0 EUR");
    }

    #[test]
    fn durations_have_readable_units() {
        let text = |seconds: f64| duration_text(Duration::from_secs_f64(seconds));
        assert_eq!(text(3.21), "3.2 s");
        assert_eq!(text(45.0), "45 s");
        assert_eq!(text(150.0), "2 min 30 s");
        assert_eq!(text(8000.0), "2 h 13 min");
    }
}
