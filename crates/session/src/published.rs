//! The papers' tables, as printed, and measurements, as taken.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_sim::Mode;

// The tables that were there when the program was built: `TABLES: &[(name, text)]`.
include!(concat!(env!("OUT_DIR"), "/published.rs"));

/// A published table that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// It is not part of this program.
    #[error("the published table {0} is not part of this build (data/published)")]
    Absent(&'static str),
    /// It is there but damaged.
    #[error("the published table {file} cannot be read: {reason}")]
    Damaged {
        /// Which file.
        file: &'static str,
        /// Where and how.
        reason: String,
    },
}

/// All rows of a table.
fn rows<T: DeserializeOwned>(file: &'static str) -> Result<Vec<T>, PublishedError> {
    let table = TABLES.iter().find(|(name, _)| *name == file);
    let (_, text) = table.ok_or(PublishedError::Absent(file))?;
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .map(|row| row.map_err(|error| damaged(file, error.to_string())))
        .collect()
}

fn damaged(file: &'static str, reason: String) -> PublishedError {
    PublishedError::Damaged { file, reason }
}

/// A network's name here, by the name that a paper prints.
fn network(file: &'static str, printed: &str) -> Result<&'static str, PublishedError> {
    Ok(match printed {
        "Alexnet" | "AlexNet" => "alexnet",
        "VGG-19" => "vgg19",
        "VggNet-16" => "vgg16",
        "Inception3" => "inception_v3",
        "Inception4" => "inception_v4",
        "Resnet50" | "ResNet-50" => "resnet50",
        "Resnet152" => "resnet152",
        "GoogleNet" => "googlenet",
        "CaffeNet" => "caffenet",
        "2D-CNN" => "cnn2d",
        "ResNet" => "resnet_gait",
        "ResNetIm" => "resnet_im",
        other => return Err(damaged(file, format!("unknown network {other}"))),
    })
}

/// A row of tables 2 and 3 of power_capping_2022.
#[derive(Clone, Debug, PartialEq)]
pub struct CapRow {
    /// The GPU's profile.
    pub gpu: String,
    /// The network's name here.
    pub network: &'static str,
    /// `default`, `min E` and so on.
    pub selection: String,
    /// The cap.
    pub power_cap: Watts,
    /// Of the whole run.
    pub time: Seconds,
    /// Of the whole run.
    pub energy: Joules,
}

#[derive(Deserialize)]
struct PrintedCap {
    gpu: String,
    network: String,
    selection: String,
    power_cap_w: f64,
    energy_kj: f64,
    time_s: f64,
}

/// All 60 rows of tables 2 and 3 of power_capping_2022.
pub fn power_capping_2022() -> Result<Vec<CapRow>, PublishedError> {
    const FILE: &str = "power_capping_2022_tables_2_3.csv";
    let of = |row: PrintedCap| {
        Ok(CapRow {
            gpu: row.gpu,
            network: network(FILE, &row.network)?,
            selection: row.selection,
            power_cap: Watts::new(row.power_cap_w),
            time: Seconds::new(row.time_s),
            energy: Joules::new(row.energy_kj * 1e3),
        })
    };
    rows(FILE)?.into_iter().map(of).collect()
}

/// A cell of tables III and IV of dvfs_2019: what the best core clock saves.
#[derive(Clone, Debug, PartialEq)]
pub struct SavingCell {
    /// The GPU's profile.
    pub gpu: &'static str,
    /// The network of table III, the convolution algorithm of table IV.
    pub of: String,
    /// Training or inference.
    pub mode: Mode,
    /// Of the energy of an item.
    pub saving: Ratio,
}

#[derive(Deserialize)]
struct PrintedSaving {
    #[serde(alias = "network")]
    algorithm: String,
    phase: Option<String>,
    gpu: String,
    energy_saving_pct: f64,
}

/// Tables III and IV of dvfs_2019.
pub fn dvfs_2019() -> Result<(Vec<SavingCell>, Vec<SavingCell>), PublishedError> {
    let cells = |file: &'static str,
                 name: fn(&'static str, &str) -> Result<String, PublishedError>| {
        let of = |row: PrintedSaving| {
            Ok(SavingCell {
                gpu: match row.gpu.as_str() {
                    "tesla_p100" => "tesla_p100",
                    "tesla_v100" => "tesla_v100_pcie_16gb",
                    "gtx_2080ti" => "gtx_2080ti",
                    other => return Err(damaged(file, format!("unknown GPU {other}"))),
                },
                of: name(file, &row.algorithm)?,
                mode: match row.phase.as_deref() {
                    Some("inference") => Mode::Infer,
                    _ => Mode::Train,
                },
                saving: Ratio::new(row.energy_saving_pct / 100.0),
            })
        };
        rows(file)?
            .into_iter()
            .map(of)
            .collect::<Result<Vec<_>, _>>()
    };
    Ok((
        cells("dvfs_2019_table_3_savings.csv", |file, name| {
            network(file, name).map(str::to_owned)
        })?,
        cells("dvfs_2019_table_4_savings_by_algorithm.csv", |_, name| {
            Ok(name.to_lowercase())
        })?,
    ))
}

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
                batch: row.batch_size,
                time: Seconds::new(time),
                energy: Joules::new(energy),
                power: Watts::new(power),
            });
        }
    }
    Ok(cells)
}

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

#[derive(Deserialize)]
struct Fact {
    fact: String,
    value: String,
}

/// A number among the facts of a paper.
fn fact(file: &'static str, facts: &[Fact], name: &str) -> Result<f64, PublishedError> {
    let found = facts.iter().find(|fact| fact.fact == name);
    let number = found.and_then(|fact| fact.value.parse().ok());
    number.ok_or_else(|| damaged(file, format!("no number `{name}`")))
}

/// What node_power_capping_2023 says of its node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// Numbers of GPUs and the most that a cap saves with them.
    pub savings: Vec<(u64, Ratio)>,
    /// Time on one GPU over time on 4, and on 8 at 260 W and at 170 W.
    pub speedups: [f64; 3],
    /// With 8 GPUs: the metric, what it gains, and the best cap.
    pub best: Vec<(String, Ratio, Watts)>,
}

#[derive(Deserialize)]
struct PrintedBest {
    metric: String,
    gain_pct: f64,
    power_cap_w: f64,
}

/// The facts and table 1 of node_power_capping_2023.
pub fn node_power_capping_2023() -> Result<NodeFacts, PublishedError> {
    const FACTS: &str = "node_power_capping_2023_facts.csv";
    let facts: Vec<Fact> = rows(FACTS)?;
    let of = |name: &str| fact(FACTS, &facts, name);
    let mut savings = Vec::new();
    for gpus in [1, 2, 4, 8] {
        let percent = of(&format!("energy_saving_{gpus}_gpu_pct"))?;
        savings.push((gpus, Ratio::new(percent / 100.0)));
    }
    let best: Vec<PrintedBest> = rows("node_power_capping_2023_table_1.csv")?;
    Ok(NodeFacts {
        savings,
        speedups: [
            of("speedup_4_gpus")?,
            of("speedup_8_gpus_260w")?,
            of("speedup_8_gpus_170w")?,
        ],
        best: best
            .into_iter()
            .map(|row| {
                let gain = Ratio::new(row.gain_pct / 100.0);
                (row.metric, gain, Watts::new(row.power_cap_w))
            })
            .collect(),
    })
}

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
