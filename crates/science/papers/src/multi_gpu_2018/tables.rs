//! The tables of multi_gpu_2018: steps, whole trainings, network costs, efficiency and accuracy.

use serde::Deserialize;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::tables::{PublishedError, network_name, read_rows};

/// A cell of tables 4, 5, 7 and 8 of multi_gpu_2018: one step of a batch on one of the GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct StepCell {
    /// The name of the measured GPU's profile.
    pub gpu: String,
    /// Whether the step is `forward` or `backward`.
    pub step: String,
    /// The number of GPUs that the batch is divided among.
    pub gpus: u64,
    /// The name of the network in the profiles.
    pub network: &'static str,
    /// The printed name of the network.
    pub printed_network: String,
    /// The batch size of all GPUs together.
    pub batch: u64,
    /// The printed time of the step for one batch.
    pub time: Seconds,
    /// The printed energy of the step for one batch, on the measured GPU alone.
    pub energy: Joules,
    /// The printed mean power of the measured GPU.
    pub power: Watts,
}

impl StepCell {
    /// Whether the printed watts are the printed joules over the printed seconds, within 10 %, and possible on a board
    /// of 250 W.
    pub fn is_consistent(&self) -> bool {
        let power = self.energy / self.time;
        let max = Watts::new(275.0);
        let deviation = (self.power / power - Ratio::new(1.0)).abs();
        deviation <= Ratio::new(0.1) && power < max && self.power < max
    }
}

/// A row of the file with tables 4, 5, 7 and 8, as it is written there.
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

/// Reads the cells of tables 4, 5, 7 and 8 that are not empty.
pub fn read_step_cells() -> Result<Vec<StepCell>, PublishedError> {
    const FILE: &str = "multi_gpu_2018_tables_4_5_7_8.csv";
    let mut cells = Vec::new();
    for row in read_rows::<PrintedStep>(FILE)? {
        if let (Some(time), Some(energy), Some(power)) = (
            row.seconds_per_batch,
            row.joules_per_batch_one_gpu,
            row.watts_one_gpu,
        ) {
            cells.push(StepCell {
                gpu: row.measured_gpu,
                step: row.step,
                gpus: row.gpus,
                network: network_name(FILE, &row.network)?,
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

/// A row of table 1 of multi_gpu_2018: the cost of a network for one sample.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct NetworkCost {
    /// The printed name of the network.
    pub network: String,
    /// The printed number of layers.
    pub layers: u64,
    /// The arithmetic operations for one sample, in millions.
    pub arithmetic_operations_millions: f64,
    /// The data read for one sample, in megabytes of 2^20 bytes.
    pub data_read_mb: f64,
    /// The data written for one sample, in megabytes of 2^20 bytes.
    pub data_written_mb: f64,
    /// The computation-to-communication ratio: operations per byte read.
    pub ctc_ratio: f64,
}

/// Reads the network costs of table 1.
pub fn read_network_costs() -> Result<Vec<NetworkCost>, PublishedError> {
    read_rows("multi_gpu_2018_table_1_networks.csv")
}

/// A row of table 3 of multi_gpu_2018: the iterations of a whole training.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Iterations {
    /// The printed name of the network.
    pub network: String,
    /// The batch size of the training.
    pub batch_size: u64,
    /// The number of iterations of the whole training.
    pub iterations: u64,
    /// The number of epochs of the whole training.
    pub epochs: u64,
}

/// Reads the iterations of table 3.
pub fn read_iterations() -> Result<Vec<Iterations>, PublishedError> {
    read_rows("multi_gpu_2018_table_3_iterations.csv")
}

/// A cell of tables 6 and 9 of multi_gpu_2018: time and energy of a whole training on all GPUs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WholeTraining {
    /// The name of the measured GPU's profile.
    pub measured_gpu: String,
    /// The printed name of the network.
    pub network: String,
    /// The number of GPUs that the batch is divided among.
    pub gpus: u64,
    /// The batch size of all GPUs together.
    pub batch_size: u64,
    /// The printed time in kiloseconds; `None` if the cell is empty.
    pub kiloseconds: Option<f64>,
    /// The printed energy of all GPUs in megajoules; `None` if the cell is empty.
    pub megajoules: Option<f64>,
    /// The printed energy-delay product in megajoules times kiloseconds; `None` if the cell is empty.
    pub edp: Option<f64>,
}

/// Reads the whole trainings of tables 6 and 9.
pub fn read_whole_trainings() -> Result<Vec<WholeTraining>, PublishedError> {
    read_rows("multi_gpu_2018_tables_6_9.csv")
}

/// A row of table 10 of multi_gpu_2018: how much less ResNet takes on Pascal than on Maxwell.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Advantage {
    /// Whether the step is `forward` or `backward`.
    pub step: String,
    /// The number of GPUs that the batch is divided among.
    pub gpus: u64,
    /// The batch size of all GPUs together.
    pub batch_size: u64,
    /// The printed advantage in time, in per cent.
    pub less_time_pct: f64,
    /// The printed advantage in energy, in per cent.
    pub less_energy_pct: f64,
}

/// Reads the advantages of table 10.
pub fn read_advantages() -> Result<Vec<Advantage>, PublishedError> {
    read_rows("multi_gpu_2018_table_10_resnet.csv")
}

/// A cell of table 11 of multi_gpu_2018, or an average of such cells.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Efficiency {
    /// The name of the measured GPU's profile.
    pub measured_gpu: String,
    /// The printed name of the network; `None` for an average over all networks.
    pub network: Option<String>,
    /// The number of GPUs that the batch is divided among.
    pub gpus: u64,
    /// The batch size; `None` for an average over all batch sizes.
    pub batch_size: Option<u64>,
    /// The printed efficiency; `None` if the cell is empty.
    pub gflops_per_watt: Option<f64>,
}

/// Reads the cells of table 11.
pub fn read_efficiencies() -> Result<Vec<Efficiency>, PublishedError> {
    read_rows("multi_gpu_2018_table_11_gflops_per_watt.csv")
}

/// Reads the averages of table 11.
pub fn read_average_efficiencies() -> Result<Vec<Efficiency>, PublishedError> {
    read_rows("multi_gpu_2018_table_11_averages.csv")
}

/// A row of tables 12 and 13 of multi_gpu_2018: the accuracy after training.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Accuracy {
    /// The printed name of the network.
    pub network: String,
    /// The dataset of the training.
    pub dataset: String,
    /// The batch size of the training.
    pub batch_size: u64,
    /// How the accuracy is measured: `average`, `top-1` or `top-5`.
    pub measure: String,
    /// The accuracy in per cent.
    pub accuracy_pct: f64,
}

/// Reads the accuracies of tables 12 and 13.
pub fn read_accuracies() -> Result<Vec<Accuracy>, PublishedError> {
    read_rows("multi_gpu_2018_tables_12_13_accuracy.csv")
}
