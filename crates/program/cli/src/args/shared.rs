//! Flags that several commands have.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use sweetspot_decide::{
    CarbonIntensity, Criteria, Hour, Limit, LimitError, Objective, Preference, Price, Tariff,
};
use sweetspot_quantity::{Seconds, parse_bare};
use sweetspot_sim::{Mode, Variant, use_profiles};
use sweetspot_study::{Axis, Definition, Study, TrainingLength, ValueTable};

use crate::config::Config;
use crate::documents::Format;

/// The largest accepted size of a table that the user gives.
pub const MAX_TABLE_BYTES: u64 = 64 << 20;

/// The flag that changes settings through sudo.
#[derive(Debug, Default, Args)]
pub struct SudoArgs {
    /// Change GPU settings through sudo. Only a small process that changes and restores settings runs as root; your
    /// command and all files stay yours.
    #[arg(long, conflicts_with = "as_root")]
    pub sudo: bool,

    #[command(flatten)]
    pub root: AsRootArg,
}

/// The flag that keeps root's rights under sudo.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct AsRootArg {
    /// Under sudo, run the command as root too. By default everything but changing settings is done as the user who
    /// called sudo.
    #[arg(long)]
    pub as_root: bool,
}

/// Flags that write a study to files.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub text: TextExportArgs,

    /// Write an HTML page with figures that any browser can open offline; `-` writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_html: Option<PathBuf>,
}

/// Flags that write a result to files.
#[derive(Debug, Args)]
pub struct TextExportArgs {
    /// Write the result as JSON; `-` writes it to standard output in place of the tables.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the result as CSV; `-` writes it to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write the tables as Markdown; `-` writes them to standard output.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,
}

impl ExportArgs {
    /// Each format with its path, if the user gave one.
    pub fn requested(&self) -> Vec<(Format, Option<&Path>)> {
        let mut requested = self.text.requested();
        requested.push((Format::Html, self.export_html.as_deref()));
        requested
    }
}

impl TextExportArgs {
    /// Each format with its path, if the user gave one.
    pub fn requested(&self) -> Vec<(Format, Option<&Path>)> {
        vec![
            (Format::Json, self.export_json.as_deref()),
            (Format::Csv, self.export_csv.as_deref()),
            (Format::Markdown, self.export_md.as_deref()),
        ]
    }
}

/// The flag that replaces built-in profiles.
#[derive(Debug, Args)]
pub struct ProfilesArgs {
    /// Use the profiles in this folder in place of built-in ones of the same name: gpus/NAME.toml, nodes/NAME.toml and
    /// workloads/STUDY/NETWORK.toml. The result names those that are not as they were fitted.
    #[arg(long, value_name = "FOLDER")]
    pub profiles: Option<PathBuf>,
}

impl ProfilesArgs {
    /// Uses the user's profiles, if there are any, in the whole program.
    pub fn use_folder(&self) -> Result<()> {
        let folder = self.profiles.as_deref();
        folder.map_or(Ok(()), use_profiles).context("--profiles")
    }
}

/// Flags that choose a variant of a simulated workload.
#[derive(Debug, Args)]
pub struct VariantArgs {
    /// Simulate training.
    #[arg(long, conflicts_with = "infer")]
    pub train: bool,

    /// Simulate inference.
    #[arg(long)]
    pub infer: bool,

    /// The convolution algorithm, for profiles that distinguish them: gemm, fft, winograd.
    #[arg(long, value_name = "NAME")]
    pub conv_algorithm: Option<String>,

    /// The dataset, for profiles that distinguish them: imagenet, caltech.
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
}

/// Flags that choose the work of a simulated run.
#[derive(Debug, Args)]
pub struct WorkArgs {
    #[command(flatten)]
    pub variant: VariantArgs,

    /// Items in a batch [default: as in the profile].
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Simulation")]
    pub batch: Option<u64>,

    /// Items in a run [default: as in the profile].
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Simulation")]
    pub items: Option<u64>,
}

impl VariantArgs {
    /// `train` or `infer`, if the user chose one.
    pub fn mode(&self) -> Option<&'static str> {
        match (self.train, self.infer) {
            (true, _) => Some("train"),
            (_, true) => Some("infer"),
            _ => None,
        }
    }

    pub fn variant(&self) -> Variant {
        Variant {
            mode: mode(self.train, self.infer),
            conv_algorithm: self.conv_algorithm.clone(),
            dataset: self.dataset.clone(),
        }
    }
}

/// Training or inference, if one of the two flags is given.
pub fn mode(train: bool, infer: bool) -> Option<Mode> {
    match (train, infer) {
        (true, _) => Some(Mode::Train),
        (_, true) => Some(Mode::Infer),
        _ => None,
    }
}

/// Parses the name of one network; a comma, which once separated several, is refused with the form that works.
pub fn parse_network(text: &str) -> Result<String, String> {
    if !text.contains(',') || Path::new(text).exists() {
        return Ok(text.to_owned());
    }
    let names = text.split(',').map(str::trim);
    let flags: Vec<String> = names.map(|name| format!("--network {name}")).collect();
    Err(format!("name each network by itself: {}", flags.join(" ")))
}

/// Parses a number of items or of batches.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=MAX_ITEMS).contains(number))
        .ok_or_else(|| format!("give one whole number from 1 to {MAX_ITEMS}"))
}

/// The highest number of items that is accepted: a billion items take years on any GPU.
const MAX_ITEMS: u64 = 1_000_000_000;

pub fn parse_positive_seconds(text: &str) -> Result<Seconds, String> {
    match parse_bare::<Seconds>(text) {
        Ok(time) if time > Seconds::ZERO => Ok(time),
        Ok(_) => Err("the time must be more than zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Flags that choose the criteria of a recommendation.
#[derive(Debug, Args)]
pub struct CriteriaArgs {
    /// What to optimise: energy, time, power, edp, ed2p, eds:K, gain-minus-loss, energy-per-item, items-per-joule,
    /// throughput, cost, carbon [default: the objective of the study, else that of your configuration file, else edp].
    #[arg(long, value_name = "OBJ", help_heading = "Recommendation")]
    pub objective: Option<Objective>,

    /// A limit that a setting must respect: time<=+5%, average_power<=200W, accuracy>=0.75; a percentage with a sign is
    /// relative to the reference. Can be given several times; `none` drops the limits of the study.
    #[arg(long, value_name = "LIMIT", value_parser = parse_limit, help_heading = "Recommendation")]
    pub limit: Vec<Option<Limit>>,

    /// For the objective cost: the price of a kWh.
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Recommendation"
    )]
    pub price_per_kwh: Option<f64>,

    /// For the objective cost: the price of an hour of one GPU.
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Recommendation"
    )]
    pub price_per_gpu_hour: Option<f64>,

    /// For the objective cost: the currency of the prices [default: EUR].
    #[arg(long, value_name = "NAME", help_heading = "Recommendation")]
    pub currency: Option<String>,

    /// For the objective carbon: grams of CO2 per kWh, as one number or as 24 numbers for the hours of the day,
    /// separated by commas.
    #[arg(
        long,
        value_name = "GRAMS",
        allow_negative_numbers = true,
        help_heading = "Recommendation"
    )]
    pub carbon: Option<CarbonIntensity>,

    /// For --carbon with 24 numbers: the time of day at which the job starts, 14:30.
    #[arg(long, value_name = "HOUR", help_heading = "Recommendation")]
    pub start: Option<Hour>,
}

/// Flags about the whole training that a study's runs are samples of.
#[derive(Debug, Args)]
pub struct TrainingArgs {
    /// The length of a whole training, to which all results are scaled: EPOCHSxITEMS such as 90x1281167, a number of
    /// items, or iterations for each batch such as 64=72368,128=36184 [default: results are those of a run].
    #[arg(long, value_name = "LENGTH", help_heading = "Recommendation")]
    pub training: Option<TrainingLength>,

    /// A CSV file with values of settings, such as accuracies of earlier trainings: its first line names axes and values
    /// (batch,accuracy). They can be used in --limit as values that the program reports.
    #[arg(long, value_name = "FILE", help_heading = "Recommendation")]
    pub values: Option<PathBuf>,
}

impl TrainingArgs {
    /// Reads the user's file of values; `None` if there is none.
    pub fn read_values(&self, axes: &[Axis]) -> Result<Option<ValueTable>> {
        let Some(path) = &self.values else {
            return Ok(None);
        };
        let text = sweetspot_input::read_text(path, MAX_TABLE_BYTES);
        let text = text.with_context(|| format!("cannot read the values in {}", path.display()))?;
        ValueTable::parse(&text, axes)
            .map(Some)
            .with_context(|| format!("invalid values in {}", path.display()))
    }

    /// Adds the values of the user's file to a study, and scales it to a whole training: the user's, else that of the
    /// study's definition.
    pub fn apply(&self, mut study: Study, definition: &Definition) -> Result<Study> {
        if let Some(table) = self.read_values(&study.plan.axes)? {
            study.add_values(&table)?;
        }
        match self.training.as_ref().or(definition.training.as_ref()) {
            Some(length) => Ok(study.for_training(length)?),
            None => Ok(study),
        }
    }
}

/// Which of several settings to recommend.
#[derive(Args, Clone, Copy, Debug)]
pub struct PreferArgs {
    /// Which setting to recommend among those that may be the best: the fastest (time), the one with the least energy,
    /// or the one with the best mean of the objective [default: time].
    #[arg(long, value_name = "time|energy|mean", help_heading = "Recommendation")]
    pub prefer: Option<Preference>,
}

fn parse_limit(text: &str) -> Result<Option<Limit>, String> {
    match text {
        "none" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|error: LimitError| error.to_string()),
    }
}

impl CriteriaArgs {
    /// The limits that the user gave, or `None` without --limit.
    pub fn limits(&self) -> Option<Vec<Limit>> {
        let given = self.limit.iter().flatten().cloned().collect();
        (!self.limit.is_empty()).then_some(given)
    }

    /// The criteria for a study: those that the user gave, else those of the study's definition, else those of the
    /// configuration file.
    pub fn criteria_for(&self, definition: &Definition, prefer: PreferArgs) -> Result<Criteria> {
        let mut criteria = self.criteria()?;
        let stored = preference_of(definition);
        criteria.preference = prefer.prefer.or(stored).unwrap_or(criteria.preference);
        if self.objective.is_none() {
            criteria.objective = objective_of(definition).unwrap_or(criteria.objective);
        }
        if self.limit.is_empty() {
            criteria.limits = definition.limit.clone().unwrap_or_default();
        }
        Ok(criteria)
    }

    /// The criteria that the user gave, with what is missing from the configuration file.
    pub fn criteria(&self) -> Result<Criteria> {
        let config = Config::load()?;
        let carbon = match (self.carbon.as_ref().or(config.carbon.as_ref()), self.start) {
            (None, Some(_)) => {
                bail!("--start needs the grams of CO2 per kWh of each hour: give --carbon")
            }
            (Some(CarbonIntensity::Hourly { grams, .. }), start) => Some(CarbonIntensity::Hourly {
                grams: *grams,
                start,
            }),
            (carbon, _) => carbon.cloned(),
        };
        let tariff = Tariff {
            price: self.price(&config)?,
            carbon,
        };
        Ok(Criteria {
            objective: self
                .objective
                .or(config.objective)
                .unwrap_or(Objective::Edp),
            limits: self.limits().unwrap_or_default(),
            tariff,
            preference: config.prefer.unwrap_or_default(),
        })
    }

    /// The price of energy and devices; `None` if it is unknown.
    fn price(&self, config: &Config) -> Result<Option<Price>> {
        let flags = self.price_per_kwh.or(self.price_per_gpu_hour);
        let price = |flag: Option<f64>, default: Option<f64>| flag.or(default).unwrap_or(0.0);
        let kwh = price(self.price_per_kwh, config.price_per_kwh);
        let hour = price(self.price_per_gpu_hour, config.price_per_gpu_hour);
        let currency = self.currency.as_ref().or(config.currency.as_ref());
        let currency = currency.map_or("EUR", String::as_str);
        // Prices of 0 in the configuration file are the same as none.
        match flags.is_none() && kwh + hour == 0.0 {
            true => Ok(None),
            false => Ok(Some(Price::new(kwh, hour, currency)?)),
        }
    }
}

/// The objective with which a study was made; `None` if its runs do not depend on one and none was given.
fn objective_of(definition: &Definition) -> Option<Objective> {
    let chooses_runs = definition.objective_chooses_runs();
    definition
        .objective
        .or(chooses_runs.then_some(Objective::Edp))
}

/// The preference that is stored with a study. If it decides which runs are added, it does not depend on the
/// configuration file.
fn preference_of(definition: &Definition) -> Option<Preference> {
    let chooses_runs = definition.is_until_sure();
    definition.prefer.or(chooses_runs.then(Preference::default))
}
