//! Of batch_sizer_2021: the card, the jobs of table 2, and what the text says.

use serde::Deserialize;
use sweetspot_quantity::Watts;

use crate::tables::{Fact, PublishedError, fact, network, rows};

/// What batch_sizer_2021 says of its card.
#[derive(Clone, Debug, PartialEq)]
pub struct CardFacts {
    /// With a model loaded.
    pub loaded: Watts,
    /// The most it may draw.
    pub most: Watts,
    /// The batch size beyond which throughput no longer grows.
    pub saturation: u64,
}

/// The facts of batch_sizer_2021.
pub fn batch_sizer_2021() -> Result<CardFacts, PublishedError> {
    const FACTS: &str = "batch_sizer_2021_facts.csv";
    let facts: Vec<Fact> = rows(FACTS)?;
    let of = |name: &str| fact(FACTS, &facts, name);
    Ok(CardFacts {
        loaded: Watts::new(of("min_power_model_loaded_w")?),
        most: Watts::new(of("max_power_w")?),
        saturation: of("saturation_batch")? as u64,
    })
}

/// A job of table 2 of batch_sizer_2021.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedJob {
    /// Its number.
    pub job: u64,
    /// The network's name here.
    pub network: &'static str,
    /// Its data set's name here.
    pub dataset: String,
    /// The power cap.
    pub power_cap: Watts,
}

#[derive(Deserialize)]
struct JobRow {
    job: u64,
    network: String,
    dataset: String,
    power_cap_w: f64,
}

/// Table 2 of batch_sizer_2021.
pub fn batch_sizer_2021_jobs() -> Result<Vec<PrintedJob>, PublishedError> {
    const FILE: &str = "batch_sizer_2021_table_2_jobs.csv";
    let of = |row: JobRow| {
        Ok(PrintedJob {
            job: row.job,
            network: network(FILE, &row.network)?,
            dataset: row.dataset.to_lowercase(),
            power_cap: Watts::new(row.power_cap_w),
        })
    };
    rows(FILE)?.into_iter().map(of).collect()
}

/// A number that batch_sizer_2021 gives, by its name in the table of facts.
pub fn batch_sizer_2021_facts(name: &str) -> Result<f64, PublishedError> {
    const FACTS: &str = "batch_sizer_2021_facts.csv";
    fact(FACTS, &rows::<Fact>(FACTS)?, name)
}
