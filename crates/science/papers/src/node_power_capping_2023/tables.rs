//! The published values of node_power_capping_2023: table 1, figure 7 and the text.

use serde::Deserialize;
use sweetspot_quantity::{Ratio, Seconds, Watts};

use crate::tables::{Fact, PublishedError, find_fact, read_rows};

/// The published values about the server with 8 GPUs.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// For each number of GPUs used, the largest share of energy that any cap saves.
    pub savings: Vec<(u64, Ratio)>,
    /// The speed-ups over one GPU: of 4 GPUs, of 8 GPUs at 260 W, and of 8 GPUs at 170 W.
    pub speedups: [f64; 3],
    /// The times that figure 7 shows: the number of GPUs, the power cap, and the time of the training.
    pub times: Vec<(u64, Watts, Seconds)>,
    /// The best caps with 8 GPUs: the name of the metric, its gain, and the power cap.
    pub best: Vec<(String, Ratio, Watts)>,
}

impl NodeFacts {
    /// The time in seconds that figure 7 shows for this number of GPUs at this power cap in watts.
    pub fn time(&self, gpus: u64, cap: f64) -> Option<f64> {
        let mut times = self.times.iter();
        let found = times.find(|(count, at, _)| *count == gpus && at.get() == cap);
        found.map(|(_, _, time)| time.get())
    }
}

/// A row of the file with table 1, as it is written there.
#[derive(Deserialize)]
struct PrintedBest {
    metric: String,
    gain_pct: f64,
    power_cap_w: f64,
}

/// A row of the file with figure 7, as it is written there.
#[derive(Deserialize)]
struct PrintedTime {
    gpus: u64,
    power_cap_w: f64,
    time_s: f64,
}

/// Reads the numbers of the text, figure 7 and table 1.
pub fn read_node_facts() -> Result<NodeFacts, PublishedError> {
    const FACTS: &str = "node_power_capping_2023_facts.csv";
    let facts: Vec<Fact> = read_rows(FACTS)?;
    let of = |name: &str| find_fact(FACTS, &facts, name);
    let mut savings = Vec::new();
    for gpus in [1, 2, 4, 8] {
        let percent = of(&format!("energy_saving_{gpus}_gpu_pct"))?;
        savings.push((gpus, Ratio::new(percent / 100.0)));
    }
    let best: Vec<PrintedBest> = read_rows("node_power_capping_2023_table_1.csv")?;
    Ok(NodeFacts {
        savings,
        speedups: [
            of("speedup_4_gpus")?,
            of("speedup_8_gpus_260w")?,
            of("speedup_8_gpus_170w")?,
        ],
        times: read_rows::<PrintedTime>("node_power_capping_2023_figure_7.csv")?
            .into_iter()
            .map(|row| {
                let cap = Watts::new(row.power_cap_w);
                (row.gpus, cap, Seconds::new(row.time_s))
            })
            .collect(),
        best: best
            .into_iter()
            .map(|row| {
                let gain = Ratio::new(row.gain_pct / 100.0);
                (row.metric, gain, Watts::new(row.power_cap_w))
            })
            .collect(),
    })
}
