//! `sweetspot slurm`, and the executor `slurm` of `sweetspot sweep`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_session::{
    SlurmOptions, SlurmRequest, Sweep, answer_probe, reject_queued_jobs, was_started_on_slurm,
};
use sweetspot_study::{Definition, Outline};

use crate::args::{ExecutorName, SlurmArgs, SlurmCommand, SlurmSweepArgs, SweepArgs};
use crate::exit::Outcome;
use crate::progress::ProgressDisplay;

/// Runs `sweetspot slurm`.
pub fn run(args: &SlurmArgs) -> Result<Outcome> {
    match &args.command {
        SlurmCommand::Probe { folder } => answer_probe(folder)?,
        SlurmCommand::Prolog(_) | SlurmCommand::Epilog(_) => {}
    }
    Ok(Outcome::DONE)
}

/// The user's options about Slurm.
fn options(args: &SlurmSweepArgs) -> SlurmOptions {
    SlurmOptions {
        sbatch: args.slurm.clone(),
        max_jobs: args.max_jobs,
        runs_per_job: args.runs_per_job,
        placement: args.nodes,
        resubmissions: args.resubmit,
    }
}

/// Whether the user has given a flag that only the executor `slurm` has.
fn has_slurm_flags(args: &SlurmSweepArgs) -> bool {
    options(args) != SlurmOptions::default() || args.cancel_jobs
}

/// Prepares a new sweep on the executor that the user chose.
pub fn prepare(args: &SweepArgs, definition: &Definition) -> Result<Sweep> {
    if args.slurm.executor != Some(ExecutorName::Slurm) {
        if has_slurm_flags(&args.slurm) {
            bail!("flags about Slurm need --executor slurm");
        }
        return Ok(Sweep::prepare(definition)?);
    }
    if args.no_study {
        bail!("a study on Slurm is stored in a folder: remove --no-study");
    }
    let base = args
        .study
        .clone()
        .unwrap_or_else(|| PathBuf::from("studies"));
    let existed = base.exists();
    if base.join("study.db").exists() && args.study.is_some() {
        return Err(sweetspot_study::StoreError::Exists(base).into());
    }
    if !args.dry_run {
        std::fs::create_dir_all(&base)
            .with_context(|| format!("cannot create the folder {}", base.display()))?;
    }
    let absolute = std::path::absolute(&base).context("cannot find the current folder")?;
    let criteria = args.criteria.criteria()?;
    let mut display = ProgressDisplay::new(criteria, false);
    let request = request(&args.slurm, &absolute, args.dry_run)?;
    let sweep = Sweep::on_slurm(definition, request, &mut display);
    display.clear_bar();
    if sweep.is_err() && !existed {
        // Only an empty folder is removed.
        let _ = std::fs::remove_dir(&base);
    }
    Ok(sweep?)
}

/// Prepares to resume a sweep on the executor that the user chose, or else on that with which it was started.
pub fn resume(args: &SweepArgs, outline: &Outline, folder: &Path) -> Result<Sweep> {
    let is_on_slurm = match args.slurm.executor {
        Some(executor) => executor == ExecutorName::Slurm,
        None => was_started_on_slurm(outline, folder)?,
    };
    if is_on_slurm {
        let request = request(&args.slurm, folder, args.dry_run)?;
        return Ok(Sweep::resume_on_slurm(outline, folder, request)?);
    }
    if has_slurm_flags(&args.slurm) {
        bail!("flags about Slurm need --executor slurm");
    }
    reject_queued_jobs(outline, folder)?;
    Ok(Sweep::resume(outline)?)
}

/// How a study is started or resumed on Slurm.
fn request<'a>(args: &SlurmSweepArgs, base: &'a Path, dry_run: bool) -> Result<SlurmRequest<'a>> {
    Ok(SlurmRequest {
        options: options(args),
        program: std::env::current_exe().context("cannot find the path of this program")?,
        base,
        cancels: args.cancel_jobs,
        dry_run,
    })
}
