//! A meter that sends lines of text, by the user's configuration: a regular expression finds the value in each line.

use std::time::Duration;

use regex_lite::Regex;
use sweetspot_device::{Clock, MeterReading, Moment};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::channel::Source;
use crate::config::MeterSettings;
use crate::error::{Problem, excerpt};
use crate::spec::{Spec, Target};
use crate::transport::Transport;

/// The unit of a value: of power, or of an energy counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineUnit {
    /// The value is power, in watts after division by this many.
    Power(u64, u64),
    /// The value is energy, in joules after multiplication and division by these.
    Energy(u64, u64),
}

impl std::str::FromStr for LineUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "W" => Self::Power(1, 1),
            "mW" => Self::Power(1, 1000),
            "uW" => Self::Power(1, 1_000_000),
            "kW" => Self::Power(1000, 1),
            "J" => Self::Energy(1, 1),
            "mJ" => Self::Energy(1, 1000),
            "uJ" => Self::Energy(1, 1_000_000),
            "kJ" => Self::Energy(1000, 1),
            "Wh" => Self::Energy(3600, 1),
            "kWh" => Self::Energy(3_600_000, 1),
            _ => {
                return Err(format!(
                    "unknown unit `{text}`: use W, mW, kW, J, mJ, kJ, Wh or kWh"
                ));
            }
        })
    }
}

impl LineUnit {
    /// Converts a value to power or energy.
    pub(crate) fn convert(self, value: f64) -> (Option<Watts>, Option<Joules>) {
        match self {
            Self::Power(times, by) => (Some(Watts::new(value * times as f64 / by as f64)), None),
            Self::Energy(times, by) => (None, Some(Joules::new(value * times as f64 / by as f64))),
        }
    }
}

/// Checks that a spec has the settings that it needs, and none that it does not use.
pub(crate) fn check(spec: &Spec, settings: &MeterSettings) -> Result<(), String> {
    let Spec::Line(target) = spec else {
        return match (
            &settings.pattern,
            &settings.request,
            settings.command.is_empty(),
        ) {
            (None, None, true) => Ok(()),
            _ => Err(
                "pattern, request and command belong to a meter with spec = \"line:...\""
                    .to_owned(),
            ),
        };
    };
    match (target, settings.command.is_empty()) {
        (Target::Command, true) => {
            return Err(
                "command is missing: write command = [\"PROGRAM\", \"ARGUMENT\"]".to_owned(),
            );
        }
        (Target::Command, false) if settings.request.is_some() => {
            return Err("a command takes no requests: remove request".to_owned());
        }
        (Target::Command, false) | (_, true) => {}
        (_, false) => return Err("command belongs to spec = \"line:command\"".to_owned()),
    }
    let Some(pattern) = &settings.pattern else {
        return Err("pattern is missing: write pattern = 'P=([0-9.]+) W', whose group is the value in a line".to_owned());
    };
    let pattern = Regex::new(pattern)
        .map_err(|error| format!("pattern is not a regular expression: {error}"))?;
    match pattern.captures_len() {
        2 => Ok(()),
        _ => Err("pattern must have one group in parentheses, which is the value".to_owned()),
    }
}

/// A connection to a line-based meter.
pub(crate) struct LineMeter {
    transport: Box<dyn Transport>,
    pattern: Regex,
    unit: LineUnit,
    request: Option<String>,
    timeout: Duration,
    last: Option<Moment>,
}

/// A meter that sends lines on its own is silent for at most this many of its periods.
const SILENT_PERIODS: f64 = 5.0;
/// The most lines that are skipped in search of one with a value.
const MAX_SKIPPED: usize = 100;

impl LineMeter {
    pub fn new(
        transport: Box<dyn Transport>,
        settings: &MeterSettings,
        period: Seconds,
    ) -> Result<Self, Problem> {
        let pattern =
            Regex::new(settings.pattern.as_deref().unwrap_or_default()).map_err(|error| {
                Problem::Refused(format!("its pattern is not a regular expression: {error}"))
            })?;
        Ok(Self {
            transport,
            pattern,
            unit: settings.unit.unwrap_or(LineUnit::Power(1, 1)),
            request: settings.request.clone(),
            timeout: Duration::from_secs_f64((period.get() * SILENT_PERIODS).max(3.0)),
            last: None,
        })
    }
}

impl Source for LineMeter {
    fn read(&mut self, clock: &dyn Clock) -> Result<MeterReading, Problem> {
        if let Some(request) = &self.request {
            self.transport.send(request.trim_end_matches('\n'))?;
        }
        let mut last_line = String::new();
        for _ in 0..MAX_SKIPPED {
            let line = self.transport.receive(self.timeout)?;
            let at = clock.now();
            let value = self
                .pattern
                .captures(&line)
                .and_then(|found| found.get(1)?.as_str().trim().parse::<f64>().ok());
            if let Some(value) = value.filter(|value| value.is_finite()) {
                let after = self.last.replace(at).unwrap_or(at);
                let (power, energy) = self.unit.convert(value);
                return Ok(MeterReading {
                    after,
                    at,
                    power,
                    energy,
                });
            }
            last_line = line;
        }
        Err(Problem::Failed(format!(
            "its pattern matches none of {MAX_SKIPPED} lines, such as `{}`",
            excerpt(&last_line)
        )))
    }

    fn interval(&self) -> Option<Seconds> {
        // A meter that sends on its own sets the pace; one that is asked answers at once.
        self.request
            .as_ref()
            .map(|_| Seconds::new(self.timeout.as_secs_f64() / SILENT_PERIODS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Lines(Vec<&'static str>);
    impl Transport for Lines {
        fn send(&mut self, _: &str) -> Result<(), std::io::Error> {
            Ok(())
        }
        fn receive(&mut self, _: Duration) -> Result<String, std::io::Error> {
            self.0
                .pop()
                .map(str::to_owned)
                .ok_or(std::io::ErrorKind::TimedOut.into())
        }
    }

    fn meter(lines: Vec<&'static str>, unit: &str) -> LineMeter {
        let settings = MeterSettings {
            pattern: Some("P=([^ ]+)".to_owned()),
            unit: Some(unit.parse().unwrap()),
            ..MeterSettings::default()
        };
        LineMeter::new(Box::new(Lines(lines)), &settings, Seconds::new(1.0)).unwrap()
    }

    #[test]
    fn values_are_found_and_converted() {
        let clock = sweetspot_device::VirtualClock::default();
        let mut power = meter(vec!["P=0.25 kW", "# start", "P=? kW"], "kW");
        assert_eq!(power.read(&clock).unwrap().power, Some(Watts::new(250.0)));
        assert_eq!(
            power.read(&clock),
            Err(Problem::Failed("it did not answer in time".to_owned()))
        );
        let mut energy = meter(vec!["P=2"], "Wh");
        assert_eq!(
            energy.read(&clock).unwrap().energy,
            Some(Joules::new(7200.0))
        );
        let mut rubbish = meter(vec!["\u{1b}[2J"; 200], "W");
        let Err(Problem::Failed(text)) = rubbish.read(&clock) else {
            panic!()
        };
        assert!(text.ends_with("such as `\u{fffd}[2J`"), "{text}");
    }
}
