//! Parses and prints the values of a rule: ranges of quantities, GPUs, lengths of leases.

use std::fmt::Display;
use std::time::Duration;

use sweetspot_quantity::Quantity;

use super::MAX_LEASE;
use super::rule::{Allowed, GpuPattern};

/// The most characters of the file that a message quotes.
const MAX_QUOTED_CHARS: usize = 60;

/// Parses a range such as `150..250 W`. A lower end without a unit has the unit of the upper end.
pub(super) fn parse_range<Q>(text: &str, example: &str) -> Result<Allowed<Q>, String>
where
    Q: Quantity + Display + std::str::FromStr<Err: Display>,
{
    let ends = text.split_once("..");
    let Some((low, high)) = ends.filter(|_| text.len() <= MAX_QUOTED_CHARS) else {
        return Err(format!(
            "{} is not a range: write {example}, or true for any value",
            quote(text)
        ));
    };
    let (low, high) = (low.trim(), high.trim());
    if low.is_empty() || high.is_empty() {
        return Err(format!(
            "the range {} has only one end: write both, such as {example}",
            quote(text)
        ));
    }
    let low = match low.ends_with(char::is_alphabetic) {
        true => low.to_owned(),
        false => {
            let number = high.trim_end_matches(char::is_alphabetic);
            format!("{low} {}", &high[number.len()..])
        }
    };
    let parse = |end: &str| {
        let end: Q = end
            .parse()
            .map_err(|error| format!("{error}; a range is written as {example}"))?;
        match end.base() >= 0.0 {
            true => Ok(end),
            false => Err(format!("{end} is negative: write {example}")),
        }
    };
    // The upper end is the one that the user must write with a unit, so its error comes first.
    let (high, low) = (parse(high)?, parse(&low)?);
    if low > high {
        return Err(format!("the range is reversed: write \"{high}..{low}\""));
    }
    if high.base() == 0.0 {
        return Err(format!("the range allows nothing above 0: write {example}"));
    }
    Ok(Allowed::Range { low, high })
}

/// Parses the UUID of a GPU or its beginning.
pub(super) fn parse_gpu(text: &str) -> Result<GpuPattern, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "{} is in quotes: write the index of a GPU without them",
            quote(text)
        ));
    }
    let vendor = text.get(..4).unwrap_or_default();
    if vendor.eq_ignore_ascii_case("MIG-") {
        return Err(format!(
            "{} is a MIG slice, which has no settings of its own: name its GPU",
            quote(text)
        ));
    }
    let digits = text.get(4..).unwrap_or_default();
    let is_hyphen_place = |place| matches!(place, 8 | 13 | 18 | 23);
    let is_uuid = vendor.eq_ignore_ascii_case("GPU-")
        && (1..=36).contains(&digits.len())
        && digits.bytes().enumerate().all(|(place, byte)| {
            if is_hyphen_place(place) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        });
    match is_uuid {
        true => Ok(GpuPattern::Uuid(text.to_owned())),
        false => Err(format!(
            "{} is neither the index of a GPU, such as 0, nor a UUID or its beginning, such as \"GPU-72f4549c\": \
             `sweetspot devices` lists both",
            quote(text)
        )),
    }
}

/// Parses the length of a lease, such as `24h`, `90m` or `2h 30m`.
pub(super) fn parse_length(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{} is not a length of time: write hours, minutes or seconds, such as \"24h\", \"90m\" or \"2h 30m\"",
            quote(text)
        )
    };
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut last_unit = u64::MAX;
    while !rest.is_empty() {
        let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let (digits, after) = rest.split_at(rest.len() - number.len());
        let after = after.trim_start();
        let symbol_end = after.find(|c: char| !c.is_ascii_alphabetic());
        let (symbol, next) = after.split_at(symbol_end.unwrap_or(after.len()));
        let seconds = match symbol {
            "h" => 3600,
            "m" | "min" => 60,
            "s" => 1,
            _ => return Err(wrong()),
        };
        // Hours come before minutes, and each at most once.
        if seconds >= last_unit {
            return Err(wrong());
        }
        last_unit = seconds;
        let count: u64 = digits.parse().map_err(|_| wrong())?;
        total = total.saturating_add(count.saturating_mul(seconds));
        rest = next.trim_start();
    }
    let length = Duration::from_secs(total);
    if last_unit == u64::MAX {
        return Err(wrong());
    }
    if length.is_zero() {
        return Err("a lease of no length is of no use: write \"1h\", for example".to_owned());
    }
    if length > MAX_LEASE {
        return Err(format!(
            "{} is longer than the longest possible lease: write \"24h\" or less",
            quote(text)
        ));
    }
    Ok(length)
}

/// Prints a length of time, such as `24 h` or `1 h 30 min`.
pub(super) fn length_text(length: Duration) -> String {
    let seconds = length.as_secs();
    let parts = [
        (seconds / 3600, "h"),
        (seconds % 3600 / 60, "min"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    match parts.is_empty() {
        true => "0 s".to_owned(),
        false => parts.join(" "),
    }
}

/// Prints all values that are allowed by at least one of these, such as `100 W to 150 W or 200 W to 250 W`. Ranges
/// that overlap are joined.
pub(super) fn union_text<Q: Quantity + Display>(all: impl Iterator<Item = Allowed<Q>>) -> String {
    let mut ranges: Vec<(Q, Q)> = Vec::new();
    for allowed in all {
        match allowed {
            Allowed::Any => return Allowed::<Q>::Any.to_string(),
            Allowed::Range { low, high } => ranges.push((low, high)),
            Allowed::Nothing => {}
        }
    }
    ranges.sort_by(|(a, _), (b, _)| a.base().total_cmp(&b.base()));
    let mut joined: Vec<(Q, Q)> = Vec::new();
    for (low, high) in ranges {
        match joined.last_mut() {
            Some((_, end)) if low <= *end => {
                if high > *end {
                    *end = high;
                }
            }
            _ => joined.push((low, high)),
        }
    }
    let texts = joined
        .into_iter()
        .map(|(low, high)| Allowed::Range { low, high }.to_string());
    let texts: Vec<String> = texts.collect();
    match texts.is_empty() {
        true => Allowed::<Q>::Nothing.to_string(),
        false => texts.join(" or "),
    }
}

/// Quotes text from the file for a message: on one line, without control characters, and not too long.
pub(super) fn quote(text: &str) -> String {
    let mut quoted: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    if quoted.len() < text.len() {
        quoted.push_str("...");
    }
    format!(
        "`{}`",
        quoted.escape_debug().to_string().replace("\\\"", "\"")
    )
}

#[cfg(test)]
mod tests {
    use sweetspot_quantity::{Megahertz, Watts};

    use super::*;

    fn watts(text: &str) -> Result<Allowed<Watts>, String> {
        parse_range(text, "\"150..250 W\"")
    }

    fn range<Q>(low: Q, high: Q) -> Result<Allowed<Q>, String> {
        Ok(Allowed::Range { low, high })
    }

    #[test]
    fn a_range_needs_its_unit_only_once() {
        let expected = range(Watts::new(150.0), Watts::new(250.0));
        for text in [
            "150..250 W",
            "150..250W",
            " 150 W .. 250 W ",
            "150W..0.25kW",
            "0.15..0.25 kW",
            "1.5e2..250 W",
        ] {
            assert_eq!(watts(text), expected, "{text}");
        }
        let clocks = parse_range::<Megahertz>("0.9..1.4 GHz", "");
        assert_eq!(clocks, range(Megahertz::new(900.0), Megahertz::new(1400.0)));
        assert_eq!(
            watts("250..250 W"),
            range(Watts::new(250.0), Watts::new(250.0))
        );
        assert_eq!(watts("0..250 W"), range(Watts::new(0.0), Watts::new(250.0)));
    }

    #[test]
    fn wrong_ranges_say_what_to_write() {
        for (text, part) in [
            ("", "not a range: write \"150..250 W\", or true"),
            ("250 W", "`250 W` is not a range"),
            ("150-250 W", "not a range"),
            ("..", "has only one end"),
            ("..250 W", "has only one end"),
            ("150 W..", "has only one end"),
            (
                "150..250",
                "`250` is not a power: write a number and a unit",
            ),
            ("150 W..250", "`250` is not a power"),
            ("150..250 MHz", "`250 MHz` is not a power"),
            ("a..250 W", "`a` is not a power"),
            ("150..b W", "`b W` is not a power"),
            ("150..250:5 W", "`250:5 W` is not a power"),
            ("150..inf W", "is not a power"),
            ("nan..250 W", "is not a power"),
            ("150..1e999 W", "is not a power"),
            ("-1..250 W", "-1 W is negative"),
            ("-3..-2 W", "is negative"),
            ("250..150 W", "reversed: write \"150 W..250 W\""),
            ("0..0 W", "nothing above 0"),
            ("1é..é", "is not a power"),
        ] {
            let error = watts(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn lengths_of_leases() {
        for (text, seconds) in [
            ("24h", 86400),
            ("90m", 5400),
            ("90 min", 5400),
            ("2h 30m", 9000),
            ("2h30m5s", 9005),
            (" 45 s ", 45),
            ("0h 1m", 60),
        ] {
            assert_eq!(parse_length(text), Ok(Duration::from_secs(seconds)));
        }
        for (text, part) in [
            ("", "not a length of time"),
            ("24", "not a length of time"),
            ("h", "not a length of time"),
            ("1.5h", "not a length of time"),
            ("-1h", "not a length of time"),
            ("1d", "not a length of time"),
            ("30m 2h", "not a length of time"),
            ("1h 1h", "not a length of time"),
            ("99999999999999999999h", "not a length of time"),
            ("18446744073709551615h", "longer than"),
            ("24h 1s", "longer than the longest possible lease"),
            ("0s", "no length"),
            ("1hé", "not a length of time"),
        ] {
            let error = parse_length(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn lengths_are_printed_without_zero_parts() {
        let text = |seconds| length_text(Duration::from_secs(seconds));
        assert_eq!(text(86400), "24 h");
        assert_eq!(text(5400), "1 h 30 min");
        assert_eq!(text(3605), "1 h 5 s");
        assert_eq!(text(0), "0 s");
    }

    #[test]
    fn gpus_are_indices_or_uuids() {
        for text in [
            "GPU-7",
            "GPU-72f4549c",
            "GPU-72f4549c-",
            "gpu-72F4549C-B587",
            "GPU-72f4549c-b587-f09a-a79f-9a005f4bf333",
        ] {
            assert_eq!(parse_gpu(text), Ok(GpuPattern::Uuid(text.to_owned())));
        }
        for (text, part) in [
            ("", "neither"),
            ("0", "without them"),
            ("all", "neither"),
            ("GPU-", "neither"),
            ("GPU", "neither"),
            ("GPU-xyz", "neither"),
            ("72f4549c", "neither"),
            ("GPU-72f4549cb587", "neither"),
            ("GPU-72f4549c-b587-f09a-a79f-9a005f4bf3330", "neither"),
            ("MIG-72f4549c", "name its GPU"),
            ("GPé-1", "neither"),
        ] {
            let error = parse_gpu(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn overlapping_ranges_are_joined() {
        let of = |low, high| Allowed::Range {
            low: Watts::new(low),
            high: Watts::new(high),
        };
        let text = |all: &[Allowed<Watts>]| union_text(all.iter().copied());
        assert_eq!(text(&[]), "no value");
        assert_eq!(
            text(&[of(200.0, 250.0), of(100.0, 150.0)]),
            "100 W to 150 W or 200 W to 250 W"
        );
        assert_eq!(
            text(&[of(100.0, 300.0), of(150.0, 200.0)]),
            "100 W to 300 W"
        );
        assert_eq!(
            text(&[of(100.0, 200.0), of(200.0, 250.0)]),
            "100 W to 250 W"
        );
        assert_eq!(
            text(&[of(1.0, 2.0), Allowed::Any]),
            "any value that the GPU supports"
        );
    }

    #[test]
    fn quoted_text_stays_on_one_line() {
        assert_eq!(quote("a\nb\u{1b}[31m"), "`a\\nb\\u{1b}[31m`");
        assert!(quote(&"x".repeat(1000)).len() < 80);
    }
}
