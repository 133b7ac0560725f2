//! `sweetspot reproduce NAME --on-this-gpu`: the plan of a paper, run by the ordinary sweep.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Parser;
use sweetspot_papers::{
    OwnComparison, OwnOrigin, OwnPlan, PapersError, PlanOptions, compare_own, plan_for,
};
use sweetspot_report::{
    Line, own_reproduction_json, own_reproduction_markdown, own_reproduction_text,
};
use sweetspot_session::{all_runs_succeeded, gpu_descriptors};
use sweetspot_study::{EnergyOf, Study};

use crate::args::{ReproduceArgs, SweepArgs};
use crate::documents::{Documents, Format, study_content};
use crate::exit::Outcome;
use crate::messages::print_note;
use crate::run::is_read_only;
use crate::sweep::{SweepEnd, run_to_study};

/// The flags of a sweep, as if the user had typed them.
#[derive(Parser)]
struct TypedSweep {
    #[command(flatten)]
    sweep: SweepArgs,
}

/// Runs a paper's plan on the user's GPUs.
pub fn run(args: &ReproduceArgs) -> Result<Outcome> {
    if args.cmd.is_empty() {
        bail!(
            "--on-this-gpu runs the plan of a paper with your program: write its command after `--`"
        );
    }
    let options = PlanOptions {
        network: args.own.network.clone(),
        repeat: args.own.repeat,
        points: args.own.points.map(|points| points as usize),
        energy_of: args.own.energy_of,
    };
    let devices = gpu_descriptors(args.own.device.as_deref())?;
    let plan = plan_for(&args.name, &devices, &options)?;
    let read_only = args.own.read_only || is_read_only();
    if read_only && (plan.power_cap.is_some() || plan.core_clock.is_some()) {
        let knob = match plan.power_cap {
            Some(_) => "power cap",
            None => "core clock",
        };
        bail!(
            "{} sets the {knob} of your GPUs, and nothing may be set: remove --read-only or SWEETSPOT_READ_ONLY; multi-gpu-2018 varies batch sizes and numbers of GPUs, and sets nothing",
            plan.origin.paper
        );
    }
    if plan.energy_of == EnergyOf::Node && args.own.meters.meter.is_empty() && !args.own.meters.host
    {
        bail!(
            "{} compares the energy of the whole machine: name its power meter with --meter, or compare that of the GPUs with --energy-of job-gpus",
            plan.origin.paper
        );
    }
    let mut requested = args.export.requested();
    requested.push((Format::Html, args.own.export_html.as_deref()));
    let documents = Documents::open(requested)?;
    let sweep = typed_sweep(args, &plan, read_only)?;
    for note in &plan.notes {
        print_note(note);
    }
    let (study, store) = match run_to_study(&sweep)? {
        SweepEnd::Unfinished(outcome) => return Ok(outcome),
        SweepEnd::Finished(study, store) => (*study, store),
    };
    let own = compare(&plan.origin, &study, args.seed)?;
    let folder = store
        .as_ref()
        .map(|store| store.folder().display().to_string());
    let criteria = sweep.criteria.criteria()?;
    let next = folder.as_ref().map(|folder| {
        Line::with_command(
            "All of the study:",
            &format!("sweetspot report {folder} --export-html report.html"),
        )
    });
    let of_study = study_content(store.as_ref(), &study, &criteria);
    let written = documents.write(
        of_study
            .replacing_json(|| own_reproduction_json(&own, &study, &plan.notes, folder.clone()))
            .replacing_markdown(|| own_reproduction_markdown(&own, &plan.notes))
            .text(|| own_reproduction_text(&own, &plan.notes))
            .next_step(next),
    );
    Ok(Outcome {
        is_met: all_runs_succeeded(&study),
        written,
        ..Outcome::DONE
    })
}

/// Compares a study with the paper that it reproduces.
pub fn compare(origin: &OwnOrigin, study: &Study, seed: u64) -> Result<OwnComparison, PapersError> {
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    compare_own(origin, study, seed, threads)
}

/// The flags of the sweep that makes the runs.
fn typed_sweep(args: &ReproduceArgs, plan: &OwnPlan, read_only: bool) -> Result<SweepArgs> {
    let own = &args.own;
    let mut words: Vec<OsString> = vec!["sweep".into()];
    let mut flag = |name: &str, value: Option<OsString>| {
        if let Some(value) = value {
            words.extend([name.into(), value]);
        }
    };
    let text = |text: &Option<String>| text.clone().map(OsString::from);
    flag("--reproduces", Some(plan.origin.to_string().into()));
    flag("--device", text(&own.device));
    flag("--power-cap", text(&plan.power_cap));
    flag("--core-clock", text(&plan.core_clock));
    flag("--gpus", text(&plan.gpus));
    flag(
        "--axis",
        plan.batch
            .as_ref()
            .map(|batch| format!("batch={batch}").into()),
    );
    flag("--repeat", Some(plan.repeat.to_string().into()));
    flag("--energy-of", Some(plan.energy_of.to_string().into()));
    flag("--seed", Some(args.seed.to_string().into()));
    flag("--study", own.study.clone().map(PathBuf::into_os_string));
    flag("--progress", text(&own.progress));
    for meter in &own.meters.meter {
        flag("--meter", Some(meter.into()));
    }
    for calibration in &own.meters.calibration {
        flag("--calibration", Some(calibration.into()));
    }
    let switches = [
        ("--host", own.meters.host),
        ("--read-only", read_only),
        ("--dry-run", own.dry_run),
        ("--yes", own.yes),
        ("--sudo", own.sudo.sudo),
        ("--as-root", own.sudo.root.as_root),
    ];
    words.extend(
        switches
            .iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| (*name).into()),
    );
    words.push("--".into());
    words.extend(args.cmd.iter().cloned());
    let typed = TypedSweep::try_parse_from(words).context("the plan cannot be run as a sweep")?;
    Ok(typed.sweep)
}
