//! The user's `calibrations.toml`: calibrations by name (docs/reference/node.md).

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sweetspot_device::DeviceId;
use sweetspot_measure::math::meter::CalibrationLine;
use sweetspot_quantity::{Ratio, Watts};
use sweetspot_study::write_atomically;
use toml::{Spanned, Value};

use super::{CalibrateError, Calibration};

/// The largest accepted size of the file.
const MAX_BYTES: u64 = 256 << 10;
/// The first lines of a file that this program writes.
const HEADER: &str = "# Calibrations of sensors, made by `sweetspot calibrate`: apply one with --calibration NAME.\n\n";

/// A calibration as it is written in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    /// The UUID of the GPU, or the identities of all parts of the host.
    devices: Vec<String>,
    device_name: String,
    meter: String,
    /// What the meter measured: `machine` or `device`.
    meter_measures: String,
    date: String,
    gain: Ratio,
    gain_deviation: Ratio,
    offset: Watts,
    mean_power: Watts,
    mean_power_deviation: Watts,
    meter_accuracy: Ratio,
    lowest_power: Watts,
    highest_power: Watts,
    residual: Watts,
}

/// The calibrations of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CalibrationFile {
    path: PathBuf,
    entries: BTreeMap<String, Calibration>,
}

/// The place of the file: `$XDG_CONFIG_HOME/sweetspot/calibrations.toml` or `~/.config/sweetspot/calibrations.toml`; `None`
/// if no folder is known.
fn calibrations_path() -> Option<PathBuf> {
    let folder_from = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let folder =
        folder_from("XDG_CONFIG_HOME").or_else(|| Some(folder_from("HOME")?.join(".config")))?;
    Some(folder.join("sweetspot/calibrations.toml"))
}

impl CalibrationFile {
    /// Reads the user's file. A file that does not exist has no calibrations.
    pub fn load() -> Result<Self, CalibrateError> {
        let path = calibrations_path().ok_or(CalibrateError::NoFolder)?;
        let name = path.display().to_string();
        match sweetspot_input::read_text(&path, MAX_BYTES) {
            Ok(text) => Ok(Self {
                entries: parse(&name, &text)?,
                path,
            }),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(Self {
                    path,
                    ..Self::default()
                })
            }
            Err(error) => Err(CalibrateError::File(format!(
                "cannot read your calibrations file {name}: {error}; correct or delete it"
            ))),
        }
    }

    /// The place of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The calibration with this name.
    pub fn get(&self, name: &str) -> Option<&Calibration> {
        self.entries.get(name)
    }

    /// Adds a calibration, in place of one of the same name, and writes the file.
    pub fn store(&mut self, calibration: Calibration) -> Result<(), CalibrateError> {
        self.entries.insert(calibration.name.clone(), calibration);
        let entries: BTreeMap<&String, Entry> = self
            .entries
            .iter()
            .map(|(name, one)| (name, to_entry(one)))
            .collect();
        let cannot = |problem: String| {
            CalibrateError::File(format!("cannot write {}: {problem}", self.path.display()))
        };
        let text = toml::to_string(&entries).map_err(|error| cannot(error.to_string()))?;
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| cannot(error.to_string()))?;
        }
        let text = format!("{HEADER}{text}");
        write_atomically(&self.path, text.as_bytes()).map_err(|error| cannot(error.to_string()))
    }
}

/// The calibrations with these names, in the user's file. Each must exist, and no device may have two.
pub fn load_calibrations(names: &[String]) -> Result<Vec<Calibration>, CalibrateError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let file = CalibrationFile::load()?;
    let mut found: Vec<Calibration> = Vec::new();
    for name in names {
        let one = file.get(name).ok_or_else(|| CalibrateError::Unknown {
            name: name.clone(),
            file: file.path.display().to_string(),
            known: match file.entries.is_empty() {
                true => "it has none: make one with `sweetspot calibrate`".to_owned(),
                false => {
                    let names: Vec<&str> = file.entries.keys().map(String::as_str).collect();
                    format!("it has {}", names.join(", "))
                }
            },
        })?;
        let twice = |other: &&Calibration| {
            other
                .devices
                .iter()
                .any(|device| one.devices.contains(device))
        };
        if let Some(other) = found.iter().find(twice) {
            return Err(CalibrateError::SameDevice {
                first: other.name.clone(),
                second: name.clone(),
                device: one.device_name.clone(),
            });
        }
        found.push(one.clone());
    }
    Ok(found)
}

/// Parses the text of a file, whose name is for error messages.
fn parse(file: &str, text: &str) -> Result<BTreeMap<String, Calibration>, CalibrateError> {
    let line_at = |offset: usize| 1 + text.bytes().take(offset).filter(|b| *b == b'\n').count();
    let at = |line: usize, problem: &str| {
        CalibrateError::File(format!("{file}, line {line}: {problem}"))
    };
    let tables: BTreeMap<Spanned<String>, Value> =
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let span = error.span().unwrap_or(0..0);
            let problem = error.message().trim().replace('\n', " ");
            let name = text
                .get(span.clone())
                .unwrap_or_default()
                .trim_matches(['[', ']']);
            let problem = match problem.contains("duplicate key") {
                true => format!("two calibrations have the name {name}: rename one of them"),
                false => problem,
            };
            at(line_at(span.start), &problem)
        })?;
    let mut entries = BTreeMap::new();
    for (name, value) in tables {
        let line = line_at(name.span().start);
        let name = name.into_inner();
        let refuse = |problem: String| at(line, &format!("calibration {name}: {problem}"));
        check_name(&name).map_err(|error| refuse(error.to_string()))?;
        let entry: Entry = value
            .try_into()
            .map_err(|error: toml::de::Error| refuse(error.message().trim().replace('\n', " ")))?;
        let calibration = from_entry(&name, entry).map_err(refuse)?;
        entries.insert(name, calibration);
    }
    Ok(entries)
}

/// Checks the name of a calibration.
pub(super) fn check_name(name: &str) -> Result<(), CalibrateError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    match !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(CalibrateError::BadName(name.to_owned())),
    }
}

/// The entry of a calibration.
fn to_entry(one: &Calibration) -> Entry {
    let line = &one.line;
    Entry {
        devices: one.devices.iter().map(ToString::to_string).collect(),
        device_name: one.device_name.clone(),
        meter: one.meter.clone(),
        meter_measures: one.scope.name().to_owned(),
        date: one.date.clone(),
        gain: line.gain,
        gain_deviation: line.gain_deviation,
        offset: line.offset,
        mean_power: line.mean,
        mean_power_deviation: line.mean_deviation,
        meter_accuracy: line.accuracy,
        lowest_power: line.range.0,
        highest_power: line.range.1,
        residual: one.residual,
    }
}

/// The calibration of an entry, or what is wrong with it.
fn from_entry(name: &str, entry: Entry) -> Result<Calibration, String> {
    if entry.devices.is_empty() {
        return Err("devices is empty: it names the GPU, or the parts of the host".to_owned());
    }
    let gain = entry.gain.get();
    if !(gain > 0.01 && gain < 100.0) {
        return Err(format!("a gain of {gain} is not possible"));
    }
    if entry.lowest_power >= entry.highest_power {
        return Err("lowest-power must be below highest-power".to_owned());
    }
    let deviations = [
        entry.gain_deviation.get(),
        entry.mean_power_deviation.get(),
        entry.meter_accuracy.get(),
    ];
    if deviations.iter().any(|deviation| *deviation < 0.0) {
        return Err("deviations and accuracies cannot be negative".to_owned());
    }
    Ok(Calibration {
        name: name.to_owned(),
        devices: entry.devices.into_iter().map(DeviceId::new).collect(),
        device_name: entry.device_name,
        meter: entry.meter,
        scope: entry.meter_measures.parse()?,
        date: entry.date,
        line: CalibrationLine {
            gain: entry.gain,
            gain_deviation: entry.gain_deviation,
            offset: entry.offset,
            mean: entry.mean_power,
            mean_deviation: entry.mean_power_deviation,
            accuracy: entry.meter_accuracy,
            range: (entry.lowest_power, entry.highest_power),
        },
        residual: entry.residual,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::MeterScope;

    fn example() -> Calibration {
        Calibration {
            name: "bench".to_owned(),
            devices: vec![DeviceId::new("GPU-1")],
            device_name: "My GPU".to_owned(),
            meter: "wall".to_owned(),
            scope: MeterScope::Machine,
            date: "2026-11-18 19:30".to_owned(),
            line: CalibrationLine {
                gain: Ratio::new(1.1),
                gain_deviation: Ratio::new(0.002),
                offset: Watts::new(200.5),
                mean: Watts::new(150.0),
                mean_deviation: Watts::new(0.3),
                accuracy: Ratio::new(0.002),
                range: (Watts::new(30.0), Watts::new(290.0)),
            },
            residual: Watts::new(1.0),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweetspot/calibrations.toml");
        let mut file = CalibrationFile {
            path: path.clone(),
            entries: BTreeMap::new(),
        };
        file.store(example()).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(parse("f", &text).unwrap()["bench"], example());
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        let text = toml::to_string(&BTreeMap::from([("bench", to_entry(&example()))])).unwrap();
        let error = |text: &str| parse("f", text).unwrap_err().to_string();
        let twice = format!("{text}\n{text}");
        assert!(
            error(&twice).contains("two calibrations have the name bench"),
            "{}",
            error(&twice)
        );
        let wrong = text.replace("gain = \"110", "gain = \"-110");
        assert_eq!(
            error(&wrong),
            "f, line 1: calibration bench: a gain of -1.1 is not possible"
        );
        let unknown = text.replace("gain =", "gains =");
        assert!(
            error(&unknown).starts_with("f, line 1: calibration bench: unknown field `gains`"),
            "{}",
            error(&unknown)
        );
        let nowhere = text.replace("\"machine\"", "\"rack\"");
        assert!(
            error(&nowhere).contains("use machine or device"),
            "{}",
            error(&nowhere)
        );
    }
}
