//! `sweetspot sweep`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_report::{study_csv, study_json, study_markdown, study_text};
use sweetspot_session::{Axes, Setup, SweepRequest, sweep};
use sweetspot_study::Status;

use crate::NOT_MET;
use crate::args::SweepArgs;
use crate::export::{Document, print};

pub fn run(args: Box<SweepArgs>) -> Result<ExitCode> {
    let args = *args;
    let objective = args.objective;
    let documents = [
        &args.export.export_json,
        &args.export.export_csv,
        &args.export.export_md,
    ]
    .map(|path| path.as_deref().map(Document::open).transpose());
    let request = request(args)?;
    let [json, csv, markdown] = documents;
    let (json, csv, markdown) = (json?, csv?, markdown?);
    let all: Vec<&Document> = [&json, &csv, &markdown].into_iter().flatten().collect();
    if let Some(twice) = (1..all.len()).find(|index| all[..*index].contains(&all[*index])) {
        bail!(
            "two documents cannot go to {}: give each its own file",
            all[twice]
        );
    }
    let on_stdout = all.iter().any(|document| document.is_stdout());
    let study = sweep(&request)?;
    if let Some(json) = json {
        let document = study_json(&study, objective);
        json.write(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    }
    if let Some(csv) = csv {
        csv.write(&study_csv(&study)?)?;
    }
    if let Some(markdown) = markdown {
        markdown.write(&study_markdown(&study, objective))?;
    }
    if !on_stdout {
        print(&study_text(&study, objective))?;
    }
    let met = study.points.iter().all(|point| point.status == Status::Ok);
    Ok(ExitCode::from(if met { 0 } else { NOT_MET }))
}

fn request(args: SweepArgs) -> Result<SweepRequest> {
    if args.simulate.is_none() && args.node.is_none() {
        bail!(
            "this version sweeps simulated GPUs only: name one with --simulate (`sweetspot simulate --list` shows them)"
        );
    }
    if !args.cmd.is_empty() {
        bail!(
            "--simulate runs in virtual time and cannot run a command: give --network NAME in place of `-- CMD`"
        );
    }
    let Some(network) = args.network else {
        bail!(
            "--simulate needs a workload: add --network NAME (`sweetspot simulate --list` shows them)"
        );
    };
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(SweepRequest {
        setup: Setup {
            gpus: args.simulate,
            node: args.node,
            network,
            variant: args.variant.variant(),
            items: args.items,
            energy_of: args.energy_of,
        },
        batch: args.batch,
        axes: Axes {
            power_cap: args.power_cap,
            core_clock: args.core_clock,
            memory_clock: args.memory_clock,
            gpus: args.gpus,
        },
        repeat: args.repeat,
        seed: args.seed,
        threads: args.threads.unwrap_or(cores),
    })
}
