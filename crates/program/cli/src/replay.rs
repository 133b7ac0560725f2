//! `sweetspot replay`.

use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sweetspot_decide::search::StrategyName;
use sweetspot_fit::{
    EnergyColumn, PriorChoice, RecordColumns, RecordedCurve, RecordedKnob, ReplayRequest,
    curve_of_study, read_curves, replay,
};
use sweetspot_report::{
    Line, replay_csv, replay_figures, replay_json, replay_markdown, replay_text,
};
use sweetspot_study::Store;

use crate::args::{MAX_TABLE_BYTES, ReplayArgs};
use crate::documents::{Content, Documents};
use crate::exit::Outcome;

/// Runs `sweetspot replay`.
pub fn run(args: &ReplayArgs) -> Result<Outcome> {
    let documents = Documents::open_with_figures(args.export.requested(), &args.figures)?;
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
            .next_step(Some(Line::with_command(
                "Search on your own GPU:",
                "sweetspot sweep -- python train.py",
            )))
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
    match &args.curves {
        Some(file) => read_csv(args, file, args.reference),
        None => {
            let studies = args.study.iter();
            studies.map(|study| read_study(study)).collect()
        }
    }
}

/// Reads the curves of a CSV file, in the columns that the flags name. `reference` is the first setting's value at the
/// reference; the highest if absent.
fn read_csv(args: &ReplayArgs, file: &Path, reference: Option<f64>) -> Result<Vec<RecordedCurve>> {
    let energy = match (&args.power, &args.energy) {
        (Some(power), _) => EnergyColumn::Power(power.clone()),
        (None, Some(energy)) => EnergyColumn::Energy(energy.clone()),
        (None, None) => bail!(
            "--curves needs the column with the average power (--power COL) or with the energy (--energy COL)"
        ),
    };
    let text = sweetspot_input::read_text(file, MAX_TABLE_BYTES);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let columns = RecordColumns {
        knobs: args
            .knob
            .iter()
            .map(|name| RecordedKnob::named(name))
            .collect(),
        time: args.time.clone().unwrap_or_default(),
        energy,
        group: args.group.clone(),
        reference,
    };
    Ok(read_curves(&file.display().to_string(), &text, &columns)?)
}

/// The prior knowledge that the flags name.
fn read_prior(args: &ReplayArgs) -> Result<PriorChoice> {
    let names: Vec<&str> = args.prior.iter().map(String::as_str).collect();
    Ok(match names.as_slice() {
        ["none"] => PriorChoice::None,
        ["leave-one-out"] => PriorChoice::LeaveOneOut,
        names => {
            let mut curves = Vec::new();
            for name in names {
                match name.ends_with(".csv") {
                    true if args.curves.is_none() => bail!(
                        "--prior {name}: a CSV file needs --curves, whose columns it must have; use --prior STUDY,..."
                    ),
                    true => curves.extend(read_csv(args, Path::new(name), None)?),
                    false => curves.push(read_study(Path::new(name))?),
                }
            }
            PriorChoice::Curves(curves)
        }
    })
}

/// Reads the curve of a study, by the study's folder or name.
fn read_study(path: &Path) -> Result<RecordedCurve> {
    let study = Store::open(&crate::study::find_folder(path))?.study(None)?;
    Ok(curve_of_study(&study)?)
}
