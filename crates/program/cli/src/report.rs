//! `sweetspot report`.

use anyhow::{Result, bail};
use sweetspot_decide::{NoChoice, Objective};
use sweetspot_report::{
    Grouping, ReportExtras, StudyView, Text, figures, group_study, own_reproduction_text,
    report_json, report_markdown, report_text, study_csv, study_html,
};
use sweetspot_study::{Axis, EnergyOf, Store};

use crate::args::ReportArgs;
use crate::documents::{Content, Documents, Format, reproduction, timelines};
use crate::exit::Outcome;
use crate::next_step::{after_study, flags_beyond};
use crate::sweep::advice;

/// Runs `sweetspot report`.
pub fn run(args: &ReportArgs) -> Result<Outcome> {
    // Bad criteria are reported before the study is read.
    args.criteria.criteria()?;
    let documents = Documents::open_with_figures(args.export.requested(), &args.figures)?;
    let store = Store::open(&crate::study::find_folder(&args.study))?;
    let outline = store.outline()?;
    let criteria = args
        .criteria
        .criteria_for(&outline.definition, args.prefer)?;
    let study = store.study(args.energy_of)?;
    let study = args.training.apply(study, &outline.definition)?;
    let view = StudyView::new(&study, &criteria);
    let grouped = match &args.by {
        Some(by) => Some(group_study(
            &view,
            &Grouping {
                by: Axis::named(by),
                over: args.over.iter().map(|name| Axis::named(name)).collect(),
                mean: args.mean,
            },
        )?),
        None => None,
    };
    let runs = study
        .points
        .iter()
        .chain([&study.reference])
        .flat_map(|point| &point.runs);
    let known: Vec<u64> = runs.map(|run| study.plan.id(run.task)).collect();
    if let Some(unknown) = args.run.iter().find(|run| !known.contains(run)) {
        bail!("the study has no run {unknown}: `sweetspot study show` lists them");
    }
    let needs_timelines = documents.has(Format::Html) || documents.has_figures();
    let timelines = match needs_timelines {
        true => timelines(&store, &view, &args.run),
        false => Vec::new(),
    };
    let own = reproduction(&outline, &study)?;
    let extras = ReportExtras {
        reproduction: own.as_ref(),
        outline: Some(&outline),
        timelines: &timelines,
        grouped: grouped.as_ref(),
    };
    let flags = flags_beyond(&args.criteria, args.prefer, &outline.definition);
    let written = documents.write(
        Content::default()
            .text(|| {
                let own = own.as_ref().map(|own| own_reproduction_text(own, &[]));
                own.map_or_else(Text::default, |own| own + Text::empty_line())
                    + report_text(&study, &criteria, grouped.as_ref())
                    + advice(&study, &criteria, Some(&store))
            })
            .next_step(Some(after_study(
                &outline.definition,
                &store,
                &view.choice,
                &flags,
            )))
            .json(|| report_json(&study, &criteria, grouped.as_ref()))
            .csv(|| study_csv(&study))
            .markdown(|| report_markdown(&study, &criteria, grouped.as_ref()))
            .html(|| Ok(study_html(&study, &criteria, &extras)))
            .figures(|| figures(&view, &timelines)),
    );
    Ok(Outcome {
        is_met: !is_unmet(&view, args.energy_of),
        written,
        ..Outcome::DONE
    })
}

/// Whether a limit was not met, or the objective could not be evaluated. A study without energy counts as unmet only if
/// the user chose an objective or an energy; the default report of it shows times alone.
pub fn is_unmet(view: &StudyView<'_>, energy_of: Option<EnergyOf>) -> bool {
    let is_chosen = view.criteria.objective != Objective::Edp || energy_of.is_some();
    match &view.choice {
        Err(NoChoice::OutsideLimits { .. } | NoChoice::UnknownValue { .. }) => true,
        Err(NoChoice::NoValue { .. }) => is_chosen,
        _ => false,
    }
}
