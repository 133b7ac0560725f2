//! Reads the tables of the papers and of measurements.

use serde::Deserialize;
use serde::de::DeserializeOwned;

// The tables that were present when the program was built: `TABLES: &[(name, text)]`.
include!(concat!(env!("OUT_DIR"), "/published.rs"));

/// Why a table of published or measured values cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The table is not part of this build.
    #[error("the published table {0} is not part of this build (data/published)")]
    Absent(String),
    /// The table is damaged.
    #[error("the published table {file} cannot be read: {reason}")]
    Damaged {
        /// The name of the table's file.
        file: String,
        /// What is wrong in the file, and where.
        reason: String,
    },
}

/// The text of a table; `None` if it was not present when the program was built.
pub(crate) fn table_text(file: &str) -> Option<&'static str> {
    let found = TABLES.iter().find(|(name, _)| *name == file);
    found.map(|(_, text)| *text)
}

/// Reads all rows of a table.
pub(crate) fn read_rows<T: DeserializeOwned>(file: &'static str) -> Result<Vec<T>, PublishedError> {
    let text = table_text(file).ok_or_else(|| PublishedError::Absent(file.to_owned()))?;
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .map(|row| row.map_err(|error| damaged(file, error.to_string())))
        .collect()
}

/// The error of a damaged table.
pub(crate) fn damaged(file: &'static str, reason: String) -> PublishedError {
    PublishedError::Damaged {
        file: file.to_owned(),
        reason,
    }
}

/// The profile name of a network, by the name that a paper prints.
pub(crate) fn network_name(
    file: &'static str,
    printed: &str,
) -> Result<&'static str, PublishedError> {
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

/// A row of a file with numbers from a paper's text: a value and its name.
#[derive(Deserialize)]
pub(crate) struct Fact {
    pub fact: String,
    pub value: String,
}

/// Finds a number from a paper's text by its name.
pub(crate) fn find_fact(
    file: &'static str,
    facts: &[Fact],
    name: &str,
) -> Result<f64, PublishedError> {
    let found = facts.iter().find(|fact| fact.fact == name);
    let number = found.and_then(|fact| fact.value.parse().ok());
    number.ok_or_else(|| damaged(file, format!("no number `{name}`")))
}
