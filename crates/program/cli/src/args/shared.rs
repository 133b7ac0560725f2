//! What several commands take.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use sweetspot_decide::{
    CarbonIntensity, Criteria, Hour, Limit, LimitError, Objective, Price, Tariff,
};
use sweetspot_quantity::{Seconds, parse_bare};
use sweetspot_sim::{Mode, Variant};
use sweetspot_study::Definition;

use crate::documents::Format;

/// The documents of a study.
#[derive(Debug, Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub text: TextExportArgs,

    /// Write a page with figures that opens in any browser and needs nothing else; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TextExportArgs {
    /// Write the result as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,

    /// Write the result as lines of CSV; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,

    /// Write the tables as Markdown; `-` as above.
    #[arg(long, value_name = "FILE")]
    pub export_md: Option<PathBuf>,
}

impl ExportArgs {
    /// Each format with its path, where one was given.
    pub fn asked(&self) -> Vec<(Format, Option<&Path>)> {
        let mut asked = self.text.asked();
        asked.push((Format::Html, self.export_html.as_deref()));
        asked
    }
}

impl TextExportArgs {
    /// Each format with its path, where one was given.
    pub fn asked(&self) -> Vec<(Format, Option<&Path>)> {
        vec![
            (Format::Json, self.export_json.as_deref()),
            (Format::Csv, self.export_csv.as_deref()),
            (Format::Markdown, self.export_md.as_deref()),
        ]
    }
}

/// Which form of a workload.
#[derive(Debug, Args)]
pub struct VariantArgs {
    /// The network is trained.
    #[arg(long, conflicts_with = "infer")]
    pub train: bool,

    /// The network is only used.
    #[arg(long)]
    pub infer: bool,

    /// How convolutions are done, where the study has it: gemm, fft, winograd.
    #[arg(long, value_name = "NAME")]
    pub conv_algorithm: Option<String>,

    /// What the network is fed with, where the study has it: imagenet, caltech.
    #[arg(long, value_name = "NAME")]
    pub dataset: Option<String>,
}

/// What is done in simulated runs.
#[derive(Debug, Args)]
pub struct WorkArgs {
    #[command(flatten)]
    pub variant: VariantArgs,

    /// Items in a batch [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number, help_heading = "Simulation")]
    pub batch: Option<u64>,

    /// Items in a run [default: as in the study].
    #[arg(long, value_name = "N", value_parser = whole_number, help_heading = "Simulation")]
    pub items: Option<u64>,
}

impl VariantArgs {
    /// `train` or `infer`, where the user says.
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

pub fn mode(train: bool, infer: bool) -> Option<Mode> {
    match (train, infer) {
        (true, _) => Some(Mode::Train),
        (_, true) => Some(Mode::Infer),
        _ => None,
    }
}

pub fn whole_number(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    number
        .filter(|number| (1..=MOST_ITEMS).contains(number))
        .ok_or_else(|| format!("one whole number from 1 to {MOST_ITEMS} is needed"))
}

/// A billion items take years on any GPU.
const MOST_ITEMS: u64 = 1_000_000_000;

pub fn positive_seconds(text: &str) -> Result<Seconds, String> {
    match parse_bare::<Seconds>(text) {
        Ok(time) if time > Seconds::ZERO => Ok(time),
        Ok(_) => Err("the time must be more than zero".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What is wanted of a study.
#[derive(Debug, Args)]
pub struct QuestionArgs {
    /// What the recommendation is for: energy, time, power, edp, ed2p, eds:K, gain-minus-loss,
    /// energy-per-item, items-per-joule, throughput, cost, carbon [default: edp, or what the study was made for].
    #[arg(long, value_name = "OBJ", help_heading = "Answer")]
    pub objective: Option<Objective>,

    /// What must hold: time<=+5%, average_power<=200W, accuracy>=0.75; a percentage with a sign is of the
    /// reference. Can be given several times; `none` drops those that a study was made with.
    #[arg(long, value_name = "LIMIT", value_parser = limit, help_heading = "Answer")]
    pub limit: Vec<Option<Limit>>,

    /// For the objective cost: the price of a kWh.
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Answer"
    )]
    pub price_per_kwh: Option<f64>,

    /// For the objective cost: the price of a GPU for an hour.
    #[arg(
        long,
        value_name = "PRICE",
        allow_negative_numbers = true,
        help_heading = "Answer"
    )]
    pub price_per_gpu_hour: Option<f64>,

    /// For the objective cost: what prices are in [default: EUR].
    #[arg(
        long,
        value_name = "NAME",
        default_value = "EUR",
        hide_default_value = true,
        help_heading = "Answer"
    )]
    pub currency: String,

    /// For the objective carbon: grams of CO2 for a kWh, one number, or 24 by the hour of day with commas
    /// between.
    #[arg(
        long,
        value_name = "GRAMS",
        allow_negative_numbers = true,
        help_heading = "Answer"
    )]
    pub carbon: Option<CarbonIntensity>,

    /// For the objective carbon by the hour: when the job is to start, 14:30.
    #[arg(
        long,
        value_name = "HOUR",
        requires = "carbon",
        help_heading = "Answer"
    )]
    pub start: Option<Hour>,
}

fn limit(text: &str) -> Result<Option<Limit>, String> {
    match text {
        "none" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|error: LimitError| error.to_string()),
    }
}

impl QuestionArgs {
    /// The limits that are given, where any are.
    pub fn limits(&self) -> Option<Vec<Limit>> {
        let given = self.limit.iter().flatten().cloned().collect();
        (!self.limit.is_empty()).then_some(given)
    }

    /// What is asked of a study: what it was made for, unless something else is given.
    pub fn question_of(&self, definition: &Definition) -> Result<Criteria> {
        let mut question = self.question()?;
        if self.objective.is_none() {
            question.objective = definition.objective.unwrap_or(question.objective);
        }
        if self.limit.is_empty() {
            question.limits = definition.limit.clone().unwrap_or_default();
        }
        Ok(question)
    }

    pub fn question(&self) -> Result<Criteria> {
        let price = match (self.price_per_kwh, self.price_per_gpu_hour) {
            (None, None) => None,
            (kwh, hour) => Some(Price::new(
                kwh.unwrap_or(0.0),
                hour.unwrap_or(0.0),
                self.currency.clone(),
            )?),
        };
        let carbon = match (&self.carbon, self.start) {
            (Some(CarbonIntensity::Hourly { grams, .. }), start) => Some(CarbonIntensity::Hourly {
                grams: *grams,
                start,
            }),
            (carbon, _) => carbon.clone(),
        };
        Ok(Criteria {
            objective: self.objective.unwrap_or(Objective::Edp),
            limits: self.limits().unwrap_or_default(),
            tariff: Tariff { price, carbon },
        })
    }
}
