//! `sweetspot compare`: studies side by side, their common settings and differences (multi_gpu_2018, table 10 and
//! figures 5 to 8).

mod csv;
mod html;
mod json;
mod text;

pub use self::csv::compare_csv;
pub use html::compare_html;
pub use json::compare_json;
pub use text::{best, by_phase, compare_markdown, compare_text, differences, name};

use std::collections::BTreeSet;

use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_stats::{Difference, Summary};
use sweetspot_study::{Axis, BATCH_PARAMETER, Configuration, Point, RunResult, Study};

use crate::analysis::choices::TABLE_OBJECTIVES;
use crate::analysis::view::StudyView;

/// A study in a comparison.
pub struct ComparedStudy<'a> {
    /// The name by which the comparison refers to the study.
    pub name: String,
    /// The study, with the objective and limits by which it is evaluated.
    pub view: StudyView<'a>,
}

/// A quantity in which studies are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComparedQuantity {
    /// The time of a run.
    Time,
    /// The energy of a run.
    Energy,
    /// The average power of a run.
    Power,
    /// The time of an item.
    TimePerItem,
    /// The energy of an item.
    EnergyPerItem,
    /// The time in the phase with this name: per item if items are known, otherwise per run.
    PhaseTime(String),
    /// The energy in the phase with this name: per item if items are known, otherwise per run.
    PhaseEnergy(String),
}

impl ComparedQuantity {
    /// Returns the value of one run in SI units.
    fn value_of_run(&self, run: &RunResult, side: &StudyView<'_>) -> Option<f64> {
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
            Self::PhaseEnergy(name) => phase(name)?.energy?.get() / items.unwrap_or(1.0),
        };
        value.is_finite().then_some(value)
    }

    /// Returns the value of every run of a point; `None` if a run failed or has no such value.
    pub fn values(&self, point: &Point, side: &StudyView<'_>) -> Option<Vec<f64>> {
        if point.failure().is_some() {
            return None;
        }
        let values: Option<Vec<f64>> = point
            .results()
            .map(|run| self.value_of_run(run, side))
            .collect();
        values.filter(|values| !values.is_empty())
    }
}

/// The difference between the value of a study and that of the first study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeDifference {
    /// The mean of the first study's runs.
    pub first: f64,
    /// The mean of this study's runs.
    pub here: f64,
    /// The difference as a fraction of the first study's mean; `None` if that mean is zero.
    pub relative: Option<f64>,
    /// The 95 % confidence interval of that fraction (Welch); `None` for single runs.
    pub interval95: Option<(f64, f64)>,
    /// Whether the difference is significant, given how many settings are compared; `None` for single runs.
    pub significant: Option<bool>,
}

impl RelativeDifference {
    /// Compares the values of the first study's runs with the values of another study's runs. The difference is one of
    /// `count` that are tested together.
    pub fn between(first: &[f64], here: &[f64], count: usize) -> Option<Self> {
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
            significant: difference.is_significant_among(count),
        })
    }
}

/// A setting that the first study and at least one other study measured.
pub struct CommonSetting {
    /// The setting in words; empty if the studies vary no axis.
    pub setting: String,
    /// Whether this is the pair of references, whose settings may differ.
    pub is_reference: bool,
    /// The point of each study at this setting; `None` for a study that did not measure it.
    pub points: Vec<Option<Point>>,
}

/// A comparison of several studies.
pub struct StudyComparison<'a> {
    /// The studies, all of which are compared with the first one.
    pub studies: Vec<ComparedStudy<'a>>,
    /// The axes whose values identify a setting.
    pub axes: Vec<Axis>,
    /// The quantities that are compared at each setting.
    pub quantities: Vec<ComparedQuantity>,
    /// The phases that all studies have.
    pub phases: Vec<String>,
    /// The settings that are compared: the references, then those that the first study and another one share.
    pub common_settings: Vec<CommonSetting>,
    /// Differences between the studies that matter for the comparison, as sentences.
    pub notes: Vec<String>,
}

impl<'a> StudyComparison<'a> {
    /// Compares two or more studies, each with its name.
    pub fn new(studies: &'a [(String, Study)], criteria: &'a Criteria) -> Self {
        let sides: Vec<ComparedStudy<'a>> = studies
            .iter()
            .map(|(name, study)| ComparedStudy {
                name: name.clone(),
                view: StudyView::new(study, criteria),
            })
            .collect();
        let axes = axes(studies);
        let mut notes = notes(studies);
        for side in &sides {
            if let Err(reason) = &side.view.choice {
                notes.push(format!("No best setting in {}: {reason}.", side.name));
            }
        }
        let per_item = sides.iter().all(|side| side.view.has_items());
        let quantities = match per_item {
            true => vec![
                ComparedQuantity::TimePerItem,
                ComparedQuantity::EnergyPerItem,
                ComparedQuantity::Power,
                ComparedQuantity::Time,
                ComparedQuantity::Energy,
            ],
            false => vec![
                ComparedQuantity::Time,
                ComparedQuantity::Energy,
                ComparedQuantity::Power,
            ],
        };
        let common_settings = common_settings(&sides, &axes);
        if common_settings.len() < 2 {
            notes.push("No other study has a setting of the first study: only the references and the best settings are compared.".to_owned());
        }
        Self {
            phases: phases(studies),
            quantities,
            common_settings,
            notes,
            axes,
            studies: sides,
        }
    }

    /// Compares a study's point with the first study's at a setting.
    pub fn difference(
        &self,
        common: &CommonSetting,
        side: usize,
        quantity: &ComparedQuantity,
    ) -> Option<RelativeDifference> {
        let first = common.points.first()?.as_ref()?;
        let here = common.points.get(side)?.as_ref()?;
        RelativeDifference::between(
            &quantity.values(first, &self.studies[0].view)?,
            &quantity.values(here, &self.studies[side].view)?,
            self.common_settings.len(),
        )
    }

    /// Whether the number of items is known in all studies. If so, they are compared per item.
    pub fn is_per_item(&self) -> bool {
        self.quantities.contains(&ComparedQuantity::TimePerItem)
    }

    /// Returns time and energy per item if the items are known in all studies; otherwise returns the outcome unchanged.
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

    /// Returns the objectives for which the best points are shown.
    pub fn objectives(&self) -> Vec<Objective> {
        let own = self
            .studies
            .first()
            .map(|side| side.view.criteria.objective);
        let mut all: Vec<Objective> = own.into_iter().collect();
        all.extend(
            TABLE_OBJECTIVES
                .into_iter()
                .filter(|objective| !all.contains(objective))
                .take(2)
                .collect::<Vec<_>>(),
        );
        all
    }
}

/// Returns the axes that vary in a study.
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

/// Lists how the studies' workloads, devices and conditions differ.
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

/// Finds the settings that the first study and at least one other study measured.
fn common_settings(sides: &[ComparedStudy<'_>], axes: &[Axis]) -> Vec<CommonSetting> {
    let mut all = vec![CommonSetting {
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
        all.push(CommonSetting {
            setting: crate::settings::configuration_text(axes, &point.configuration),
            is_reference: false,
            points: [Some(point.clone())].into_iter().chain(found).collect(),
        });
    }
    all
}

/// The names of the phases that all studies have.
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
