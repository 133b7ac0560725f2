//! `sweetspot sweep`.

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::{Result, bail};
use sweetspot_report::{study_csv, study_json, study_markdown, study_text};
use sweetspot_session::{SweepRequest, sweep};
use sweetspot_sim::Mode;
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
    let Some(gpu) = args.simulate else {
        bail!(
            "this version sweeps simulated GPUs only: name one with --simulate (`sweetspot simulate --list` shows them)"
        );
    };
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
    let mode = match (args.train, args.infer) {
        (true, _) => Some(Mode::Train),
        (_, true) => Some(Mode::Infer),
        _ => None,
    };
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    Ok(SweepRequest {
        gpu: one_gpu(gpu)?,
        network,
        mode,
        batch: args.batch,
        items: args.items,
        power_cap: args.power_cap,
        repeat: args.repeat,
        seed: args.seed,
        threads: args.threads.unwrap_or(cores),
    })
}

/// `NAME:1` is `NAME`; more than one GPU is refused rather than ignored.
fn one_gpu(selector: String) -> Result<String> {
    if selector.contains(',') {
        bail!("--simulate {selector}: this version sweeps one simulated GPU at a time");
    }
    match selector.rsplit_once(':') {
        Some((name, "1")) => Ok(name.to_owned()),
        Some((name, "0")) => bail!("--simulate {selector}: no GPU at all: write {name}"),
        Some((name, count)) if count.parse::<u64>().is_ok() => {
            bail!(
                "--simulate {selector}: this version sweeps one simulated GPU at a time: write {name}"
            )
        }
        _ => Ok(selector),
    }
}
