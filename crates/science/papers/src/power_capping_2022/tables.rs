//! Tables 2 and 3 of power_capping_2022, and the ranges in its text.

use serde::Deserialize;
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::tables::{PublishedError, network_name, read_rows};

/// A row of tables 2 and 3 of power_capping_2022: a run at one power cap.
#[derive(Clone, Debug, PartialEq)]
pub struct CapRow {
    /// The name of the GPU's profile.
    pub gpu: String,
    /// The name of the network in the profiles.
    pub network: &'static str,
    /// The metric for which the row's cap is the best, such as `min E`; or `default`.
    pub selection: String,
    /// The power cap of the GPU in the run.
    pub power_cap: Watts,
    /// The time of the whole run.
    pub time: Seconds,
    /// The energy of the whole run.
    pub energy: Joules,
    /// The printed average power.
    pub average_power: Watts,
    /// The printed change of energy against the default cap, in per cent; `None` if it is not printed.
    pub energy_vs_default_pct: Option<f64>,
    /// The printed change of time against the default cap, in per cent; `None` if it is not printed.
    pub time_vs_default_pct: Option<f64>,
}

/// A row of the file with tables 2 and 3, as it is written there.
#[derive(Deserialize)]
struct PrintedCap {
    gpu: String,
    network: String,
    selection: String,
    power_cap_w: f64,
    average_power_w: f64,
    energy_kj: f64,
    energy_vs_default_pct: Option<f64>,
    time_s: f64,
    time_vs_default_pct: Option<f64>,
}

/// Reads all 60 rows of tables 2 and 3.
pub fn read_cap_rows() -> Result<Vec<CapRow>, PublishedError> {
    const FILE: &str = "power_capping_2022_tables_2_3.csv";
    let of = |row: PrintedCap| {
        Ok(CapRow {
            gpu: row.gpu,
            network: network_name(FILE, &row.network)?,
            selection: row.selection,
            power_cap: Watts::new(row.power_cap_w),
            time: Seconds::new(row.time_s),
            energy: Joules::new(row.energy_kj * 1e3),
            average_power: Watts::new(row.average_power_w),
            energy_vs_default_pct: row.energy_vs_default_pct,
            time_vs_default_pct: row.time_vs_default_pct,
        })
    };
    read_rows(FILE)?.into_iter().map(of).collect()
}

/// A range that the text of power_capping_2022 gives for all networks together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TextRange {
    /// The name of the GPU's profile.
    pub gpu: String,
    /// The section of the paper that states the range.
    pub section: String,
    /// The objective to which the range of caps belongs.
    pub objective: String,
    /// The quantity of the range: `better_w` (caps better than the default), `best_w` (best caps), `energy_saved_pct`
    /// and `time_lost_pct` (at the best caps).
    pub what: String,
    /// The lower end of the range, in watts or per cent.
    pub low: f64,
    /// The upper end of the range, in watts or per cent.
    pub high: f64,
}

/// Reads the ranges in sections 5.3 and 5.4.
pub fn read_text_ranges() -> Result<Vec<TextRange>, PublishedError> {
    read_rows("power_capping_2022_text.csv")
}
