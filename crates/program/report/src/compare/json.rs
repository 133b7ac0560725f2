//! The JSON document of a comparison of studies, `sweetspot.compare/1`.

use sweetspot_decide::Objective;
use sweetspot_document::common::{RelativeChange, SchemaName};
use sweetspot_document::compare as document;
use sweetspot_stats::Summary;

use super::csv::{all_quantities, column};
use super::{CommonSetting, RelativeDifference, StudyComparison};
use crate::study::{energy_of, recommendation, settings, status, summary};

/// Makes the JSON document of a comparison of studies.
pub fn compare_json(compared: &StudyComparison<'_>) -> document::Compare {
    let criteria = compared.studies.first().map(|side| side.view.criteria);
    let studies = compared.studies.iter().map(|side| {
        let study = side.view.study;
        document::ComparedStudy {
            name: side.name.clone(),
            study: study.name(),
            device: study.device().name.clone(),
            workload: study.subject.workload.name.clone(),
            energy_of: energy_of(study.energy_of()),
            points: study.points.len(),
            recommendation: recommendation(study, side.view.criteria),
        }
    });
    let limits = criteria.into_iter().flat_map(|criteria| &criteria.limits);
    let common = compared.common_settings.iter();
    let objectives = compared.objectives().into_iter();
    document::Compare {
        schema: SchemaName::COMPARE,
        objective: criteria.map(|criteria| criteria.objective.to_string()),
        limits: limits.map(ToString::to_string).collect(),
        studies: studies.collect(),
        settings: common.map(|common| setting(compared, common)).collect(),
        best: objectives
            .map(|objective| (objective.to_string(), best(compared, objective)))
            .collect(),
        notes: compared.notes.clone(),
    }
}

/// Makes the entry of a setting that several studies have.
fn setting(compared: &StudyComparison<'_>, common: &CommonSetting) -> document::CommonSetting {
    let mut values = Vec::new();
    let mut against_first = Vec::new();
    let quantities = all_quantities(compared);
    for (index, side) in compared.studies.iter().enumerate() {
        let Some(point) = common.points.get(index).and_then(Option::as_ref) else {
            continue;
        };
        let summaries = quantities.iter().filter_map(|quantity| {
            let found = Summary::of(&quantity.values(point, &side.view)?)?;
            Some((column(quantity), summary(&found)))
        });
        values.push(document::StudyValues {
            study: index,
            settings: settings(&point.configuration),
            status: status(point.status()),
            quantities: summaries.collect(),
        });
        if index > 0 {
            let differences = quantities.iter().filter_map(|quantity| {
                let difference = compared.difference(common, index, quantity)?;
                Some((column(quantity), difference_json(&difference)))
            });
            against_first.push(document::StudyDifferences {
                study: index,
                quantities: differences.collect(),
            });
        }
    }
    document::CommonSetting {
        setting: common.setting.clone(),
        reference: common.is_reference,
        values,
        against_first,
    }
}

/// Makes the entry of a difference.
fn difference_json(difference: &RelativeDifference) -> document::Difference {
    document::Difference {
        relative: difference.relative,
        ci95: difference.interval95.map(|(low, high)| [low, high]),
        significant: difference.significant,
    }
}

/// Makes the entries of each study's best setting for an objective.
fn best(compared: &StudyComparison<'_>, objective: Objective) -> Vec<document::BestOfStudy> {
    let mut first = None;
    let mut all = Vec::new();
    for (index, side) in compared.studies.iter().enumerate() {
        let view = &side.view;
        let best = view.comparison.best_mean(objective, &view.criteria.limits);
        let Some((best, value)) = best
            .ok()
            .and_then(|best| Some((best, view.estimate(best, objective)?.value)))
        else {
            continue;
        };
        let mean = view.mean(best);
        let mean = mean.and_then(|mean| compared.same_work(mean));
        let own = mean.and_then(|mean| objective.value(&mean, view.comparison.basis()).ok());
        let own = own.filter(|_| !objective.needs_reference());
        if index == 0 {
            first = own;
        }
        let relative = first.zip(own).map(|(first, own)| own / first - 1.0);
        let against = view.relative(best);
        all.push(document::BestOfStudy {
            study: index,
            point: best,
            settings: settings(&view.study.points[best].configuration),
            value,
            relative_to_first: relative.filter(|share| share.is_finite()),
            vs_reference: against.map(|(time, energy)| RelativeChange {
                time: Some(time - 1.0),
                energy: Some(energy - 1.0),
            }),
        });
    }
    all
}
