//! The measurements of several batch sizes on an H200.

use serde::Deserialize;
use sweetspot_sim::Mode;

use crate::tables::{PublishedError, read_rows};

/// A measured run with one batch size on an H200.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BatchRow {
    /// The name of the network in the profiles.
    pub network: String,
    /// The batch size of the run.
    pub batch: u64,
    /// The number of measured iterations.
    pub iters: u64,
    /// The throughput in items per second.
    pub samples_per_s: f64,
    /// The mean power of the GPU in watts.
    pub mean_w: f64,
}

/// Reads the measured runs of inference and training.
pub fn read_batch_rows() -> Result<Vec<(Mode, BatchRow)>, PublishedError> {
    let of = |mode, file| {
        let rows: Vec<BatchRow> = read_rows(file)?;
        Ok(rows.into_iter().map(move |row| (mode, row)))
    };
    let infer = of(Mode::Infer, "batch_study_inference.csv")?;
    let train = of(Mode::Train, "batch_study_training.csv")?;
    Ok(infer.chain(train).collect())
}
