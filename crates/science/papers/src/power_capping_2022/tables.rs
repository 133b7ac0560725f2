//! Of power_capping_2022: tables 2 and 3, and the ranges in its text.

use serde::Deserialize;
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::tables::{PublishedError, network, rows};

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
    /// As printed beside them.
    pub average_power: Watts,
    /// The printed per cent against the default.
    pub energy_vs_default_pct: Option<f64>,
    /// The printed per cent against the default.
    pub time_vs_default_pct: Option<f64>,
}

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
            average_power: Watts::new(row.average_power_w),
            energy_vs_default_pct: row.energy_vs_default_pct,
            time_vs_default_pct: row.time_vs_default_pct,
        })
    };
    rows(FILE)?.into_iter().map(of).collect()
}

/// A range that the text of power_capping_2022 gives for all networks together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TextRange {
    /// The GPU's profile.
    pub gpu: String,
    /// Where it stands.
    pub section: String,
    /// Of which metric.
    pub objective: String,
    /// `better_w` (caps better than the default), `best_w` (best caps), `energy_saved_pct` and
    /// `time_lost_pct` (at the best caps).
    pub what: String,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The ranges in sections 5.3 and 5.4 of power_capping_2022.
pub fn power_capping_2022_text() -> Result<Vec<TextRange>, PublishedError> {
    rows("power_capping_2022_text.csv")
}
