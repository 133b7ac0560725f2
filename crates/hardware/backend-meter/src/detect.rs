//! Turns what the user wrote into open meters.

use std::sync::Arc;

use sweetspot_device::{Clock, MonotonicClock};

use crate::channel::{Channel, Connect, Purpose, Source};
use crate::config::{Entry, MeterSettings, MetersFile};
use crate::error::MeterError;
use crate::http::HttpMeter;
use crate::hwmon::HwmonMeter;
use crate::line::LineMeter;
use crate::properties::properties;
use crate::read::MeterDevice;
use crate::spec::{HttpKind, Spec, Target};
use crate::transport;
use crate::wt310::Wt310;

/// The most meters that one sum adds up, and the deepest sum of sums.
const MAX_CHANNELS: usize = 32;
const MAX_DEPTH: usize = 4;

/// Checks the names and specs of meters before any of them is opened: each must be known and given once, also within
/// sums.
pub fn resolve_meters(texts: &[String], file: &MetersFile) -> Result<(), MeterError> {
    let mut seen: Vec<(String, String)> = Vec::new();
    for text in texts {
        for (name, spec, settings) in resolve(text, file)? {
            let spec = identity(&spec, &settings);
            if let Some((other, _)) = seen.iter().find(|(_, known)| *known == spec) {
                return Err(MeterError::Invalid(match *other == name {
                    true => {
                        format!("the meter {name} is given twice: its energy would count twice")
                    }
                    false => format!(
                        "the meters {other} and {name} are the same device ({spec}): its energy would count twice"
                    ),
                }));
            }
            seen.push((name, spec));
        }
    }
    Ok(())
}

/// What a meter measures: two with the same identity would count the same energy twice. The channels of a device are
/// different meters, and so are different commands, and values at different places of the lines of a network connection.
/// A serial port can only be read once, whatever is read from it; the entries of a server's controller may contain each
/// other.
fn identity(spec: &Spec, settings: &MeterSettings) -> String {
    match spec {
        Spec::Http(HttpKind::Shelly | HttpKind::Tasmota, _) if settings.channel > 0 => {
            format!("{spec} channel {}", settings.channel)
        }
        Spec::Line(Target::Command) => {
            let pattern = settings.pattern.as_deref().unwrap_or_default();
            format!("{spec} {:?} {pattern}", settings.command)
        }
        Spec::Line(Target::Tcp(_)) => {
            let pattern = settings.pattern.as_deref().unwrap_or_default();
            match &settings.request {
                Some(request) => format!("{spec} {request:?} {pattern}"),
                None => format!("{spec} {pattern}"),
            }
        }
        _ => spec.to_string(),
    }
}

/// Opens a meter by its name in the user's file, or by its spec.
pub fn open_meter(
    text: &str,
    file: &MetersFile,
    purpose: Purpose,
) -> Result<MeterDevice, MeterError> {
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let mut channels = Vec::new();
    let mut models: Vec<String> = Vec::new();
    for (name, spec, settings) in resolve(text, file)? {
        let known = properties(&spec, &settings);
        let has_accuracy = settings.accuracy.is_some();
        let connect = connector(spec, settings, known.period, purpose);
        let (channel, model) =
            Channel::open(&name, (known, has_accuracy), connect, Arc::clone(&clock))?;
        channels.push(channel);
        models.push(model);
    }
    Ok(MeterDevice::new(text, &models, channels))
}

/// The single meters that a text means, with their names.
fn resolve(
    text: &str,
    file: &MetersFile,
) -> Result<Vec<(String, Spec, MeterSettings)>, MeterError> {
    let mut found = Vec::new();
    resolve_into(&mut found, text, file, 0)?;
    Ok(found)
}

fn resolve_into(
    found: &mut Vec<(String, Spec, MeterSettings)>,
    text: &str,
    file: &MetersFile,
    depth: usize,
) -> Result<(), MeterError> {
    if depth > MAX_DEPTH || found.len() >= MAX_CHANNELS {
        return Err(MeterError::Invalid(format!(
            "the sum {text} contains itself or more than {MAX_CHANNELS} meters: correct it in meters.toml"
        )));
    }
    match file.entries.get(text) {
        Some(Entry::One(spec, settings)) => {
            found.push((
                text.to_owned(),
                spec.clone(),
                MeterSettings::clone(settings),
            ));
        }
        Some(Entry::Sum(parts)) => {
            for part in parts {
                resolve_into(found, part, file, depth + 1)?;
            }
        }
        None if !text.contains(':') => return Err(file.unknown_name(text)),
        None => {
            let spec: Spec = text.parse()?;
            crate::line::check(&spec, &MeterSettings::default()).map_err(|problem| {
                MeterError::Invalid(format!("{text} must be named in meters.toml: {problem}"))
            })?;
            found.push((text.to_owned(), spec, MeterSettings::default()));
        }
    }
    Ok(())
}

/// The way to connect to a meter, again and again.
fn connector(
    spec: Spec,
    settings: MeterSettings,
    period: sweetspot_quantity::Seconds,
    purpose: Purpose,
) -> Connect {
    Box::new(move || {
        let boxed = |source: Box<dyn Source>, model: String| Ok((source, model));
        match &spec {
            Spec::Wt310(target) => {
                let transport = transport::connect(target, settings.baud, &[])
                    .map_err(|error| transport::explain(target, error))?;
                let (meter, model) = Wt310::start(transport, period, purpose)?;
                boxed(Box::new(meter), format!("Yokogawa {model}"))
            }
            Spec::Line(target) => {
                let transport = transport::connect(target, settings.baud, &settings.command)
                    .map_err(|error| transport::explain(target, error))?;
                let meter = LineMeter::new(transport, &settings, period)?;
                boxed(Box::new(meter), "line-based meter".to_owned())
            }
            Spec::Hwmon(channel) => {
                let (meter, model) = HwmonMeter::open(channel, &settings)?;
                boxed(Box::new(meter), model)
            }
            Spec::Http(kind, url) => {
                let (meter, model) = HttpMeter::connect(*kind, url, &settings, period)?;
                boxed(Box::new(meter), model)
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], file: &str) -> Result<(), String> {
        let file = MetersFile::parse("f", file).map_err(|error| error.to_string())?;
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        resolve_meters(&texts, &file).map_err(|error| error.to_string())
    }

    const TWO: &str = "[a]\nspec = \"wt310:/dev/a\"\n[b]\nspec = \"wt310:/dev/b\"\n[both]\nsum = [\"a\", \"b\"]\n";

    #[test]
    fn names_sums_and_specs_are_resolved() {
        assert_eq!(check(&["both", "shelly:http://h"], TWO), Ok(()));
        assert!(
            check(&["c"], TWO)
                .unwrap_err()
                .contains("its meters are a, b, both")
        );
        assert!(
            check(&["line:tcp://h:1"], "")
                .unwrap_err()
                .contains("must be named in meters.toml")
        );
    }

    #[test]
    fn the_channels_of_a_device_may_be_summed() {
        let file = "[left]\nspec = \"shelly:http://h\"\n[right]\nspec = \"shelly:http://h\"\nchannel = 1\n[both]\nsum = [\"left\", \"right\"]\n[again]\nspec = \"shelly:http://h\"\nchannel = 1\n";
        assert_eq!(check(&["both"], file), Ok(()));
        assert!(
            check(&["both", "again"], file)
                .unwrap_err()
                .contains("right and again are the same device")
        );
        let rails = "hwmon:ina3221:0-0040/power1";
        assert_eq!(check(&[rails, "hwmon:ina3221:0-0040/power2"], ""), Ok(()));
        assert!(
            check(&[rails, rails], "")
                .unwrap_err()
                .contains("given twice")
        );
    }

    #[test]
    fn two_commands_may_be_summed_and_one_serial_port_may_not() {
        let line = |name: &str, spec: &str, more: &str| {
            format!("[{name}]\nspec = \"{spec}\"\npattern = '([0-9.]+)'\n{more}\n")
        };
        let commands = line("a", "line:command", "command = [\"read\", \"1\"]")
            + &line("b", "line:command", "command = [\"read\", \"2\"]")
            + &line("c", "line:command", "command = [\"read\", \"2\"]");
        assert_eq!(check(&["a", "b"], &commands), Ok(()));
        assert!(
            check(&["b", "c"], &commands)
                .unwrap_err()
                .contains("b and c are the same device")
        );
        let ports = line("a", "line:/dev/ttyACM0", "request = \"1\"")
            + &line("b", "line:/dev/ttyACM0", "request = \"2\"");
        assert!(
            check(&["a", "b"], &ports)
                .unwrap_err()
                .contains("are the same device")
        );
    }

    #[test]
    fn no_meter_counts_twice() {
        assert!(check(&["a", "a"], TWO).unwrap_err().contains("given twice"));
        assert!(
            check(&["both", "a"], TWO)
                .unwrap_err()
                .contains("given twice")
        );
        assert!(
            check(&["a", "wt310:/dev/a"], TWO)
                .unwrap_err()
                .contains("are the same device")
        );
        let own = "[x]\nsum = [\"x\"]\n";
        assert!(check(&["x"], own).unwrap_err().contains("contains itself"));
    }
}
