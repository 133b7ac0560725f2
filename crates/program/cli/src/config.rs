//! The configuration file of the user: defaults for the flags that say what the user values (docs/reference/config.md).
//!
//! Only commands that recommend settings read it. Processes that run as root for others never do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sweetspot_decide::{CarbonIntensity, Objective, Preference};
use toml::{Spanned, Value};

/// Defaults for flags. A key that the file does not have is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What to optimise, if neither a flag nor the study says it.
    pub objective: Option<Objective>,
    /// Which of several settings to recommend.
    pub prefer: Option<Preference>,
    /// The price of a kWh.
    pub price_per_kwh: Option<f64>,
    /// The price of an hour of one GPU.
    pub price_per_gpu_hour: Option<f64>,
    /// The currency of the prices.
    pub currency: Option<String>,
    /// The carbon intensity of the electricity.
    pub carbon: Option<CarbonIntensity>,
}

/// The keys of the file, each with an example of its value.
const KEYS: [(&str, &str); 6] = [
    ("objective", "\"edp\""),
    ("prefer", "\"time\""),
    ("price-per-kwh", "0.30"),
    ("price-per-gpu-hour", "2.50"),
    ("currency", "\"EUR\""),
    ("carbon", "380"),
];

/// The largest accepted size of the file.
const MAX_BYTES: u64 = 64 << 10;

impl Config {
    /// Reads the user's file. A file that does not exist sets nothing.
    pub fn load() -> Result<Self> {
        let Some(path) = path() else {
            return Ok(Self::default());
        };
        let name = path.display();
        let text = read_text(&path).with_context(|| {
            format!("cannot read your configuration file {name}: correct or delete it")
        })?;
        match text {
            Some(text) => Self::parse(&name.to_string(), &text),
            None => Ok(Self::default()),
        }
    }

    /// Parses the text of a file, whose name is for error messages.
    fn parse(file: &str, text: &str) -> Result<Self> {
        let line_at = |offset: usize| 1 + text.bytes().take(offset).filter(|b| *b == b'\n').count();
        let entries: BTreeMap<Spanned<String>, Value> =
            toml::from_str(text).map_err(|error: toml::de::Error| {
                let line = error.span().map_or(1, |span| line_at(span.start));
                let problem = error.message().trim().replace('\n', " ");
                anyhow::anyhow!("{file}, line {line}: {problem}")
            })?;
        let mut entries: Vec<_> = entries.into_iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut config = Self::default();
        let mut seen = BTreeSet::new();
        for (key, value) in entries {
            let line = line_at(key.span().start);
            // Some join the words of a key as flags do, others as Python does.
            let name = key.get_ref().replace('_', "-");
            let set = match seen.insert(name.clone()) {
                true => config.set(&name, &value),
                false => Err(format!("{name} is given twice: remove one of them")),
            };
            set.map_err(|problem| anyhow::anyhow!("{file}, line {line}: {problem}"))?;
        }
        Ok(config)
    }

    /// Sets the value of a key, or says what is wrong with it.
    fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        match key {
            "objective" => self.objective = Some(parse_text("objective", value)?),
            "prefer" => self.prefer = Some(parse_text("prefer", value)?),
            "price-per-kwh" => self.price_per_kwh = Some(price("price-per-kwh", value)?),
            "price-per-gpu-hour" => {
                self.price_per_gpu_hour = Some(price("price-per-gpu-hour", value)?);
            }
            "currency" => self.currency = Some(parse_text("currency", value)?),
            "carbon" => self.carbon = Some(carbon(value)?),
            _ => return Err(unknown_key(key)),
        }
        Ok(())
    }
}

/// The place of the user's file: `$XDG_CONFIG_HOME/sweetspot/config.toml`, or `~/.config/sweetspot/config.toml`; `None`
/// if neither folder is known.
fn path() -> Option<PathBuf> {
    let folder_from = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let folder =
        folder_from("XDG_CONFIG_HOME").or_else(|| Some(folder_from("HOME")?.join(".config")))?;
    Some(folder.join("sweetspot/config.toml"))
}

/// The place of the user's file, for messages.
pub fn path_text() -> String {
    match path() {
        Some(path) => path.display().to_string(),
        None => "~/.config/sweetspot/config.toml".to_owned(),
    }
}

/// Reads the text of a file; `None` if there is no file.
fn read_text(path: &Path) -> Result<Option<String>> {
    match sweetspot_input::read_text(path, MAX_BYTES) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        text => Ok(Some(text?)),
    }
}

/// What to write in place of a key that does not exist.
fn unknown_key(key: &str) -> String {
    /// The least similarity of a key that the user may have meant.
    const MIN_SIMILARITY: f64 = 0.8;
    let rated = KEYS.map(|(known, _)| (strsim::jaro_winkler(key, known), known));
    let nearest = rated.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY) {
        Some((_, known)) => format!("unknown key `{key}`: write {known}"),
        None => {
            let keys = KEYS.map(|(known, _)| known).join(", ");
            format!("unknown key `{key}`: the keys are {keys}")
        }
    }
}

/// The message for a value of the wrong type.
fn wrong_type(key: &str, wanted: &str) -> String {
    let example = KEYS.iter().find(|(known, _)| *known == key);
    let example = example.map_or("", |(_, example)| example);
    format!("{key} must be {wanted}: write {key} = {example}")
}

/// Parses a text value.
fn parse_text<T: std::str::FromStr<Err: std::fmt::Display>>(
    key: &str,
    value: &Value,
) -> Result<T, String> {
    let text = value
        .as_str()
        .ok_or_else(|| wrong_type(key, "a text in quotes"))?;
    text.parse().map_err(|problem| format!("{key}: {problem}"))
}

/// The number of a value; `None` if it is no number.
fn number(value: &Value) -> Option<f64> {
    let whole = value.as_integer().map(|number| number as f64);
    whole.or_else(|| value.as_float())
}

/// Parses a price.
fn price(key: &str, value: &Value) -> Result<f64, String> {
    let price = number(value).ok_or_else(|| wrong_type(key, "a number"))?;
    match price.is_finite() && price >= 0.0 {
        true => Ok(price),
        false => Err(wrong_type(key, "a number of at least 0")),
    }
}

/// Parses a carbon intensity: one number, or one for each hour of the day.
fn carbon(value: &Value) -> Result<CarbonIntensity, String> {
    let grams: Option<Vec<f64>> = match value.as_array() {
        Some(list) => list.iter().map(number).collect(),
        None => number(value).map(|grams| vec![grams]),
    };
    let wanted =
        "grams of CO2 per kWh, as one number or as a list of 24, one for each hour of the day";
    grams
        .and_then(|grams| CarbonIntensity::new(&grams, None).ok())
        .ok_or_else(|| wrong_type("carbon", wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of TOML in the document.
    fn examples() -> Vec<&'static str> {
        let document = include_str!("../../../../docs/reference/config.md");
        let blocks = document.split("```toml\n").skip(1);
        blocks.filter_map(|rest| rest.split("```").next()).collect()
    }

    #[test]
    fn the_example_of_the_document_has_every_key() {
        let [example] = examples()[..] else {
            panic!("one example");
        };
        let config = Config::parse("example", example).unwrap();
        assert_eq!(config.objective, Some(Objective::Cost));
        assert_eq!(config.prefer, Some(Preference::Energy));
        assert_eq!(config.price_per_kwh, Some(0.30));
        assert_eq!(config.price_per_gpu_hour, Some(2.50));
        assert_eq!(config.currency.as_deref(), Some("EUR"));
        assert_eq!(config.carbon, Some(CarbonIntensity::Flat(380.0)));
        // The other form of the carbon intensity is a comment.
        let (before, hourly) = example.split_once("carbon = 380\n").unwrap();
        let hourly = before.to_owned() + &hourly.replace("# ", "");
        let carbon = Config::parse("example", &hourly).unwrap().carbon;
        assert!(matches!(carbon, Some(CarbonIntensity::Hourly { .. })));
    }

    #[test]
    fn the_example_of_each_key_is_valid() {
        for (key, example) in KEYS {
            let config = Config::parse("example", &format!("{key} = {example}\n")).unwrap();
            assert_ne!(config, Config::default(), "{key}");
            let alias = format!("{} = {example}", key.replace('-', "_"));
            assert_eq!(Config::parse("example", &alias).unwrap(), config);
        }
    }

    #[test]
    fn mistakes_are_reported_with_their_line_and_what_to_write() {
        for (text, expected) in [
            (
                "\nprice-per-kw = 0.3\n",
                "f, line 2: unknown key `price-per-kw`: write price-per-kwh",
            ),
            (
                "colour = 1",
                "f, line 1: unknown key `colour`: the keys are objective, prefer, price-per-kwh, price-per-gpu-hour, currency, carbon",
            ),
            (
                "objective = \"edp\"\n\n[tariff]\nprice-per-kwh = 1\n",
                "f, line 3: unknown key `tariff`: the keys are objective, prefer, price-per-kwh, price-per-gpu-hour, currency, carbon",
            ),
            (
                "price-per-kwh = \"0.3\"",
                "f, line 1: price-per-kwh must be a number: write price-per-kwh = 0.30",
            ),
            (
                "currency = \"USD\"\nprice_per_gpu_hour = -1",
                "f, line 2: price-per-gpu-hour must be a number of at least 0: write price-per-gpu-hour = 2.50",
            ),
            (
                "price-per-kwh = inf",
                "f, line 1: price-per-kwh must be a number of at least 0: write price-per-kwh = 0.30",
            ),
            (
                "objective = 2",
                "f, line 1: objective must be a text in quotes: write objective = \"edp\"",
            ),
            (
                "prefer = \"speed\"",
                "f, line 1: prefer: unknown preference `speed`: use time, energy or mean",
            ),
            (
                "objective = \"eds\"",
                "f, line 1: objective: `eds` needs a factor above 1, such as eds:1.5: the larger the factor, the more energy counts against time",
            ),
            (
                "carbon = [1, 2]",
                "f, line 1: carbon must be grams of CO2 per kWh, as one number or as a list of 24, one for each hour of the day: write carbon = 380",
            ),
            (
                "price-per-kwh = 1\nprice_per_kwh = 2",
                "f, line 2: price-per-kwh is given twice: remove one of them",
            ),
        ] {
            let error = Config::parse("f", text).unwrap_err();
            assert_eq!(format!("{error:#}"), expected);
        }
        for (text, line) in [("objective = edp", 1), ("prefer = \"time\"\nprefer", 2)] {
            let error = Config::parse("f", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("f, line {line}: ")), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
