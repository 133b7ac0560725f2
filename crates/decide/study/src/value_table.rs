//! Values of configurations that come from a file, such as accuracies of earlier trainings.

use std::collections::BTreeMap;

use crate::{Axis, Point, RunEnding, Study};

/// A table with values of configurations: columns that name axes select the configurations, the others are values.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueTable {
    axes: Vec<Axis>,
    rows: Vec<ValueRow>,
}

/// A row of a table of values.
#[derive(Clone, Debug, PartialEq)]
struct ValueRow {
    line: u64,
    /// The value of each axis.
    settings: Vec<String>,
    values: BTreeMap<String, f64>,
}

/// Why a table of values cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueTableError {
    /// The text is not a table.
    #[error("{0}")]
    Csv(String),
    /// No column names an axis of the study.
    #[error(
        "no column names an axis of the study: the first line must contain {0} and the names of values, such as batch,accuracy"
    )]
    NoAxis(String),
    /// All columns name axes.
    #[error("no column has values: add one, such as accuracy")]
    NoValues,
    /// A cell is not a number.
    #[error("line {line}: `{cell}` in the column {column} is not a number")]
    NotANumber {
        /// The number of the line.
        line: u64,
        /// The name of the column.
        column: String,
        /// The text of the cell.
        cell: String,
    },
    /// Two rows give different values for one configuration.
    #[error("line {line}: {name} has another value for the same setting in an earlier line")]
    Contradiction {
        /// The number of the line.
        line: u64,
        /// The name of the value.
        name: String,
    },
    /// No row belongs to a configuration of the study.
    #[error("no line belongs to a configuration of the study: line {line} is for {settings}")]
    NoMatch {
        /// The number of the first line with values.
        line: u64,
        /// The settings of that line.
        settings: String,
    },
}

impl ValueTable {
    /// Reads a table in CSV. A column is an axis if it has the name of one of `axes`; an empty cell is an unknown value.
    pub fn parse(text: &str, axes: &[Axis]) -> Result<Self, ValueTableError> {
        let bad = |error: csv::Error| ValueTableError::Csv(error.to_string());
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let header = reader.headers().map_err(bad)?.clone();
        let axis_of = |name: &str| {
            let is_named = |axis: &&Axis| axis.name() == name || axis.column() == name;
            axes.iter().find(is_named).cloned()
        };
        let columns: Vec<Option<Axis>> = header.iter().map(axis_of).collect();
        let found: Vec<Axis> = columns.iter().flatten().cloned().collect();
        if found.is_empty() {
            let names: Vec<&str> = axes.iter().map(Axis::name).collect();
            return Err(ValueTableError::NoAxis(names.join(" or ")));
        }
        if found.len() == columns.len() {
            return Err(ValueTableError::NoValues);
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(bad)?;
            let line = record.position().map_or(0, csv::Position::line);
            let mut row = ValueRow {
                line,
                settings: Vec::new(),
                values: BTreeMap::new(),
            };
            for ((cell, column), name) in record.iter().zip(&columns).zip(&header) {
                match column {
                    Some(_) => row.settings.push(cell.to_owned()),
                    None if cell.is_empty() => {}
                    None => {
                        let number =
                            parse_number(cell).ok_or_else(|| ValueTableError::NotANumber {
                                line,
                                column: name.to_owned(),
                                cell: cell.to_owned(),
                            })?;
                        row.values.insert(name.to_owned(), number);
                    }
                }
            }
            rows.push(row);
        }
        Ok(Self { axes: found, rows })
    }

    /// The values of a point.
    fn values_of(&self, point: &Point) -> Result<BTreeMap<String, f64>, ValueTableError> {
        let mut all: BTreeMap<String, f64> = BTreeMap::new();
        for row in self.rows.iter().filter(|row| self.selects(row, point)) {
            for (name, value) in &row.values {
                if all
                    .insert(name.clone(), *value)
                    .is_some_and(|before| before != *value)
                {
                    return Err(ValueTableError::Contradiction {
                        line: row.line,
                        name: name.clone(),
                    });
                }
            }
        }
        Ok(all)
    }

    /// Whether a row belongs to a point.
    fn selects(&self, row: &ValueRow, point: &Point) -> bool {
        self.axes.iter().zip(&row.settings).all(|(axis, wanted)| {
            let number = axis.number(&point.configuration);
            match (number, parse_number(wanted)) {
                (Some(number), Some(wanted)) => number == wanted,
                _ => axis.text(&point.configuration).as_deref() == Some(wanted.as_str()),
            }
        })
    }

    /// The settings of the first row, as text.
    fn first_settings(&self) -> (u64, String) {
        let first = self.rows.first();
        let settings = first.map(|row| {
            let pairs = self.axes.iter().zip(&row.settings);
            let pairs = pairs.map(|(axis, value)| format!("{axis} {value}"));
            pairs.collect::<Vec<_>>().join(", ")
        });
        (
            first.map_or(1, |row| row.line),
            settings.unwrap_or_else(|| "nothing: the table has no rows".to_owned()),
        )
    }
}

/// Reads a number or a percentage.
fn parse_number(text: &str) -> Option<f64> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse().ok()?,
    };
    number.is_finite().then_some(number)
}

impl Study {
    /// Adds the values of a table to all runs of the configurations that they belong to. They replace values of the same
    /// name that a run reported.
    pub fn add_values(&mut self, table: &ValueTable) -> Result<(), ValueTableError> {
        let mut is_used = false;
        for point in self.points.iter_mut().chain([&mut self.reference]) {
            let values = table.values_of(point)?;
            is_used |= !values.is_empty();
            for run in &mut point.runs {
                if let RunEnding::Done(result) = &mut run.end {
                    result.values.extend(values.clone());
                }
            }
        }
        match is_used {
            true => Ok(()),
            false => {
                let (line, settings) = table.first_settings();
                Err(ValueTableError::NoMatch { line, settings })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, EnergyOf};

    fn axes() -> [Axis; 2] {
        [Axis::Gpus, Axis::Parameter("batch".to_owned())]
    }

    #[test]
    fn rows_select_configurations_by_the_axes_that_they_name() {
        let table =
            ValueTable::parse("batch,accuracy\n64,76.0%\n128,\n256,0.554\n", &axes()).unwrap();
        let of = |gpus, batch| {
            let point = Point::new(Configuration::on(gpus).with_batch(batch), EnergyOf::JobGpus);
            table.values_of(&point).unwrap().get("accuracy").copied()
        };
        assert_eq!(of(1, 64), Some(0.76));
        assert_eq!(of(4, 256), Some(0.554));
        assert_eq!(of(2, 128), None);
        assert_eq!(of(2, 32), None);
    }

    #[test]
    fn bad_tables_are_refused_with_the_line() {
        let error = |text| ValueTable::parse(text, &axes()).unwrap_err().to_string();
        assert!(error("model,accuracy\na,1\n").contains("gpus or batch"));
        assert!(error("gpus,batch\n1,64\n").contains("no column has values"));
        assert!(error("batch,accuracy\n64,1\n128,good\n").starts_with("line 3: `good`"));
        assert!(
            error("batch,accuracy\n64\n").contains("2 fields"),
            "{}",
            error("batch,accuracy\n64\n")
        );
        let twice = ValueTable::parse("batch,accuracy\n64,1\n64,2\n", &axes()).unwrap();
        let point = Point::new(Configuration::on(1).with_batch(64), EnergyOf::JobGpus);
        assert!(twice.values_of(&point).is_err());
    }
}
