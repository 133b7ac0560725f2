//! The published values of dvfs_2019: its boards, tables III and IV, and numbers in the text.

use serde::Deserialize;
use sweetspot_quantity::{Megahertz, Ratio};
use sweetspot_sim::Mode;

use crate::tables::{PublishedError, damaged, network_name, read_rows};

/// A cell of tables III and IV of dvfs_2019: the energy saved by the best core clock.
#[derive(Clone, Debug, PartialEq)]
pub struct SavingCell {
    /// The name of the GPU's profile.
    pub gpu: &'static str,
    /// The network (table III) or the convolution algorithm (table IV) to which the saving applies.
    pub of: String,
    /// Whether the energy is that of training or of inference.
    pub mode: Mode,
    /// The share of the energy per item that the best core clock saves.
    pub saving: Ratio,
}

/// A row of the file with tables III and IV, as it is written there.
#[derive(Deserialize)]
struct PrintedSaving {
    #[serde(alias = "network")]
    algorithm: String,
    phase: Option<String>,
    gpu: String,
    energy_saving_pct: f64,
}

/// Reads the cells of table III and those of table IV.
pub fn read_savings() -> Result<(Vec<SavingCell>, Vec<SavingCell>), PublishedError> {
    let cells = |file: &'static str,
                 name: fn(&'static str, &str) -> Result<String, PublishedError>| {
        let of = |row: PrintedSaving| {
            Ok(SavingCell {
                gpu: gpu(file, &row.gpu)?,
                of: name(file, &row.algorithm)?,
                mode: match row.phase.as_deref() {
                    Some("inference") => Mode::Infer,
                    _ => Mode::Train,
                },
                saving: Ratio::new(row.energy_saving_pct / 100.0),
            })
        };
        read_rows(file)?
            .into_iter()
            .map(of)
            .collect::<Result<Vec<_>, _>>()
    };
    Ok((
        cells("dvfs_2019_table_3_savings.csv", |file, name| {
            network_name(file, name).map(str::to_owned)
        })?,
        cells("dvfs_2019_table_4_savings_by_algorithm.csv", |_, name| {
            Ok(name.to_lowercase())
        })?,
    ))
}

/// The name of a GPU's profile, by the name in the tables.
fn gpu(file: &'static str, printed: &str) -> Result<&'static str, PublishedError> {
    Ok(match printed {
        "tesla_p100" => "tesla_p100",
        "tesla_v100" => "tesla_v100_pcie_16gb",
        "gtx_2080ti" => "gtx_2080ti",
        other => return Err(damaged(file, format!("unknown GPU {other}"))),
    })
}

/// A column of table I of dvfs_2019: a board and the clocks that were set.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedBoard {
    /// The name of the GPU's profile.
    pub gpu: &'static str,
    /// The core clocks at which the paper measured the board.
    pub core: Vec<Megahertz>,
    /// The board's default core clock.
    pub default_core: Megahertz,
    /// The memory clocks at which the paper measured the board.
    pub memory: Vec<Megahertz>,
    /// The board's default memory clock.
    pub default_memory: Megahertz,
}

/// A row of the file with table I, as it is written there.
#[derive(Deserialize)]
struct PrintedClocks {
    gpu: String,
    core_mhz: String,
    default_core_mhz: f64,
    memory_mhz: String,
    default_memory_mhz: f64,
}

/// Reads the boards of table I.
pub fn read_boards() -> Result<Vec<PrintedBoard>, PublishedError> {
    const FILE: &str = "dvfs_2019_table_1_gpus.csv";
    let clocks = |text: &str| {
        let clock = |text: &str| {
            let number = text.parse().map(Megahertz::new);
            number.map_err(|_| damaged(FILE, format!("`{text}` is not a clock")))
        };
        text.split_whitespace()
            .map(clock)
            .collect::<Result<Vec<_>, _>>()
    };
    let of = |row: PrintedClocks| {
        Ok(PrintedBoard {
            gpu: gpu(FILE, &row.gpu)?,
            core: clocks(&row.core_mhz)?,
            default_core: Megahertz::new(row.default_core_mhz),
            memory: clocks(&row.memory_mhz)?,
            default_memory: Megahertz::new(row.default_memory_mhz),
        })
    };
    read_rows(FILE)?.into_iter().map(of).collect()
}

/// A number that the text of dvfs_2019 states.
#[derive(Clone, Debug, PartialEq)]
pub struct TextFact {
    /// What the number measures, with its unit.
    pub what: String,
    /// What the number applies to: `training`, `inference` or an algorithm.
    pub of: String,
    /// The name of the GPU's profile; `None` if the number applies to all GPUs together.
    pub gpu: Option<&'static str>,
    /// The number as printed.
    pub value: f64,
}

/// A row of the file with the numbers of the text, as it is written there.
#[derive(Deserialize)]
struct PrintedFact {
    what: String,
    of: String,
    gpu: String,
    value: f64,
}

/// Reads the numbers that the text states.
pub fn read_text_facts() -> Result<Vec<TextFact>, PublishedError> {
    const FILE: &str = "dvfs_2019_text.csv";
    let of = |row: PrintedFact| {
        Ok(TextFact {
            gpu: match row.gpu.as_str() {
                "all" => None,
                name => Some(gpu(FILE, name)?),
            },
            what: row.what,
            of: row.of,
            value: row.value,
        })
    };
    read_rows(FILE)?.into_iter().map(of).collect()
}
