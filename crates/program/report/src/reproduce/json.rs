//! The document of a published study beside its reproduction, `sweetspot.reproduce/1`.

use sweetspot_document::common::{NumberOrText, SchemaName};
use sweetspot_document::reproduce as document;
use sweetspot_papers::batch_sizer_2021::JobResult;
use sweetspot_papers::{
    DeviationKind, FitSummary, FormSummary, HeldOut, Label, ReproducedRow, Reproduction,
};

/// Makes the document of a reproduction.
pub fn reproduction_json(study: &Reproduction) -> document::Reproduction {
    let conclusions = study.conclusions.iter();
    let conclusions = conclusions.map(|conclusion| document::Conclusion {
        conclusion: conclusion.what.clone(),
        holds: conclusion.holds,
        here: conclusion.here.clone(),
    });
    let counted = study
        .counted_tolerances
        .iter()
        .map(|counted| document::Criterion {
            what: counted.what.clone(),
            met: counted.met,
            of: counted.of,
            needed: counted.needed,
            within: counted.is_met(),
        });
    let (met, judged) = study.count_met();
    document::Reproduction {
        schema: SchemaName::REPRODUCE,
        paper: study.paper.to_owned(),
        source: study.source.to_owned(),
        seed: study.runs.seed,
        runs: study.runs.runs,
        rows: study.rows.iter().map(row).collect(),
        judged,
        met,
        counted: counted.collect(),
        within: study.is_within(),
        conclusions: conclusions.collect(),
        confirmed: study.confirms_paper(),
        waits: study.not_reproduced.clone(),
        jobs: study.jobs.iter().map(job).collect(),
        fit: study.fit.as_ref().map(fit),
    }
}

/// Makes the entry that says how the profiles were fitted.
fn fit(fit: &FitSummary) -> document::Fit {
    document::Fit {
        free_parameters: fit.free_parameters,
        by_hand: fit.by_hand,
        values: fit.values,
        held_out: fit.held_out.iter().map(held_out).collect(),
        not_held_out: fit.not_held_out,
        changed_profiles: fit.changed_profiles.clone(),
        forms: fit.forms.iter().map(form).collect(),
    }
}

/// Makes the entry of another form of the study.
fn form(form: &FormSummary) -> document::Form {
    let of = |kind| form.values.mean_and_largest(kind);
    document::Form {
        name: form.name.to_owned(),
        what: form.what.to_owned(),
        free_parameters: form.free_parameters,
        by_hand: form.by_hand,
        values: form.values.count(),
        mean_relative: of(DeviationKind::Relative).map(|both| both.0),
        largest_relative: of(DeviationKind::Relative).map(|both| both.1),
        mean_points: of(DeviationKind::Difference).map(|both| both.0),
        largest_points: of(DeviationKind::Difference).map(|both| both.1),
        held_out: form.held_out.iter().map(held_out).collect(),
    }
}

/// Makes the entry of values that a fit did not use.
fn held_out(held_out: &HeldOut) -> document::HeldOut {
    let of = |kind| held_out.mean_and_largest(kind);
    document::HeldOut {
        without: held_out.without.clone(),
        values: held_out.count(),
        mean_relative: of(DeviationKind::Relative).map(|both| both.0),
        largest_relative: of(DeviationKind::Relative).map(|both| both.1),
        mean_points: of(DeviationKind::Difference).map(|both| both.0),
        largest_points: of(DeviationKind::Difference).map(|both| both.1),
    }
}

/// Makes the entry of one row.
fn row(row: &ReproducedRow) -> document::Row {
    let labels = row.row.iter().map(|(name, label)| {
        let value = match label {
            Label::Text(text) => NumberOrText::Text(text.clone()),
            Label::Number(number) => NumberOrText::Number((*number).into()),
        };
        ((*name).to_owned(), value)
    });
    let quantity = NumberOrText::Text(row.kind.key.to_owned());
    document::Row {
        table: row.table.clone(),
        row: labels.chain([("value".to_owned(), quantity)]).collect(),
        published: row.published,
        reproduced: row.reproduced,
        deviation: row.deviation(),
        tolerance: row.tolerance(),
        within: row.is_within_tolerance(),
        origin: row.origin.map(|origin| origin.name().to_owned()),
        note: row.note.clone(),
    }
}

/// Makes the entry of one job of batch_sizer_2021.
fn job(job: &JobResult) -> document::Job {
    let modes = job.modes.iter().map(|result| {
        let summary = &result.summary;
        let mode = document::JobMode {
            cap_on: result.controller.cap_on.to_string(),
            items_per_s: summary.items_per_s,
            violation_share: summary.violation_share.map(|share| share.get()),
            fine_share: summary.fine_share.map(|share| share.get()),
            average_batch: summary.average_batch,
            settle_windows: summary.settle_windows,
            energy_per_item_j: summary.energy_per_item.map(|energy| energy.get()),
            largest_mean_w: summary.largest_mean.map(|power| power.get()),
            changes: summary.changes,
            last_batch: result.last.batch,
            last_core_clock_mhz: result.last.core_clock.map(|clock| clock.get()),
        };
        (result.controller.name(), mode)
    });
    document::Job {
        job: job.job,
        network: job.network.to_owned(),
        dataset: job.dataset.clone(),
        cap_w: job.cap_w,
        modes: modes.collect(),
    }
}
