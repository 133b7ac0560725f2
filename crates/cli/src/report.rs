//! `sweetspot report`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use sweetspot_decide::{NoChoice, Objective};
use sweetspot_report::{Figure, Grouping, Made, View, figure_svg, figures, grouped, report_text};
use sweetspot_study::{Axis, EnergyOf, Store};

use crate::NOT_MET;
use crate::args::{FigureArgs, ReportArgs};
use crate::export::{Document, StudyDocuments, print, timelines};

pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    args.question.question()?;
    reject_missing_png(&args.figures)?;
    let documents = StudyDocuments::open(&args.export)?;
    let store = Store::open(&crate::study::folder(&args.study))?;
    let outline = store.outline()?;
    let question = args.question.question_of(&outline.definition)?;
    let study = store.study(args.energy_of)?;
    let view = View::new(&study, &question);
    let grouped = match &args.by {
        Some(by) => Some(grouped(
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
    let draws = documents.has_page() || args.figures.export_figures.is_some();
    let timelines = match draws {
        true => timelines(&store, &view, &args.run),
        false => Vec::new(),
    };
    if !documents.on_stdout() {
        print(&report_text(&study, &question, grouped.as_ref()))?;
    }
    let made = Made {
        outline: Some(&outline),
        timelines: &timelines,
        grouped: grouped.as_ref(),
    };
    documents.write_report(&study, &question, &made)?;
    if args.figures.export_figures.is_some() {
        write_figures(&args.figures, &figures(&view, &timelines))?;
    }
    Ok(ExitCode::from(if unmet(&view, args.energy_of) {
        NOT_MET
    } else {
        0
    }))
}

/// Whether a limit, or an objective or energy that was named, could not be met or judged. Without a name
/// a study that knows no energy is reported as far as it goes.
pub fn unmet(view: &View<'_>, energy_of: Option<EnergyOf>) -> bool {
    let named = view.question.objective != Objective::Edp || energy_of.is_some();
    match &view.choice {
        Err(NoChoice::OutsideLimits { .. } | NoChoice::UnknownValue { .. }) => true,
        Err(NoChoice::NoValue { .. }) => named,
        _ => false,
    }
}

/// Each figure as a file, or as two.
pub fn write_figures(args: &FigureArgs, figures: &[Figure]) -> Result<()> {
    let Some(folder) = &args.export_figures else {
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {} for figures", folder.display()))?;
    if figures.is_empty() {
        eprintln!(
            "sweetspot: the study has nothing to draw: a figure needs two configurations that ran well"
        );
    }
    for figure in figures {
        let svg = figure_svg(figure);
        let path = |ending: &str| folder.join(format!("{}.{ending}", figure.id));
        Document::open(&path("svg"))?.write(&svg)?;
        if args.png {
            write_png(&path("png"), &svg)?;
        }
    }
    Ok(())
}

#[cfg(feature = "png")]
fn write_png(path: &Path, svg: &str) -> Result<()> {
    let drawn = sweetspot_report::figure_png(svg);
    let bytes = drawn.with_context(|| format!("cannot draw {}", path.display()))?;
    Document::open(path)?.write_bytes(&bytes)
}

const NO_PNG: &str = "this program was built without PNG figures: build it with `cargo build --release --features png`, or remove --png and use the SVG files";

/// Refuses --png before any work where the program cannot draw it.
pub fn reject_missing_png(args: &FigureArgs) -> Result<()> {
    match args.png && !cfg!(feature = "png") {
        true => bail!(NO_PNG),
        false => Ok(()),
    }
}

#[cfg(not(feature = "png"))]
fn write_png(_: &Path, _: &str) -> Result<()> {
    bail!(NO_PNG)
}
