//! `sweetspot replay`.

use std::num::NonZeroUsize;

use anyhow::{Context, Result, bail};
use sweetspot_decide::search::StrategyName;
use sweetspot_fit::{
    EnergyColumn, PriorChoice, RecordColumns, RecordedCurve, RecordedKnob, ReplayRequest,
    curve_of_study, read_curves, replay,
};
use sweetspot_report::{replay_csv, replay_figures, replay_json, replay_markdown, replay_text};
use sweetspot_study::{Store, Study};

use crate::args::ReplayArgs;
use crate::documents::{Content, Documents, FigureFolder};
use crate::exit::Outcome;

/// Runs `sweetspot replay`.
pub fn run(args: &ReplayArgs) -> Result<Outcome> {
    let documents =
        Documents::open(args.export.requested())?.with_figures(FigureFolder::open(&args.figures)?);
    let strategies = match args.strategy.as_str() {
        "all" => StrategyName::ALL.to_vec(),
        name => vec![name.parse().context("--strategy")?],
    };
    if args
        .step
        .is_some_and(|step| !(step > 0.0 && step.is_finite()))
    {
        bail!("--step must be a number above zero");
    }
    let criteria = args.criteria.criteria()?;
    let objective = criteria.objective.to_string();
    let request = ReplayRequest {
        curves: read_requested_curves(args)?,
        criteria,
        prior: read_prior(args)?,
        seed: args.seed,
        step: args.step,
        max_evaluations: args.evaluations,
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let replays = replay(&request, &strategies, threads)?;
    let written = documents.write(
        Content::default()
            .text(|| replay_text(&replays))
            .json(|| replay_json(&replays, &objective))
            .csv(|| replay_csv(&replays))
            .markdown(|| replay_markdown(&replays))
            .figures(|| replay_figures(&replays, &objective)),
    );
    Ok(Outcome {
        is_met: replays
            .iter()
            .all(|replay| replay.curves_with_optimum() > 0),
        written,
        ..Outcome::DONE
    })
}

/// The curves that the flags name, from a CSV file or from studies.
fn read_requested_curves(args: &ReplayArgs) -> Result<Vec<RecordedCurve>> {
    let Some(file) = &args.curves else {
        let studies = args.study.iter().map(|study| read_study(study.as_path()));
        let curves = studies.map(|study| Ok(curve_of_study(&study?)?));
        return curves.collect();
    };
    let energy = match (&args.power, &args.energy) {
        (Some(power), _) => EnergyColumn::Power(power.clone()),
        (None, Some(energy)) => EnergyColumn::Energy(energy.clone()),
        (None, None) => bail!(
            "--curves needs the column with the average power (--power COL) or with the energy (--energy COL)"
        ),
    };
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let columns = RecordColumns {
        knobs: args
            .knob
            .iter()
            .map(|name| RecordedKnob::named(name))
            .collect(),
        time: args.time.clone().unwrap_or_default(),
        energy,
        group: args.group.clone(),
        reference: args.reference,
    };
    Ok(read_curves(&file.display().to_string(), &text, &columns)?)
}

/// The prior knowledge that the flags name.
fn read_prior(args: &ReplayArgs) -> Result<PriorChoice> {
    let names: Vec<&str> = args.prior.iter().map(String::as_str).collect();
    Ok(match names.as_slice() {
        ["none"] => PriorChoice::None,
        ["leave-one-out"] => PriorChoice::LeaveOneOut,
        studies => {
            let studies = studies.iter().map(|study| read_study(study.as_ref()));
            PriorChoice::Studies(studies.collect::<Result<_>>()?)
        }
    })
}

/// Reads a study by its folder or name.
fn read_study(path: &std::path::Path) -> Result<Study> {
    Ok(Store::open(&crate::study::find_folder(path))?.study(None)?)
}
