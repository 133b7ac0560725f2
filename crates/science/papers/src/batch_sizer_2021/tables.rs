//! The published values of batch_sizer_2021: the card, the jobs of table 2, and numbers in the text.

use serde::Deserialize;
use sweetspot_quantity::Watts;

use crate::tables::{Fact, PublishedError, find_fact, network_name, read_rows};

/// What batch_sizer_2021 says about its GPU card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardFacts {
    /// The power that the card draws while a model is loaded and nothing runs.
    pub loaded: Watts,
    /// The highest power that the card can draw.
    pub max_power: Watts,
    /// The batch size beyond which throughput no longer grows.
    pub saturation: u64,
}

/// Reads what the paper says about its GPU card.
pub fn read_card_facts() -> Result<CardFacts, PublishedError> {
    /// The file with the numbers from the paper's text.
    const FACTS: &str = "batch_sizer_2021_facts.csv";
    let facts: Vec<Fact> = read_rows(FACTS)?;
    let of = |name: &str| find_fact(FACTS, &facts, name);
    Ok(CardFacts {
        loaded: Watts::new(of("min_power_model_loaded_w")?),
        max_power: Watts::new(of("max_power_w")?),
        saturation: of("saturation_batch")? as u64,
    })
}

/// A job of table 2 of batch_sizer_2021.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedJob {
    /// The number of the job in table 2.
    pub job: u64,
    /// The name of the network in the profiles.
    pub network: &'static str,
    /// The name of the dataset in the profiles.
    pub dataset: String,
    /// The job's power cap.
    pub power_cap: Watts,
}

/// A row of the file with table 2, as it is written there.
#[derive(Deserialize)]
struct JobRow {
    job: u64,
    network: String,
    dataset: String,
    power_cap_w: f64,
}

/// Reads the jobs of table 2.
pub fn read_jobs() -> Result<Vec<PrintedJob>, PublishedError> {
    const FILE: &str = "batch_sizer_2021_table_2_jobs.csv";
    let of = |row: JobRow| {
        Ok(PrintedJob {
            job: row.job,
            network: network_name(FILE, &row.network)?,
            dataset: row.dataset.to_lowercase(),
            power_cap: Watts::new(row.power_cap_w),
        })
    };
    read_rows(FILE)?.into_iter().map(of).collect()
}

/// Reads a number from the file with the numbers of the paper's text, by its name there.
pub fn read_fact(name: &str) -> Result<f64, PublishedError> {
    /// The file with the numbers from the paper's text.
    const FACTS: &str = "batch_sizer_2021_facts.csv";
    find_fact(FACTS, &read_rows::<Fact>(FACTS)?, name)
}
