//! Turns what the user wrote into open meters.

use std::sync::Arc;

use sweetspot_device::{Clock, MonotonicClock};

use crate::channel::{Channel, Connect, Source};
use crate::config::{Entry, MeterSettings, MetersFile};
use crate::error::MeterError;
use crate::http::HttpMeter;
use crate::line::LineMeter;
use crate::properties::properties;
use crate::read::MeterDevice;
use crate::spec::Spec;
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
        for (name, spec, _) in resolve(text, file)? {
            let spec = spec.to_string();
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

/// Opens a meter by its name in the user's file, or by its spec.
pub fn open_meter(text: &str, file: &MetersFile) -> Result<MeterDevice, MeterError> {
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let mut channels = Vec::new();
    let mut models: Vec<String> = Vec::new();
    for (name, spec, settings) in resolve(text, file)? {
        let known = properties(&spec, &settings);
        let connect = connector(spec, settings, known.period);
        let (channel, model) = Channel::open(&name, known, connect, Arc::clone(&clock))?;
        channels.push((channel, known));
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
fn connector(spec: Spec, settings: MeterSettings, period: sweetspot_quantity::Seconds) -> Connect {
    Box::new(move || {
        let boxed = |source: Box<dyn Source>, model: String| Ok((source, model));
        match &spec {
            Spec::Wt310(target) => {
                let transport = transport::connect(target, settings.baud, &[])?;
                let (meter, model) = Wt310::start(transport, period)?;
                boxed(Box::new(meter), format!("Yokogawa {model}"))
            }
            Spec::Line(target) => {
                let transport = transport::connect(target, settings.baud, &settings.command)?;
                let meter = LineMeter::new(transport, &settings, period)?;
                boxed(Box::new(meter), "line-based meter".to_owned())
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
