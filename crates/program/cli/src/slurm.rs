//! `sweetspot slurm`, and the executor `slurm` of `sweetspot sweep`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sweetspot_device::Settings;
use sweetspot_report::{Text, unplanned_text};
use sweetspot_service::load_policy;
use sweetspot_service::policy::SlurmPolicy;
use sweetspot_session::slurm_job::{
    self, AsUser, HookContext, HookResult, JobEnvironment, JobProgress, JobRecord,
};
use sweetspot_session::{
    ChoiceQuery, ChoiceStore, SessionError, SlurmOptions, SlurmRequest, Sweep, answer_probe,
    reject_queued_jobs, test_without_gpus, was_started_on_slurm,
};
use sweetspot_study::{Definition, Outline};

use crate::args::{
    ExecutorName, SlurmArgs, SlurmChoiceArgs, SlurmCommand, SlurmHookArgs, SlurmSweepArgs,
    SweepArgs,
};
use crate::documents::print;
use crate::exit::Outcome;
use crate::messages::{print_error, print_warning};
use crate::progress::ProgressDisplay;

/// Runs `sweetspot slurm`.
pub fn run(args: &SlurmArgs) -> Result<Outcome> {
    match &args.command {
        SlurmCommand::Probe { folder } => answer_probe(folder)?,
        SlurmCommand::Prolog(args) => run_hook("prolog", args, slurm_job::prolog),
        SlurmCommand::Epilog(args) => run_hook("epilog", args, slurm_job::epilog),
        SlurmCommand::WriteRecord { file } => slurm_job::write_user_record(file)
            .with_context(|| format!("cannot write {}", file.display()))?,
        SlurmCommand::Choice(args) => print(serde_json::to_string(&find_choice(args))?)?,
    }
    Ok(Outcome::DONE)
}

/// The choice that `tune` stored for an objective, in the user's folder or in that of the site.
fn find_choice(args: &SlurmChoiceArgs) -> Option<Settings> {
    let query = ChoiceQuery {
        gpu: args.gpu.clone(),
        gpus: args.gpus,
        objective: args.objective.clone(),
        workload: args.workload.clone(),
    };
    let own = ChoiceStore::of_user().and_then(|store| query.find(store.folder()));
    own.or_else(|| query.find(args.folder.as_deref()?))
}

/// A hook of Slurm.
type Hook = fn(&JobEnvironment, &HookContext<'_>) -> Result<HookResult, SessionError>;

/// Runs a hook. It never fails: Slurm takes a node out of service whose Prolog or Epilog fails, and a user could do that to
/// all nodes with a bad comment.
fn run_hook(name: &str, args: &SlurmHookArgs, hook: Hook) {
    let Some(job) = JobEnvironment::read(|name| std::env::var(name).ok()) else {
        print_error(&format!(
            "slurm {name}: the variables SLURM_JOB_ID and SLURM_JOB_UID are missing: let Slurm call it as its Prolog or Epilog"
        ));
        return;
    };
    let policy = match load_policy(&args.policy) {
        Ok(policy) => policy.slurm().clone(),
        Err(error) => {
            print_warning(&format!("slurm {name}: {error}; refused jobs run"));
            SlurmPolicy::default()
        }
    };
    let as_user = AsUser {
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sweetspot")),
    };
    let context = HookContext {
        socket: &args.socket,
        policy: &policy,
        as_user: &as_user,
    };
    let result = match hook(&job, &context) {
        Ok(result) => result,
        Err(error) => {
            print_error(&format!("slurm {name}: job {}: {error}", job.id));
            return;
        }
    };
    for message in &result.messages {
        print_warning(&format!("slurm {name}: {message}"));
    }
    let Some(record) = result.record else {
        return;
    };
    if result.cancels_job {
        call_slurm("scancel", &[&job.id.to_string()]);
    }
    if policy.admin_comment {
        write_admin_comment(job.id, &record);
    }
    if let Err(error) = as_user.write_record(&job, &record) {
        print_warning(&format!(
            "slurm {name}: job {}: the record is not in the folder of the job: {error}",
            job.id
        ));
    }
}

/// Writes what happened to a job to its admin comment. The controller refuses that for a job that has ended; the
/// accounting database accepts it, where there is one.
fn write_admin_comment(job: u64, record: &JobRecord) {
    let comment = format!("AdminComment={}", record.summary());
    match record.progress {
        JobProgress::Running => {
            call_slurm("scontrol", &["update", &format!("JobId={job}"), &comment]);
        }
        JobProgress::Ended | JobProgress::NotRestored => {
            let job = format!("jobid={job}");
            let words = ["-i", "modify", "job", "where", &job, "set", &comment];
            call_slurm("sacctmgr", &words);
        }
    }
}

/// Calls a command of Slurm about a job. A failure is reported and has no other consequence.
fn call_slurm(program: &'static str, words: &[&str]) {
    if let Err(problem) = slurm_job::call_from_hook(program, words) {
        print_warning(&problem.to_string());
    }
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

/// Describes a dry run on Slurm whose study only a node can plan, because this machine has no GPU; `None` for all others.
pub fn unplanned(args: &SweepArgs, definition: &Definition) -> Result<Option<Text>> {
    if !args.dry_run || args.slurm.executor != Some(ExecutorName::Slurm) || args.no_study {
        return Ok(None);
    }
    let base = study_base(args)?;
    let request = request(&args.slurm, &base, true)?;
    let jobs = test_without_gpus(definition, &request)?;
    Ok(jobs.map(|jobs| unplanned_text(definition, &jobs)))
}

/// The folder in which a new study on Slurm is created; an existing study is an error.
fn study_base(args: &SweepArgs) -> Result<PathBuf> {
    let given = args.study.clone();
    let base = given.unwrap_or_else(|| PathBuf::from("studies"));
    if args.study.is_some() && base.join("study.db").exists() {
        return Err(sweetspot_study::StoreError::Exists(base).into());
    }
    std::path::absolute(&base).context("cannot find the current folder")
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
    let base = study_base(args)?;
    let existed = base.exists();
    if !args.dry_run {
        std::fs::create_dir_all(&base)
            .with_context(|| format!("cannot create the folder {}", base.display()))?;
    }
    let criteria = args.criteria.criteria()?;
    let mut display = ProgressDisplay::new(criteria, false);
    let request = request(&args.slurm, &base, args.dry_run)?;
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
