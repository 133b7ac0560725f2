//! The batch studies on an H200.

use serde::Deserialize;
use sweetspot_sim::Mode;

use crate::tables::{PublishedError, rows};

/// A row of the batch studies measured on an H200.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BatchRow {
    /// The network's name here.
    pub network: String,
    /// Items in a batch.
    pub batch: u64,
    /// Iterations in the run.
    pub iters: u64,
    /// Items a second.
    pub samples_per_s: f64,
    /// Mean power in watts.
    pub mean_w: f64,
}

/// The batch studies on an H200: inference and training.
pub fn h200() -> Result<Vec<(Mode, BatchRow)>, PublishedError> {
    let of = |mode, file| {
        let rows: Vec<BatchRow> = rows(file)?;
        Ok(rows.into_iter().map(move |row| (mode, row)))
    };
    let infer = of(Mode::Infer, "batch_study_inference.csv")?;
    let train = of(Mode::Train, "batch_study_training.csv")?;
    Ok(infer.chain(train).collect())
}
