//! Reads measured rows from CSV text: measurements of several batch sizes, or the CSV export of a sweep.

use std::collections::BTreeMap;

use sweetspot_device::Settings;
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::Mode;

use super::RowsError;
use crate::csv_columns::{CsvLine, CsvText};

/// The measured runs of one configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRow {
    /// The batch size of the runs.
    pub batch: u64,
    /// The settings of the GPU during the runs; absent ones are at their default.
    pub settings: Settings,
    /// The number of iterations in the run.
    pub iterations: u64,
    /// The mean time of one iteration of the workload.
    pub iteration: Seconds,
    /// The mean power during the run.
    pub power: Watts,
}

/// Which rows of a file to use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowChoice {
    /// The network whose rows are used; needed if the column `network` has several values.
    pub network: Option<String>,
    /// Whether rows of training or inference are used; needed if the column `kind` has several values.
    pub mode: Option<Mode>,
}

/// The assumed time of a run if the file does not contain it. It is long enough to warm up the GPU.
const ASSUMED_RUN_TIME: Seconds = Seconds::new(10.0);

/// Reads the chosen rows of a file. Also returns their network, and whether they are training or inference, if the file
/// has these columns. `file` is the file's name in messages.
pub fn measured_rows(
    file: &str,
    text: &str,
    choice: &RowChoice,
) -> Result<(Vec<MeasuredRow>, RowChoice), RowsError> {
    let table = Table::read(file, text)?;
    let network = table.choose_value("network", "networks", choice.network.as_deref())?;
    let kind = match choice.mode {
        Some(Mode::Train) => Some("train"),
        Some(Mode::Infer) => Some("infer"),
        None => None,
    };
    let kind = table.choose_value("kind", "kinds", kind)?;
    let mode = match (kind.as_deref(), choice.mode) {
        (Some("train"), _) => Some(Mode::Train),
        (Some("infer"), _) => Some(Mode::Infer),
        (_, asked) => asked,
    };
    let mut rows = Vec::new();
    for line in &table.lines {
        let matches = |column, wanted: &Option<String>| {
            let found = line.cells.get(column);
            wanted.is_none() || found.is_none() || found == wanted.as_ref()
        };
        let succeeded = line.cells.get("status").is_none_or(|status| status == "ok");
        if matches("network", &network) && matches("kind", &kind) && succeeded {
            rows.push(table.row(line)?);
        }
    }
    if rows.is_empty() {
        return Err(RowsError::NoRows {
            file: file.to_owned(),
            what: [network, kind]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(", "),
            found: vec!["no successful rows".to_owned()],
        });
    }
    let network = network.or_else(|| choice.network.clone());
    Ok((rows, RowChoice { network, mode }))
}

/// The non-empty cells of a file, by line and column.
struct Table<'a> {
    file: &'a str,
    columns: Vec<String>,
    lines: Vec<Line>,
}

/// A line of the file: its number and its cells.
struct Line {
    number: u64,
    cells: BTreeMap<String, String>,
}

impl<'a> Table<'a> {
    /// Reads the file and checks that it has the required columns.
    fn read(file: &'a str, text: &str) -> Result<Self, RowsError> {
        let format = |reason: String| RowsError::Format {
            file: file.to_owned(),
            reason,
        };
        let read = CsvText::read(text).map_err(format)?;
        let columns = read.columns;
        let filled = |line: CsvLine| Line {
            number: line.number,
            cells: columns
                .iter()
                .cloned()
                .zip(line.cells)
                .filter(|(_, cell)| !cell.is_empty())
                .collect(),
        };
        let lines = read.lines.into_iter().map(filled).collect();
        let table = Self {
            file,
            columns,
            lines,
        };
        let has = |name: &str| table.columns.iter().any(|column| column == name);
        let missing = |wanted| RowsError::Column {
            file: file.to_owned(),
            wanted,
            found: table.columns.clone(),
        };
        if !has("batch") {
            return Err(missing("`batch`"));
        }
        if !(has("samples_per_s") || has("items_per_s") || (has("time_s") && has("items"))) {
            return Err(missing(
                "`items_per_s` (or `samples_per_s`, or `time_s` with `items`)",
            ));
        }
        if !(has("mean_w") || has("average_power_w") || (has("energy_j") && has("time_s"))) {
            return Err(missing(
                "`mean_w` (or `average_power_w`, or `energy_j` with `time_s`)",
            ));
        }
        if table.lines.is_empty() {
            return Err(format("it has no rows".to_owned()));
        }
        Ok(table)
    }

    /// The value of a column by which rows are selected; `None` if the file does not have that column.
    fn choose_value(
        &self,
        column: &str,
        what: &'static str,
        asked: Option<&str>,
    ) -> Result<Option<String>, RowsError> {
        let mut found: Vec<String> = self
            .lines
            .iter()
            .filter_map(|line| line.cells.get(column).cloned())
            .collect();
        found.sort();
        found.dedup();
        match (asked, found.len()) {
            (_, 0) => Ok(None),
            (Some(asked), _) if found.iter().any(|name| name == asked) => {
                Ok(Some(asked.to_owned()))
            }
            // A file with one network may use another name than its profile.
            (Some(_), 1) if column == "network" => Ok(found.pop()),
            (Some(asked), _) => Err(RowsError::NoRows {
                file: self.file.to_owned(),
                what: format!("{column} {asked}"),
                found,
            }),
            (None, 1) => Ok(found.pop()),
            (None, _) => Err(RowsError::Several {
                file: self.file.to_owned(),
                what,
                found,
            }),
        }
    }

    /// Reads the measurements of one line.
    fn row(&self, line: &Line) -> Result<MeasuredRow, RowsError> {
        let number = |columns: &[&str]| self.number(line, columns);
        let whole = |column| self.whole(line, column);
        let need = |value: Option<f64>, column: &str| {
            value.ok_or_else(|| self.invalid_value(line, column, "a number above 0"))
        };
        if whole("gpus")?.is_some_and(|gpus| gpus != 1) {
            return Err(self.invalid_value(
                line,
                "gpus",
                "1, because a profile is fitted to runs on one GPU",
            ));
        }
        let batch = whole("batch")?;
        let batch = batch
            .ok_or_else(|| self.invalid_value(line, "batch", "a whole number of at least 1"))?;
        let (time, items) = (number(&["time_s"])?, number(&["items"])?);
        let throughput = match number(&["samples_per_s", "items_per_s"])? {
            Some(throughput) => throughput,
            None => need(items, "items")? / need(time, "time_s")?,
        };
        let power = match number(&["mean_w", "average_power_w"])? {
            Some(power) => power,
            None => need(number(&["energy_j"])?, "energy_j")? / need(time, "time_s")?,
        };
        let iteration = batch as f64 / throughput;
        let iterations = match (whole("iters")?, items) {
            (Some(iterations), _) => iterations as f64,
            (None, Some(items)) => (items / batch as f64).round(),
            (None, None) => (ASSUMED_RUN_TIME.get() / iteration).round(),
        };
        let settings = Settings {
            power_cap: number(&["power_cap_w"])?.map(Watts::new),
            core_clock: number(&["core_clock_mhz"])?.map(Megahertz::new),
            memory_clock: number(&["memory_clock_mhz"])?.map(Megahertz::new),
        };
        Ok(MeasuredRow {
            batch,
            settings,
            iterations: iterations.max(1.0) as u64,
            iteration: Seconds::new(iteration),
            power: Watts::new(power),
        })
    }

    /// The number in the first of these columns that has a value.
    fn number(&self, line: &Line, columns: &[&str]) -> Result<Option<f64>, RowsError> {
        let filled = columns
            .iter()
            .find_map(|column| line.cells.get(*column).map(|cell| (column, cell)));
        let Some((column, cell)) = filled else {
            return Ok(None);
        };
        let possible = |value: &f64| (1e-9..=1e12).contains(value);
        match cell.parse().ok().filter(possible) {
            Some(value) => Ok(Some(value)),
            None => Err(self.invalid_value(line, column, "a number above 0")),
        }
    }

    /// The whole number in a column; `None` if the cell is empty.
    fn whole(&self, line: &Line, column: &str) -> Result<Option<u64>, RowsError> {
        let Some(cell) = line.cells.get(column) else {
            return Ok(None);
        };
        let possible = |value: &u64| (1..=MAX_ITEMS).contains(value);
        match cell.parse().ok().filter(possible) {
            Some(value) => Ok(Some(value)),
            None => Err(self.invalid_value(line, column, "a whole number of at least 1")),
        }
    }

    /// The error that a cell of the line has an invalid value.
    fn invalid_value(&self, line: &Line, column: &str, allowed: &'static str) -> RowsError {
        RowsError::Value {
            file: self.file.to_owned(),
            line: line.number,
            column: column.to_owned(),
            value: line.cells.get(column).cloned().unwrap_or_default(),
            allowed,
        }
    }
}

/// The largest accepted number of items; a billion items take years on any GPU.
pub const MAX_ITEMS: u64 = 1_000_000_000;
