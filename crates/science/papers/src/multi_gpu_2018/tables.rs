//! Of multi_gpu_2018: its tables of steps, whole trainings, counts, efficiency and accuracy.

use serde::Deserialize;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::tables::{PublishedError, network, rows};

/// A cell of tables 4, 5, 7 and 8 of multi_gpu_2018: one step of a batch on one of the GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCell {
    /// The GPU's profile.
    pub gpu: String,
    /// `forward` or `backward`.
    pub step: String,
    /// How many GPUs.
    pub gpus: u64,
    /// The network's name here.
    pub network: &'static str,
    /// As printed.
    pub printed_network: String,
    /// Items in a batch, all GPUs together.
    pub batch: u64,
    /// For a batch.
    pub time: Seconds,
    /// For a batch, of the GPU that was measured.
    pub energy: Joules,
    /// As printed beside the energy.
    pub power: Watts,
}

impl StepCell {
    /// Whether the printed watts are the printed joules over the printed seconds, within a tenth, and
    /// possible on a board of 250 W.
    pub fn is_consistent(&self) -> bool {
        let power = self.energy / self.time;
        let most = Watts::new(275.0);
        let off = (self.power / power - Ratio::new(1.0)).abs();
        off <= Ratio::new(0.1) && power < most && self.power < most
    }
}

#[derive(Deserialize)]
struct PrintedStep {
    measured_gpu: String,
    step: String,
    gpus: u64,
    network: String,
    batch_size: u64,
    seconds_per_batch: Option<f64>,
    joules_per_batch_one_gpu: Option<f64>,
    watts_one_gpu: Option<f64>,
}

/// The filled cells of tables 4, 5, 7 and 8 of multi_gpu_2018.
pub fn multi_gpu_2018() -> Result<Vec<StepCell>, PublishedError> {
    const FILE: &str = "multi_gpu_2018_tables_4_5_7_8.csv";
    let mut cells = Vec::new();
    for row in rows::<PrintedStep>(FILE)? {
        if let (Some(time), Some(energy), Some(power)) = (
            row.seconds_per_batch,
            row.joules_per_batch_one_gpu,
            row.watts_one_gpu,
        ) {
            cells.push(StepCell {
                gpu: row.measured_gpu,
                step: row.step,
                gpus: row.gpus,
                network: network(FILE, &row.network)?,
                printed_network: row.network,
                batch: row.batch_size,
                time: Seconds::new(time),
                energy: Joules::new(energy),
                power: Watts::new(power),
            });
        }
    }
    Ok(cells)
}

/// A row of table 1 of multi_gpu_2018: what a network costs for one sample.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Count {
    /// As printed.
    pub network: String,
    /// How many.
    pub layers: u64,
    /// Millions.
    pub arithmetic_operations_millions: f64,
    /// Megabytes.
    pub data_read_mb: f64,
    /// Megabytes.
    pub data_written_mb: f64,
    /// Operations for what is read.
    pub ctc_ratio: f64,
}

/// Table 1 of multi_gpu_2018.
pub fn multi_gpu_2018_counts() -> Result<Vec<Count>, PublishedError> {
    rows("multi_gpu_2018_table_1_networks.csv")
}

/// A row of table 3 of multi_gpu_2018.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Iterations {
    /// As printed.
    pub network: String,
    /// Items in a batch.
    pub batch_size: u64,
    /// Of the whole training.
    pub iterations: u64,
    /// Of the whole training.
    pub epochs: u64,
}

/// Table 3 of multi_gpu_2018.
pub fn multi_gpu_2018_iterations() -> Result<Vec<Iterations>, PublishedError> {
    rows("multi_gpu_2018_table_3_iterations.csv")
}

/// A cell of tables 6 and 9 of multi_gpu_2018: a whole training, all GPUs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Whole {
    /// The GPU's profile.
    pub measured_gpu: String,
    /// As printed.
    pub network: String,
    /// How many GPUs.
    pub gpus: u64,
    /// Items in a batch.
    pub batch_size: u64,
    /// As printed; none where nothing is printed.
    pub kiloseconds: Option<f64>,
    /// As printed.
    pub megajoules: Option<f64>,
    /// As printed, megajoules by kiloseconds.
    pub edp: Option<f64>,
}

/// Tables 6 and 9 of multi_gpu_2018.
pub fn multi_gpu_2018_whole() -> Result<Vec<Whole>, PublishedError> {
    rows("multi_gpu_2018_tables_6_9.csv")
}

/// A cell of table 11 of multi_gpu_2018, or an average of such cells.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Efficiency {
    /// The GPU's profile.
    pub measured_gpu: String,
    /// As printed; none where the average is over all.
    pub network: Option<String>,
    /// How many GPUs.
    pub gpus: u64,
    /// Items in a batch; none where the average is over all.
    pub batch_size: Option<u64>,
    /// As printed; none where nothing is printed.
    pub gflops_per_watt: Option<f64>,
}

/// The cells of table 11 of multi_gpu_2018.
pub fn multi_gpu_2018_efficiency() -> Result<Vec<Efficiency>, PublishedError> {
    rows("multi_gpu_2018_table_11_gflops_per_watt.csv")
}

/// The averages of table 11 of multi_gpu_2018.
pub fn multi_gpu_2018_averages() -> Result<Vec<Efficiency>, PublishedError> {
    rows("multi_gpu_2018_table_11_averages.csv")
}

/// A row of tables 12 and 13 of multi_gpu_2018.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Accuracy {
    /// As printed.
    pub network: String,
    /// What it was trained on.
    pub dataset: String,
    /// Items in a batch.
    pub batch_size: u64,
    /// `average`, `top-1`, `top-5`.
    pub measure: String,
    /// Per cent.
    pub accuracy_pct: f64,
}

/// Tables 12 and 13 of multi_gpu_2018.
pub fn multi_gpu_2018_accuracy() -> Result<Vec<Accuracy>, PublishedError> {
    rows("multi_gpu_2018_tables_12_13_accuracy.csv")
}
