//! The user's `meters.toml`: names of meters, and what a spec cannot say (docs/reference/config.md).

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sweetspot_quantity::{Ratio, Seconds};
use toml::{Spanned, Table, Value};

use crate::error::MeterError;
use crate::line::LineUnit;
use crate::spec::Spec;

/// What a meter's table in `meters.toml` says in addition to its spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeterSettings {
    /// The time between two readings.
    pub interval: Option<Seconds>,
    /// The time over which the meter averages each value of power.
    pub window: Option<Seconds>,
    /// The largest error as a share of the reading.
    pub accuracy: Option<Ratio>,
    /// The name with which to log in.
    pub user: Option<String>,
    /// The file whose first line is the password.
    pub password_file: Option<PathBuf>,
    /// The environment variable with the password.
    pub password_env: Option<String>,
    /// Whether a certificate that nobody signed is accepted.
    pub insecure: bool,
    /// A file of certificates, in PEM form, one of which signed the meter's.
    pub ca_file: Option<PathBuf>,
    /// The number of the switch, phase or outlet of a device with several.
    pub channel: u32,
    /// The regular expression whose group is the value in each line.
    pub pattern: Option<String>,
    /// The unit of the value in a line or a metric.
    pub unit: Option<LineUnit>,
    /// The text that is sent before each line is read.
    pub request: Option<String>,
    /// The speed of a serial port.
    pub baud: Option<u32>,
    /// The program and its arguments whose output is read.
    pub command: Vec<String>,
}

/// One meter of the file: a single one, or a sum of others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    One(Spec, Box<MeterSettings>),
    Sum(Vec<String>),
}

/// The user's named meters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetersFile {
    pub(crate) entries: BTreeMap<String, Entry>,
    file: String,
}

/// The keys of a meter's table.
const KEYS: [&str; 16] = [
    "spec",
    "sum",
    "interval",
    "window",
    "accuracy",
    "user",
    "password-file",
    "password-env",
    "insecure",
    "ca-file",
    "channel",
    "pattern",
    "unit",
    "request",
    "baud",
    "command",
];
/// The largest accepted size of the file.
const MAX_BYTES: u64 = 64 << 10;
/// The largest accepted size of a file with a password.
const MAX_PASSWORD_BYTES: u64 = 4 << 10;

/// The place of the file: the one in `SWEETSPOT_METERS`, else `$XDG_CONFIG_HOME/sweetspot/meters.toml` or
/// `~/.config/sweetspot/meters.toml`; `None` if no folder is known.
pub fn meters_path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("SWEETSPOT_METERS") {
        return Some(path.into());
    }
    let folder_from = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let folder =
        folder_from("XDG_CONFIG_HOME").or_else(|| Some(folder_from("HOME")?.join(".config")))?;
    Some(folder.join("sweetspot/meters.toml"))
}

impl MetersFile {
    /// Reads the user's file. A file that does not exist names no meter.
    pub fn load() -> Result<Self, MeterError> {
        meters_path().map_or_else(|| Ok(Self::default()), |path| Self::read(&path))
    }

    /// Reads a file. A file that does not exist names no meter.
    pub fn read(path: &Path) -> Result<Self, MeterError> {
        let file = path.display().to_string();
        match sweetspot_input::read_text(path, MAX_BYTES) {
            Ok(text) => Self::parse(&file, &text),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(Self {
                    file,
                    ..Self::default()
                })
            }
            Err(error) => Err(MeterError::Invalid(format!(
                "cannot read your meters file {file}: {error}; correct or delete it"
            ))),
        }
    }

    /// Parses the text of a file, whose name is for error messages.
    pub fn parse(file: &str, text: &str) -> Result<Self, MeterError> {
        let line_at = |offset: usize| 1 + text.bytes().take(offset).filter(|b| *b == b'\n').count();
        let at = |line: usize, problem: &str| {
            MeterError::Invalid(format!("{file}, line {line}: {problem}"))
        };
        let tables: BTreeMap<Spanned<String>, Value> =
            toml::from_str(text).map_err(|error: toml::de::Error| {
                let span = error.span().unwrap_or(0..0);
                let problem = error.message().trim().replace('\n', " ");
                let problem = match problem.contains("duplicate key") {
                    true => match text
                        .get(span.clone())
                        .unwrap_or_default()
                        .trim_matches(['[', ']'])
                    {
                        name if KEYS.contains(&name) => {
                            format!("{name} is given twice: remove one of them")
                        }
                        name => format!("two meters have the name {name}: rename one of them"),
                    },
                    false => problem,
                };
                at(line_at(span.start), &problem)
            })?;
        let mut entries = BTreeMap::new();
        for (name, value) in tables {
            let line = line_at(name.span().start);
            let name = name.into_inner();
            let refuse = |problem: String| at(line, &problem);
            if name.is_empty() || name.contains([':', '/']) {
                return Err(refuse(format!(
                    "`{name}` cannot be the name of a meter: use letters, digits and -"
                )));
            }
            let table = value.as_table().ok_or_else(|| {
                refuse(format!(
                    "unknown key `{name}`: begin a meter with [NAME] and write its keys below"
                ))
            })?;
            let entry =
                parse_entry(table).map_err(|problem| refuse(format!("meter {name}: {problem}")))?;
            entries.insert(name, entry);
        }
        Ok(Self {
            entries,
            file: file.to_owned(),
        })
    }

    /// The names of the meters, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The message for a name that the file does not have.
    pub(crate) fn unknown_name(&self, name: &str) -> MeterError {
        let known: Vec<&str> = self.names().collect();
        let known = match known.is_empty() {
            true => "it names no meters".to_owned(),
            false => format!("its meters are {}", known.join(", ")),
        };
        MeterError::Invalid(format!(
            "there is no meter `{name}` in {}: {known}; or write what it is, such as wt310:/dev/usbtmc0 or shelly:http://ADDRESS",
            self.file
        ))
    }
}

impl MeterSettings {
    /// The password, from its file or from the environment; `None` if the meter has none.
    pub(crate) fn password(&self) -> Result<Option<String>, String> {
        if let Some(path) = &self.password_file {
            let file = path.display();
            let others = std::fs::metadata(path).map_or(0, |data| data.mode() & 0o077);
            if others != 0 {
                return Err(format!(
                    "the password file {file} can be read by others: run chmod 600 {file}"
                ));
            }
            let text = sweetspot_input::read_text(path, MAX_PASSWORD_BYTES)
                .map_err(|error| format!("cannot read the password file {file}: {error}"))?;
            return Ok(Some(text.lines().next().unwrap_or_default().to_owned()));
        }
        match &self.password_env {
            Some(name) => match std::env::var(name) {
                Ok(password) => Ok(Some(password)),
                Err(_) => Err(format!(
                    "the environment variable {name} with its password is not set"
                )),
            },
            None => Ok(None),
        }
    }
}

/// Parses the table of one meter.
fn parse_entry(table: &Table) -> Result<Entry, String> {
    let unknown = table
        .keys()
        .find(|key| !KEYS.contains(&key.replace('_', "-").as_str()));
    if let Some(key) = unknown {
        return Err(match key.contains("password") {
            true => "a password does not belong in this file: write password-file = \"FILE\" or password-env = \"VARIABLE\"".to_owned(),
            false => format!("unknown key `{key}`: the keys are {}", KEYS.join(", ")),
        });
    }
    let get = |key: &str| table.get(key).or_else(|| table.get(&key.replace('-', "_")));
    let text = |key: &str| {
        get(key)
            .map(|value| {
                value
                    .as_str()
                    .map(str::to_owned)
                    .ok_or(format!("{key} must be a text in quotes"))
            })
            .transpose()
    };
    let list = |key: &str| {
        get(key)
            .map(|value| {
                let items = value
                    .as_array()
                    .map(|list| list.iter().map(|item| item.as_str().map(str::to_owned)));
                items
                    .and_then(Iterator::collect::<Option<Vec<String>>>)
                    .filter(|list: &Vec<String>| !list.is_empty())
                    .ok_or(format!("{key} must be a list of texts in quotes"))
            })
            .transpose()
    };
    let whole = |key: &str| {
        get(key)
            .map(|value| {
                let number = value
                    .as_integer()
                    .and_then(|number| u32::try_from(number).ok());
                number.ok_or(format!("{key} must be a whole number"))
            })
            .transpose()
    };
    let time = |key: &str| {
        let parsed = text(key)?.map(|text| {
            text.parse::<Seconds>()
                .map_err(|error| format!("{key}: {error}"))
        });
        match parsed.transpose()? {
            Some(time) if time < Seconds::new(0.01) || time > Seconds::new(600.0) => {
                Err(format!("{key} must be from 10 ms to 600 s"))
            }
            time => Ok(time),
        }
    };
    if let Some(sum) = list("sum")? {
        return match table.len() {
            1 => Ok(Entry::Sum(sum)),
            _ => Err("sum adds up other meters: remove its other keys".to_owned()),
        };
    }
    let spec = text("spec")?.ok_or(
        "spec is missing: write spec = \"wt310:/dev/usbtmc0\", or sum = [\"NAME\", \"NAME\"]",
    )?;
    let spec: Spec = spec
        .parse()
        .map_err(|error: MeterError| error.to_string())?;
    let settings = MeterSettings {
        interval: time("interval")?,
        window: time("window")?,
        accuracy: text("accuracy")?
            .map(|text| parse_share(&text))
            .transpose()?,
        user: text("user")?,
        password_file: text("password-file")?.map(expand_home),
        password_env: text("password-env")?,
        insecure: match get("insecure") {
            Some(value) => value.as_bool().ok_or("insecure must be true or false")?,
            None => false,
        },
        ca_file: text("ca-file")?.map(expand_home),
        channel: whole("channel")?.unwrap_or(0),
        pattern: text("pattern")?,
        unit: text("unit")?.map(|text| text.parse()).transpose()?,
        request: text("request")?,
        baud: whole("baud")?,
        command: list("command")?.unwrap_or_default(),
    };
    if settings.password_file.is_some() && settings.password_env.is_some() {
        return Err("password-file and password-env are both given: remove one of them".to_owned());
    }
    crate::line::check(&spec, &settings)?;
    Ok(Entry::One(spec, Box::new(settings)))
}

/// Parses a share such as `0.5%` or `0.005`.
fn parse_share(text: &str) -> Result<Ratio, String> {
    let (number, scale) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().map(|number| number * scale);
    match share {
        Ok(share) if (0.0..=0.5).contains(&share) => Ok(Ratio::new(share)),
        _ => Err(format!(
            "accuracy must be a share of the reading such as \"0.5%\", not `{text}`"
        )),
    }
}

/// Replaces `~` at the beginning of a path.
fn expand_home(text: String) -> PathBuf {
    match (text.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests;
