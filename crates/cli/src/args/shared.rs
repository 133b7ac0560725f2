//! What several commands take.

use std::path::PathBuf;

use clap::Args;
use sweetspot_quantity::{Seconds, parse_bare};
use sweetspot_sim::{Mode, Variant};

#[derive(Debug, Args)]
pub struct ExportArgs {
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
