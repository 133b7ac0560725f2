//! The log for bug reports: `--log LEVEL` or `SWEETSPOT_LOG`.
//!
//! The log is off by default. It goes to standard error, one line for each event. Libraries only emit events; only this
//! module writes them.

use std::fmt;
use std::io::{self, IsTerminal};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// The environment variable with the log level, which is used if the flag is absent.
pub const VARIABLE: &str = "SWEETSPOT_LOG";

/// The log levels, for messages.
const LEVELS: &str = "off, error, warn, info, debug or trace";

/// Parses a level of the flag or the environment variable.
pub fn parse_level(text: &str) -> Result<LevelFilter, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return Err(format!("`{text}` is not a log level: use {LEVELS}")),
    })
}

/// Starts the log at the level of the flag, else of the environment variable, else not at all.
pub fn start(flag: Option<LevelFilter>) -> Result<()> {
    let level = match flag {
        Some(level) => level,
        None => level_from_environment()?,
    };
    if level == LevelFilter::OFF {
        return Ok(());
    }
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(io::stderr)
        // Standard error may be closed or full; the program then continues without its log.
        .log_internal_errors(false)
        .event_format(LineFormat {
            process: std::process::id(),
            is_terminal: io::stderr().is_terminal(),
        })
        .finish();
    tracing::subscriber::set_global_default(subscriber).context("cannot start the log")?;
    let version = env!("CARGO_PKG_VERSION");
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    tracing::info!(version, ?arguments, "started");
    Ok(())
}

/// The log level in the environment variable; off if it is not set.
fn level_from_environment() -> Result<LevelFilter> {
    let Some(text) = std::env::var_os(VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(LevelFilter::OFF);
    };
    parse_level(&text.to_string_lossy())
        .map_err(anyhow::Error::msg)
        .context(VARIABLE)
}

/// Writes time, level, process id and module before each event. The process id is needed because the guard writes to
/// the same standard error as the command that started it.
struct LineFormat {
    process: u32,
    is_terminal: bool,
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = format_utc(now.unwrap_or_default().as_millis());
        let (level, target) = (metadata.level(), metadata.target());
        write!(writer, "{time} {level:5} [{}] {target}: ", self.process)?;
        context.format_fields(writer.by_ref(), event)?;
        // Erases the rest of a status line.
        writer.write_str(if self.is_terminal { "\x1b[K\n" } else { "\n" })
    }
}

/// Formats a time as 2026-05-01T12:00:00.000Z.
fn format_utc(unix_ms: u128) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    // Converts days to a Gregorian date, in years that begin in March, so that the leap day is the last day of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + u128::from(month <= 2);
    let (hour, minute) = (ms / 3_600_000, ms / 60_000 % 60);
    let (second, ms) = (ms / 1_000 % 60, ms % 1_000);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_in_utc() {
        assert_eq!(format_utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_utc(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(format_utc(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(format_utc(1_800_000_000_123), "2027-01-15T08:00:00.123Z");
    }

    #[test]
    fn levels_are_parsed() {
        assert_eq!(parse_level("Debug"), Ok(LevelFilter::DEBUG));
        assert_eq!(parse_level("off"), Ok(LevelFilter::OFF));
        assert_eq!(
            parse_level("loud"),
            Err("`loud` is not a log level: use off, error, warn, info, debug or trace".to_owned())
        );
    }
}
