//! The JSON document of `sweetspot report`: the study with the recommendation, the ranges and the means.

use sweetspot_decide::{Criteria, Margin, Range, Standing};
use sweetspot_document::common::{Number, NumberOrText};
use sweetspot_document::report as document;
use sweetspot_study::Study;

use crate::analysis::answer::Answer;
use crate::analysis::groups::GroupedMeans;
use crate::analysis::ranges::better_ranges;
use crate::analysis::view::StudyView;
use crate::study::{columns, study_json};

/// Makes the document of a report.
pub fn report_json(
    study: &Study,
    criteria: &Criteria,
    grouped: Option<&GroupedMeans>,
) -> document::Report {
    let view = StudyView::new(study, criteria);
    document::Report {
        study: study_json(study, criteria),
        answer: answer(&view),
        ranges: ranges(&view),
        groups: grouped.map(groups),
    }
}

/// Makes the entry of the recommendation.
fn answer(view: &StudyView<'_>) -> document::Answer {
    let answer = Answer::from_view(view);
    document::Answer {
        text: answer.headline,
        reason: answer.reason,
        notes: answer.notes,
        choice: choice(view),
    }
}

/// Makes the entry of the chosen setting; `None` if there is no choice.
fn choice(view: &StudyView<'_>) -> Option<document::Choice> {
    let choice = view.choice.as_ref().ok()?;
    let runner_up = choice.runner_up.as_ref();
    let excluded = choice.excluded.iter();
    let excluded = excluded.map(|one| document::ExcludedPoint {
        point: one.candidate,
        why: one.why.to_string(),
    });
    Some(document::Choice {
        point: choice.candidate,
        value: choice.value.value,
        ci95: choice
            .value
            .interval95
            .map(|interval| [interval.low, interval.high]),
        runner_up: runner_up.map(|(second, margin)| document::RunnerUp {
            margin: margin_json(margin),
            point: *second,
        }),
        against_reference: choice.against_reference.as_ref().map(margin_json),
        tied_with: choice.tied_with(),
        excluded: excluded.collect(),
    })
}

/// Makes the entry of a margin between two settings.
fn margin_json(margin: &Margin) -> document::Margin {
    document::Margin {
        better_by: margin.by,
        relative: margin.relative.map(|share| share.get()),
        ci95: margin
            .interval95
            .map(|interval| [interval.low, interval.high]),
        significant: match margin.standing {
            Standing::Better | Standing::Worse => Some(true),
            Standing::Same => Some(false),
            Standing::Unknown => None,
        },
    }
}

/// Makes the entries of the ranges that are better than the reference.
fn ranges(view: &StudyView<'_>) -> Vec<document::BetterRanges> {
    let ends = |ranges: &[Range<f64>]| -> Vec<[f64; 2]> {
        ranges.iter().map(|range| [range.low, range.high]).collect()
    };
    let all = better_ranges(view)
        .into_iter()
        .map(|one| document::BetterRanges {
            axis: one.axis.column().to_owned(),
            objective: one.objective.to_string(),
            better: one.ranges.as_ref().ok().map(|ranges| ends(ranges)),
            reason: one.ranges.as_ref().err().cloned(),
            significantly_better: ends(&one.significant),
        });
    all.collect()
}

/// Makes the entry of the means along an axis.
fn groups(grouped: &GroupedMeans) -> document::Groups {
    let groups = &grouped.groups;
    let values = groups.groups.iter().map(|group| {
        let text = &grouped.values[group.by];
        document::GroupMean {
            by: match text.parse() {
                Ok(number) => NumberOrText::Number(Number::Fraction(number)),
                Err(_) => NumberOrText::Text(text.clone()),
            },
            mean: group.mean,
            relative: group.relative.get(),
        }
    });
    document::Groups {
        by: grouped.by.column().to_owned(),
        over: columns(&grouped.over),
        mean: grouped.mean.to_string(),
        values: values.collect(),
        best: groups.best,
        saving: groups.saving.get(),
        combinations: groups.combinations,
        left_out: groups.left_out,
    }
}
