//! Recorded curves: what was measured at each value of some knobs.

use std::collections::BTreeMap;

use sweetspot_decide::Outcome;
use sweetspot_decide::search::{EarlierResults, KnobKind, SearchSpace};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_study::{Point, Study};

use super::ReplayError;
use crate::csv_columns::CsvText;

/// A knob of a record.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedKnob {
    /// As its column is called.
    pub name: String,
    /// What it is.
    pub kind: KnobKind,
}

impl RecordedKnob {
    /// By its name: what has clock or MHz in it is a clock, what has power, cap or watt in it a cap, and
    /// anything else a level.
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

/// What was recorded of one job.
#[derive(Clone, Debug)]
pub struct RecordedCurve {
    /// What tells it from the others.
    pub group: Vec<(String, String)>,
    /// Its coordinates.
    pub knobs: Vec<RecordedKnob>,
    /// Its places, and the reference among them.
    pub space: SearchSpace,
    /// At each place, every record.
    pub records: Vec<Vec<Outcome>>,
}

/// What tells a curve from the others, in words.
fn name(group: &[(String, String)]) -> String {
    let values: Vec<&str> = group.iter().map(|(_, value)| value.as_str()).collect();
    match values.is_empty() {
        true => "of all rows".to_owned(),
        false => values.join(" "),
    }
}

impl RecordedCurve {
    /// In words.
    pub fn name(&self) -> String {
        name(&self.group)
    }

    /// The values of the knobs at a place.
    pub fn setting(&self, place: usize) -> Vec<(String, f64)> {
        let values = &self.space.points()[place];
        let knobs = self.knobs.iter().zip(values);
        knobs
            .map(|(knob, value)| (knob.name.clone(), *value))
            .collect()
    }

    /// Whether every place was recorded once: then a second look gives the same.
    pub fn is_single(&self) -> bool {
        self.records.iter().all(|records| records.len() == 1)
    }

    /// What it teaches about others.
    pub(super) fn lesson(&self) -> EarlierResults {
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

/// The columns of a file of records.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordColumns {
    /// What was varied.
    pub knobs: Vec<RecordedKnob>,
    /// Time, in seconds.
    pub time: String,
    /// Average power in watts, or energy in joules.
    pub energy: EnergyColumn,
    /// What tells one curve from another.
    pub group: Vec<String>,
    /// Where the reference is, in the first knob; the highest value of every knob where nothing is said.
    pub reference: Option<f64>,
}

/// Where a file has its energies.
#[derive(Clone, Debug, PartialEq)]
pub enum EnergyColumn {
    /// Average power, in watts.
    Power(String),
    /// Energy, in joules.
    Energy(String),
}

/// The curves of a file, in the order of their first rows. `file` is its name in messages.
pub fn recorded_curves(
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
            there: header.clone(),
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
    let mut groups: Vec<(Vec<String>, Recorded)> = Vec::new();
    for line in &lines {
        let cell = |index: usize| line.cells.get(index).map_or("", String::as_str);
        let number = |index: usize| {
            let value: Option<f64> = cell(index).parse().ok();
            let above_zero = |value: &f64| *value > 0.0 && value.is_finite();
            value.filter(above_zero).ok_or_else(|| ReplayError::Cell {
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
        // Rows of one curve are of the same work.
        outcome.items = Some(1.0);
        let own: Vec<String> = group.iter().map(|index| cell(*index).to_owned()).collect();
        let known = groups.iter().position(|(known, _)| *known == own);
        let place = known.unwrap_or_else(|| {
            groups.push((own, BTreeMap::new()));
            groups.len() - 1
        });
        groups[place]
            .1
            .entry(Place(knobs?))
            .or_default()
            .push(outcome);
    }
    if groups.is_empty() {
        return Err(ReplayError::Empty(file.to_owned()));
    }
    let curve = |(values, places): (Vec<String>, Recorded)| {
        let group = columns.group.iter().cloned().zip(values).collect();
        let (places, records) = places
            .into_iter()
            .map(|(place, runs)| (place.0, runs))
            .unzip();
        new_curve(
            group,
            columns.knobs.clone(),
            places,
            records,
            columns.reference,
        )
    };
    groups.into_iter().map(curve).collect()
}

/// The curve of a study over all that it varies.
pub fn studied_curve(study: &Study) -> Result<RecordedCurve, ReplayError> {
    let fault = |why: &str| ReplayError::Study {
        study: study.name(),
        why: why.to_owned(),
    };
    let varied = study.varied_axes();
    if varied.is_empty() {
        return Err(fault("varies nothing"));
    }
    let knobs: Vec<RecordedKnob> = varied
        .iter()
        .map(|axis| RecordedKnob {
            name: axis.column().to_owned(),
            kind: axis.knob_kind(),
        })
        .collect();
    let place = |point: &Point| -> Result<Vec<f64>, ReplayError> {
        let values = varied.iter().map(|axis| axis.number(&point.configuration));
        let values: Option<Vec<f64>> = values.collect();
        values.ok_or_else(|| fault("varies something that has no number for every configuration"))
    };
    let mut places = Vec::new();
    let mut records = Vec::new();
    for point in &study.points {
        let candidate = point.candidate();
        if candidate.failed.is_none() && !candidate.runs.is_empty() {
            places.push(place(point)?);
            records.push(candidate.runs);
        }
    }
    let reference = place(&study.reference)?;
    let known = places.iter().position(|place| *place == reference);
    let reference = match (known, study.reference.candidate()) {
        (Some(index), _) => index,
        (None, candidate) if candidate.failed.is_none() && !candidate.runs.is_empty() => {
            places.push(reference);
            records.push(candidate.runs);
            places.len() - 1
        }
        _ => return Err(fault("has no reference that ran well")),
    };
    let group = vec![("study".to_owned(), study.name())];
    let kinds = knobs.iter().map(|knob| knob.kind).collect();
    let space =
        SearchSpace::new(kinds, places, reference).map_err(|reason| ReplayError::Space {
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

fn new_curve(
    group: Vec<(String, String)>,
    knobs: Vec<RecordedKnob>,
    places: Vec<Vec<f64>>,
    records: Vec<Vec<Outcome>>,
    reference: Option<f64>,
) -> Result<RecordedCurve, ReplayError> {
    let kinds = knobs.iter().map(|knob| knob.kind).collect();
    // Places are in ascending order.
    let highest = places.len().saturating_sub(1);
    let wanted = match reference {
        None => Some(highest),
        Some(value) => places
            .iter()
            .rposition(|place| place.first() == Some(&value)),
    };
    let there: Vec<String> = places.iter().map(|place| place[0].to_string()).collect();
    let curve = name(&group);
    let Some(reference_place) = wanted else {
        return Err(ReplayError::Reference {
            curve,
            wanted: reference.unwrap_or_default().to_string(),
            there,
        });
    };
    let space = SearchSpace::new(kinds, places, reference_place)
        .map_err(|reason| ReplayError::Space { curve, reason })?;
    Ok(RecordedCurve {
        group,
        knobs,
        space,
        records,
    })
}

/// What was recorded, by place.
type Recorded = BTreeMap<Place, Vec<Outcome>>;

/// Coordinates in order.
#[derive(Clone, PartialEq)]
struct Place(Vec<f64>);

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let mut pairs = self.0.iter().zip(&other.0).map(|(a, b)| a.total_cmp(b));
        pairs
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    }
}
