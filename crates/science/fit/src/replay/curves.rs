//! Recorded curves: the measurements at each value of some knobs.

use std::collections::BTreeMap;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::{EarlierResults, KnobKind, SearchSpace};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_study::{Point, Study};

use super::ReplayError;
use crate::csv_columns::CsvText;

/// A knob whose values are in a file of recorded measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedKnob {
    /// The name of the column with the knob's values.
    pub name: String,
    /// Whether the knob is a clock, a power cap or another level.
    pub kind: KnobKind,
}

impl RecordedKnob {
    /// The knob of a column with this name. A name with `clock`, `mhz` or `freq` is a clock, one with `power`, `cap`,
    /// `watt` or `limit` is a power cap, and any other is a level.
    pub fn named(name: &str) -> Self {
        let lower = name.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        Self {
            name: name.to_owned(),
            kind: if has(&["clock", "mhz", "freq"]) {
                KnobKind::CoreClock
            } else if has(&["power", "cap", "watt", "limit"]) {
                KnobKind::PowerCap
            } else {
                KnobKind::Level
            },
        }
    }
}

/// The recorded measurements of one job at different values of the knobs.
#[derive(Clone, Debug)]
pub struct RecordedCurve {
    /// The names and values of the columns that identify the curve.
    pub group: Vec<(String, String)>,
    /// The knobs whose values are the coordinates of the points.
    pub knobs: Vec<RecordedKnob>,
    /// The recorded points, and the reference among them.
    pub space: SearchSpace,
    /// The recorded measurements of each point.
    pub records: Vec<Vec<Outcome>>,
}

/// The name of the curve with these identifying values.
fn curve_name(group: &[(String, String)]) -> String {
    let values: Vec<&str> = group.iter().map(|(_, value)| value.as_str()).collect();
    match values.is_empty() {
        true => "of all rows".to_owned(),
        false => values.join(" "),
    }
}

impl RecordedCurve {
    /// The name of the curve in messages.
    pub fn name(&self) -> String {
        curve_name(&self.group)
    }

    /// The values of the knobs at a point.
    pub fn setting(&self, point: usize) -> Vec<(String, f64)> {
        let values = &self.space.points()[point];
        let knobs = self.knobs.iter().zip(values);
        knobs
            .map(|(knob, value)| (knob.name.clone(), *value))
            .collect()
    }

    /// Whether every point has exactly one record. If so, a second evaluation of a point gives the same result.
    pub fn is_single(&self) -> bool {
        self.records.iter().all(|records| records.len() == 1)
    }

    /// Converts the curve to earlier results, from which a search on another curve can learn.
    pub(super) fn to_earlier_results(&self) -> EarlierResults {
        EarlierResults {
            points: self.space.points().to_vec(),
            outcomes: self
                .records
                .iter()
                .filter_map(|records| Outcome::mean(records))
                .collect(),
            reference: self.space.reference(),
        }
    }
}

/// The meaning of the columns in a file of recorded measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordColumns {
    /// The columns of the knobs.
    pub knobs: Vec<RecordedKnob>,
    /// The name of the column with the time in seconds.
    pub time: String,
    /// The column with the energy or the average power.
    pub energy: EnergyColumn,
    /// The names of the columns that identify a curve; rows with equal values there belong to one curve.
    pub group: Vec<String>,
    /// The first knob's value at the reference; `None` if the reference has the highest value of every knob.
    pub reference: Option<f64>,
}

/// The column from which the energy is computed.
#[derive(Clone, Debug, PartialEq)]
pub enum EnergyColumn {
    /// The name of the column with the average power in watts.
    Power(String),
    /// The name of the column with the energy in joules.
    Energy(String),
}

/// Reads the curves of a CSV file, in the order of their first rows. `file` is the file's name in messages.
pub fn read_curves(
    file: &str,
    text: &str,
    columns: &RecordColumns,
) -> Result<Vec<RecordedCurve>, ReplayError> {
    let CsvText {
        columns: header,
        lines,
    } = CsvText::read(text).map_err(|reason| ReplayError::Format {
        file: file.to_owned(),
        reason,
    })?;
    let column = |name: &str| {
        let found = header.iter().position(|known| known == name);
        found.ok_or_else(|| ReplayError::Column {
            file: file.to_owned(),
            wanted: name.to_owned(),
            found: header.clone(),
        })
    };
    let all = |names: &[String]| -> Result<Vec<usize>, ReplayError> {
        names.iter().map(|name| column(name)).collect()
    };
    let knobs: Vec<String> = columns.knobs.iter().map(|knob| knob.name.clone()).collect();
    let (knobs, group) = (all(&knobs)?, all(&columns.group)?);
    let time = column(&columns.time)?;
    let (EnergyColumn::Power(name) | EnergyColumn::Energy(name)) = &columns.energy;
    let energy = column(name)?;
    let mut groups: Vec<(Vec<String>, RecordsByPoint)> = Vec::new();
    for line in &lines {
        let cell = |index: usize| line.cells.get(index).map_or("", String::as_str);
        let number = |index: usize| {
            positive_number(cell(index)).ok_or_else(|| ReplayError::Cell {
                file: file.to_owned(),
                line: line.number,
                column: header[index].clone(),
                cell: cell(index).to_owned(),
            })
        };
        let time = number(time)?;
        let energy = match columns.energy {
            EnergyColumn::Power(_) => number(energy)? * time,
            EnergyColumn::Energy(_) => number(energy)?,
        };
        let knobs: Result<Vec<f64>, ReplayError> =
            knobs.iter().map(|index| number(*index)).collect();
        let mut outcome = Outcome::new(Seconds::new(time), Joules::new(energy));
        // All rows of a curve do the same work.
        outcome.items = Some(1.0);
        let own: Vec<String> = group.iter().map(|index| cell(*index).to_owned()).collect();
        let known = groups.iter().position(|(known, _)| *known == own);
        let index = known.unwrap_or_else(|| {
            groups.push((own, BTreeMap::new()));
            groups.len() - 1
        });
        groups[index]
            .1
            .entry(Coordinates(knobs?))
            .or_default()
            .push(outcome);
    }
    if groups.is_empty() {
        return Err(ReplayError::Empty(file.to_owned()));
    }
    let curve = |(values, points): (Vec<String>, RecordsByPoint)| {
        let group = columns.group.iter().cloned().zip(values).collect();
        let (points, records) = points
            .into_iter()
            .map(|(point, runs)| (point.0, runs))
            .unzip();
        new_curve(
            group,
            columns.knobs.clone(),
            points,
            records,
            columns.reference,
        )
    };
    groups.into_iter().map(curve).collect()
}

/// The number in a cell, if it is above zero.
fn positive_number(cell: &str) -> Option<f64> {
    let value: f64 = cell.parse().ok()?;
    (value > 0.0 && value.is_finite()).then_some(value)
}

/// Converts a study to a curve whose knobs are all axes that the study varies.
pub fn curve_of_study(study: &Study) -> Result<RecordedCurve, ReplayError> {
    let error = |why: &str| ReplayError::Study {
        study: study.name(),
        why: why.to_owned(),
    };
    let varied = study.varied_axes();
    if varied.is_empty() {
        return Err(error("varies nothing"));
    }
    let knobs: Vec<RecordedKnob> = varied
        .iter()
        .map(|axis| RecordedKnob {
            name: axis.column().to_owned(),
            kind: axis.knob_kind(),
        })
        .collect();
    let coordinates = |point: &Point| -> Result<Vec<f64>, ReplayError> {
        let values = varied.iter().map(|axis| axis.number(&point.configuration));
        let values: Option<Vec<f64>> = values.collect();
        values.ok_or_else(|| {
            error("varies an axis whose value is not a number in every configuration")
        })
    };
    let mut points = Vec::new();
    let mut records = Vec::new();
    for point in &study.points {
        let candidate = point.candidate();
        if candidate.failed.is_none() && !candidate.runs.is_empty() {
            points.push(coordinates(point)?);
            records.push(candidate.runs);
        }
    }
    let reference = coordinates(&study.reference)?;
    let known = points.iter().position(|point| *point == reference);
    let reference = match (known, study.reference.candidate()) {
        (Some(index), _) => index,
        (None, candidate) if candidate.failed.is_none() && !candidate.runs.is_empty() => {
            points.push(reference);
            records.push(candidate.runs);
            points.len() - 1
        }
        _ => return Err(error("has no successful run of its reference")),
    };
    let group = vec![("study".to_owned(), study.name())];
    let kinds = knobs.iter().map(|knob| knob.kind).collect();
    let space =
        SearchSpace::new(kinds, points, reference).map_err(|reason| ReplayError::Space {
            curve: study.name(),
            reason,
        })?;
    Ok(RecordedCurve {
        group,
        knobs,
        space,
        records,
    })
}

/// Makes a curve from its points and their records; an error if they do not form a search space.
fn new_curve(
    group: Vec<(String, String)>,
    knobs: Vec<RecordedKnob>,
    points: Vec<Vec<f64>>,
    records: Vec<Vec<Outcome>>,
    reference: Option<f64>,
) -> Result<RecordedCurve, ReplayError> {
    let kinds = knobs.iter().map(|knob| knob.kind).collect();
    // The points are in ascending order.
    let highest = points.len().saturating_sub(1);
    let wanted = match reference {
        None => Some(highest),
        Some(value) => points
            .iter()
            .rposition(|point| point.first() == Some(&value)),
    };
    let found: Vec<String> = points.iter().map(|point| point[0].to_string()).collect();
    let curve = curve_name(&group);
    let Some(reference_index) = wanted else {
        return Err(ReplayError::Reference {
            curve,
            wanted: reference.unwrap_or_default().to_string(),
            found,
        });
    };
    let space = SearchSpace::new(kinds, points, reference_index)
        .map_err(|reason| ReplayError::Space { curve, reason })?;
    Ok(RecordedCurve {
        group,
        knobs,
        space,
        records,
    })
}

/// The recorded measurements by the coordinates of their point.
type RecordsByPoint = BTreeMap<Coordinates, Vec<Outcome>>;

/// The coordinates of a point, which sort in ascending order.
#[derive(Clone, PartialEq)]
struct Coordinates(Vec<f64>);

impl Eq for Coordinates {}

impl PartialOrd for Coordinates {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Coordinates {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let mut pairs = self.0.iter().zip(&other.0).map(|(a, b)| a.total_cmp(b));
        pairs
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }
}
