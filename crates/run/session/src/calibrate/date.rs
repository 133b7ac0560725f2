//! The present date as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present date and time in UTC, to the minute: `2026-11-18 19:30`.
pub fn date_now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    date_text(since.map_or(0, |since| since.as_secs()))
}

/// The date and time of a number of seconds since 1970, in UTC.
fn date_text(seconds: u64) -> String {
    let minutes = seconds / 60;
    let mut days = minutes / 1440;
    let mut year = 1970;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    loop {
        let length = 365 + u64::from(is_leap(year));
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!(
        "{year}-{month:02}-{:02} {:02}:{:02}",
        days + 1,
        minutes / 60 % 24,
        minutes % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @SECONDS` prints the same.
        assert_eq!(date_text(0), "1970-01-01 00:00");
        assert_eq!(date_text(951_782_400), "2000-02-29 00:00");
        assert_eq!(date_text(1_795_030_140), "2026-11-18 19:29");
    }
}
