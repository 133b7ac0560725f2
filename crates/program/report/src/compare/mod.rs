//! Studies side by side: what they have in common, and how far they differ (multi_gpu_2018, table 10 and
//! figures 5 to 8).

mod csv_text;
mod json;
mod text;

pub use csv_text::compare_csv;
pub use json::compare_json;
pub use text::{best, by_phase, compare_markdown, compare_text, differences, name};

use std::collections::BTreeSet;

use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_stats::{Difference, Summary};
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, Point, RunResult, Study};

use crate::choices::TABLE;
use crate::view::View;

/// One of the studies.
pub struct Side<'a> {
    /// What it is called here.
    pub name: String,
    /// The study and the answer of it.
    pub view: View<'a>,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Of a run.
    Time,
    /// Of a run.
    Energy,
    /// Energy over time.
    Power,
    /// Time over items.
    TimePerItem,
    /// Energy over items.
    EnergyPerItem,
    /// Time in a phase, for an item where items are known.
    PhaseTime(String),
    /// Energy in a phase, for an item where items are known.
    PhaseEnergy(String),
}

impl Measure {
    /// In SI units, of one run.
    fn of(&self, run: &RunResult, side: &View<'_>) -> Option<f64> {
        let energy = || Some(run.energy_of(side.study.energy_of())?.value.get());
        let time = run.time.get();
        let items = run.items.filter(|items| *items > 0.0);
        let phase = |name: &str| run.phases.iter().find(|phase| phase.name == name);
        let value = match self {
            Self::Time => time,
            Self::Energy => energy()?,
            Self::Power => energy()? / time,
            Self::TimePerItem => time / items?,
            Self::EnergyPerItem => energy()? / items?,
            Self::PhaseTime(name) => phase(name)?.time.get() / items.unwrap_or(1.0),
            Self::PhaseEnergy(name) => phase(name)?.energy.get() / items.unwrap_or(1.0),
        };
        value.is_finite().then_some(value)
    }

    /// Of every run of a point; nothing where one of them failed or does not know it.
    pub fn values(&self, point: &Point, side: &View<'_>) -> Option<Vec<f64>> {
        if point.failure().is_some() {
            return None;
        }
        let values: Option<Vec<f64>> = point.results().map(|run| self.of(run, side)).collect();
        values.filter(|values| !values.is_empty())
    }
}

/// How far a value lies from that of the first study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contrast {
    /// The first study's mean.
    pub first: f64,
    /// This one's.
    pub here: f64,
    /// The difference as a share of the first's; nothing where that is zero.
    pub relative: Option<f64>,
    /// 95 % interval of that share (Welch); unknown for single runs.
    pub interval95: Option<(f64, f64)>,
    /// Whether it means anything; unknown for single runs.
    pub significant: Option<bool>,
}

impl Contrast {
    /// From the values of the first's runs and of this one's.
    pub fn of(first: &[f64], here: &[f64]) -> Option<Self> {
        let (of_first, of_here) = (Summary::of(first)?.mean, Summary::of(here)?.mean);
        let difference = Difference::of(here, first)?;
        let share = |value: f64| Some(value / of_first.abs()).filter(|share| share.is_finite());
        Some(Self {
            first: of_first,
            here: of_here,
            relative: share(difference.mean),
            interval95: difference
                .interval95
                .and_then(|interval| Some((share(interval.low)?, share(interval.high)?))),
            significant: difference.is_significant(),
        })
    }
}

/// A setting that the first study and at least one other have.
pub struct Common {
    /// In words; empty where there is nothing to tell apart.
    pub setting: String,
    /// Whether it is each study's own reference, whatever that is.
    pub is_reference: bool,
    /// Each study's point.
    pub points: Vec<Option<Point>>,
}

/// Studies side by side.
pub struct Compared<'a> {
    /// The studies; all are compared with the first.
    pub sides: Vec<Side<'a>>,
    /// The axes that a setting is told by.
    pub axes: Vec<Axis>,
    /// What is compared at each setting.
    pub measures: Vec<Measure>,
    /// The phases that all studies have.
    pub phases: Vec<String>,
    /// The references, then the settings in common.
    pub common: Vec<Common>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl<'a> Compared<'a> {
    /// Of two or more studies, each under its name.
    pub fn new(studies: &'a [(String, Study)], question: &'a Criteria) -> Self {
        let sides: Vec<Side<'a>> = studies
            .iter()
            .map(|(name, study)| Side {
                name: name.clone(),
                view: View::new(study, question),
            })
            .collect();
        let axes = axes(studies);
        let mut notes = notes(studies);
        for side in &sides {
            if let Err(reason) = &side.view.choice {
                notes.push(format!("Nothing to choose in {}: {reason}.", side.name));
            }
        }
        let per_item = sides.iter().all(|side| side.view.has_items());
        let measures = match per_item {
            true => vec![
                Measure::TimePerItem,
                Measure::EnergyPerItem,
                Measure::Power,
                Measure::Time,
                Measure::Energy,
            ],
            false => vec![Measure::Time, Measure::Energy, Measure::Power],
        };
        let common = common(&sides, &axes);
        if common.len() < 2 {
            notes.push("No setting is in the first study and in another: only the references and the best of each are compared.".to_owned());
        }
        Self {
            phases: phases(studies),
            measures,
            common,
            notes,
            axes,
            sides,
        }
    }

    /// A study's point against the first study's at a setting.
    pub fn contrast(&self, common: &Common, side: usize, measure: &Measure) -> Option<Contrast> {
        let first = common.points.first()?.as_ref()?;
        let here = common.points.get(side)?.as_ref()?;
        Contrast::of(
            &measure.values(first, &self.sides[0].view)?,
            &measure.values(here, &self.sides[side].view)?,
        )
    }

    /// Whether all studies know what they did, so that they are compared for an item.
    pub fn is_per_item(&self) -> bool {
        self.measures.contains(&Measure::TimePerItem)
    }

    /// The outcome for one item where items are known in all studies, else as it is.
    pub fn same_work(&self, outcome: &Outcome) -> Option<Outcome> {
        let items = match self.is_per_item() {
            true => outcome.items.filter(|items| *items > 0.0)?,
            false => return Some(outcome.clone()),
        };
        Some(Outcome {
            time: outcome.time / items,
            energy: outcome.energy.map(|energy| energy / items),
            items: Some(1.0),
            ..outcome.clone()
        })
    }

    /// The objectives that the best are told by.
    pub fn objectives(&self) -> Vec<Objective> {
        let own = self.sides.first().map(|side| side.view.question.objective);
        let mut all: Vec<Objective> = own.into_iter().collect();
        all.extend(
            TABLE
                .into_iter()
                .filter(|objective| !all.contains(objective))
                .take(2)
                .collect::<Vec<_>>(),
        );
        all
    }
}

/// Those that vary in a study.
fn axes(studies: &[(String, Study)]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::new();
    for (_, study) in studies {
        let several = |axis: &Axis| {
            let all = study.points.iter().chain([&study.reference]);
            let values: BTreeSet<Option<String>> =
                all.map(|point| axis.text(&point.configuration)).collect();
            values.len() > 1
        };
        for axis in study.varied_axes() {
            if several(&axis) && !axes.contains(&axis) {
                axes.push(axis);
            }
        }
    }
    axes
}

/// What is the same work, and what is not.
fn notes(studies: &[(String, Study)]) -> Vec<String> {
    let mut notes = Vec::new();
    let differing = |what: &str, text: &dyn Fn(&Study) -> Option<String>| {
        let values: Vec<Option<String>> = studies.iter().map(|(_, study)| text(study)).collect();
        let differs = values.windows(2).any(|pair| pair[0] != pair[1]);
        differs.then(|| {
            let values: Vec<String> = values
                .into_iter()
                .map(|value| value.unwrap_or_else(|| "not known".to_owned()))
                .collect();
            format!("They differ in {what}: {}.", values.join(", "))
        })
    };
    notes.extend(differing("the workload", &|study| {
        Some(study.subject.workload.name.clone())
    }));
    notes.extend(differing("the device", &|study| {
        Some(study.device().name.clone())
    }));
    notes.extend(differing("mode", &|study| {
        study.subject.workload.mode.clone()
    }));
    notes.extend(differing("items in a run", &|study| {
        study.subject.workload.items.map(|items| items.to_string())
    }));
    notes.extend(differing("batch", &|study| {
        let batch = Axis::Parameter(BATCH_PARAMETER.to_owned());
        match study.varied_axes().contains(&batch) {
            true => Some("varied".to_owned()),
            false => batch.text(&study.reference.configuration),
        }
    }));
    notes.extend(differing("whose energy counts", &|study| {
        Some(study.energy_of().to_string())
    }));
    notes
}

fn common(sides: &[Side<'_>], axes: &[Axis]) -> Vec<Common> {
    let mut all = vec![Common {
        setting: "reference".to_owned(),
        is_reference: true,
        points: sides
            .iter()
            .map(|side| Some(side.view.study.reference.clone()))
            .collect(),
    }];
    let key = |configuration: &Configuration| -> Vec<Option<String>> {
        axes.iter().map(|axis| axis.text(configuration)).collect()
    };
    let Some((first, others)) = sides.split_first() else {
        return all;
    };
    for point in &first.view.study.points {
        let wanted = key(&point.configuration);
        let found: Vec<Option<Point>> = others
            .iter()
            .map(|side| {
                let points = &side.view.study.points;
                points
                    .iter()
                    .find(|other| key(&other.configuration) == wanted)
                    .cloned()
            })
            .collect();
        if axes.is_empty() || found.iter().all(Option::is_none) {
            continue;
        }
        all.push(Common {
            setting: crate::configuration_text(axes, &point.configuration),
            is_reference: false,
            points: [Some(point.clone())].into_iter().chain(found).collect(),
        });
    }
    all
}

fn phases(studies: &[(String, Study)]) -> Vec<String> {
    let of = |study: &Study| -> Vec<String> {
        study
            .reference
            .phases()
            .into_iter()
            .map(|phase| phase.name)
            .collect()
    };
    let Some((first, others)) = studies.split_first() else {
        return Vec::new();
    };
    let mut names = of(&first.1);
    names.retain(|name| others.iter().all(|(_, study)| of(study).contains(name)));
    names
}
