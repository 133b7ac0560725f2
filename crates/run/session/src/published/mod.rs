//! The papers' tables, as printed, and measurements, as taken.

mod batch_sizer_2021;
mod dvfs_2019;
mod h200;
mod multi_gpu_2018;
mod node_power_capping_2023;
mod power_capping_2022;

use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use batch_sizer_2021::{
    CardFacts, PrintedJob, batch_sizer_2021, batch_sizer_2021_facts, batch_sizer_2021_jobs,
};
pub use dvfs_2019::{
    PrintedBoard, SavingCell, TextFact, dvfs_2019, dvfs_2019_boards, dvfs_2019_text,
};
pub use h200::{BatchRow, h200};
pub use multi_gpu_2018::{
    Accuracy, Count, Efficiency, Iterations, StepCell, Whole, multi_gpu_2018,
    multi_gpu_2018_accuracy, multi_gpu_2018_averages, multi_gpu_2018_counts,
    multi_gpu_2018_efficiency, multi_gpu_2018_iterations, multi_gpu_2018_whole,
};
pub use node_power_capping_2023::{NodeFacts, node_power_capping_2023};
pub use power_capping_2022::{CapRow, TextRange, power_capping_2022, power_capping_2022_text};

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
        "Inception3" | "IncV3" => "inception_v3",
        "Inception4" => "inception_v4",
        "Resnet50" | "ResNet-50" | "Res50" => "resnet50",
        "Res101" => "resnet101",
        "Resnet152" | "Res152" => "resnet152",
        "GoogleNet" | "IncV1" => "googlenet",
        "IncV2" => "inception_v2",
        "MobV1" => "mobilenet_v1",
        "MobV2" => "mobilenet_v2",
        "NASNET" => "nasnet_mobile",
        "PNASNET" => "pnasnet_mobile",
        "CaffeNet" => "caffenet",
        "2D-CNN" => "cnn2d",
        "ResNet" => "resnet_gait",
        "ResNetIm" => "resnet_im",
        other => return Err(damaged(file, format!("unknown network {other}"))),
    })
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
