//! The papers' tables, as printed.

use serde::Deserialize;
use sweetspot_quantity::{Joules, Seconds, Watts};

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
struct Printed {
    gpu: String,
    network: String,
    selection: String,
    power_cap_w: f64,
    energy_kj: f64,
    time_s: f64,
}

const CAPS: &str = "power_capping_2022_tables_2_3.csv";

/// All 60 rows of tables 2 and 3 of power_capping_2022.
pub fn power_capping_2022() -> Result<Vec<CapRow>, PublishedError> {
    let table = TABLES.iter().find(|(name, _)| *name == CAPS);
    let (_, text) = table.ok_or(PublishedError::Absent(CAPS))?;
    let damaged = |reason: String| PublishedError::Damaged { file: CAPS, reason };
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .map(|row| {
            let row: Printed = row.map_err(|error| damaged(error.to_string()))?;
            let network = match row.network.as_str() {
                "Alexnet" => "alexnet",
                "VGG-19" => "vgg19",
                "Inception3" => "inception_v3",
                "Inception4" => "inception_v4",
                "Resnet50" => "resnet50",
                "Resnet152" => "resnet152",
                other => return Err(damaged(format!("unknown network {other}"))),
            };
            Ok(CapRow {
                gpu: row.gpu,
                network,
                selection: row.selection,
                power_cap: Watts::new(row.power_cap_w),
                time: Seconds::new(row.time_s),
                energy: Joules::new(row.energy_kj * 1e3),
            })
        })
        .collect()
}
