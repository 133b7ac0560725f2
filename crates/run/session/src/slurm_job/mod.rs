//! Caps for jobs of Slurm: what the site's Prolog and Epilog do on a node, as root.
//!
//! Promises: what a job asks for is set on its own GPUs only, by the service and within its policy, under a lease that
//! belongs to the job; it is restored by the epilog, or by the next hook on the node if the epilog could not. Nothing that
//! goes wrong here makes a hook fail: Slurm would take the node out of service.

mod as_user;
mod comment;
mod environment;
mod gpus;
mod liveness;
mod record;

pub use crate::sweep::call_from_hook;
pub use as_user::{AsUser, write_user_record};
pub use environment::JobEnvironment;
pub use record::{JobGpu, JobOutcome, JobProgress, JobRecord, JobRecords};

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use sweetspot_device::DeviceId;
use sweetspot_guard::{Job, LeaseKind, Owner, RemoteWriter, SettingsWriter};
use sweetspot_service::policy::SlurmPolicy;

use crate::SessionError;
use comment::{JobRequest, parse_comment};
use gpus::{FoundGpus, find_gpus};
use liveness::is_alive;
use record::{JOB_SCHEMA, settings_text};

/// What a hook needs besides the job.
pub struct HookContext<'a> {
    /// The socket of the service.
    pub socket: &'a Path,
    /// What the policy says about jobs.
    pub policy: &'a SlurmPolicy,
    /// Runs this program as the user of the job.
    pub as_user: &'a AsUser,
}

/// What the caller has to do after a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct HookResult {
    /// The record of the job; `None` if nothing is recorded for it.
    pub record: Option<JobRecord>,
    /// Messages for the log of slurmd.
    pub messages: Vec<String>,
    /// Whether the policy wants the job to be cancelled.
    pub cancels_job: bool,
}

impl HookResult {
    /// The result for a job that is none of this program's business.
    const NOTHING: Self = Self {
        record: None,
        messages: Vec::new(),
        cancels_job: false,
    };
}

/// Prepares the GPUs of a job before it starts.
pub fn prolog(job: &JobEnvironment, context: &HookContext<'_>) -> Result<HookResult, SessionError> {
    let request = parse_comment(&job.comment);
    let asks_nothing = matches!(request, Ok(None));
    let records = open_records(job, context)?;
    let mut messages = release_left(&records, job, context);
    // Slurm starts a job again after a crash of its node, and its first start then had no epilog.
    let earlier = records.read(job.id);
    messages.extend(earlier.and_then(|left| release_later(left, &records, context)));
    let unrestored = records.read(job.id).map(|left| left.problems);
    if asks_nothing && (job.gpus.is_empty() || !context.policy.all_jobs) {
        return Ok(HookResult {
            messages,
            ..HookResult::NOTHING
        });
    }
    let FoundGpus { gpus, problem } = find_gpus(&job.gpus);
    let mut record = JobRecord {
        schema: JOB_SCHEMA.to_owned(),
        job: job.id,
        uid: job.uid,
        node: job.node.clone(),
        restarts: job
            .restarts
            .unwrap_or_else(|| records.earlier_starts(job.id)),
        progress: JobProgress::Running,
        outcome: JobOutcome::Unfinished,
        gpus,
        began_unix_s: now(),
        ended_unix_s: None,
        problems: unrestored.unwrap_or_default(),
    };
    // The record is on disk before anything is set, so that every later hook on the node knows of the lease.
    write(&records, &record)?;
    record.outcome = match (request, problem) {
        (Ok(None), _) => JobOutcome::NothingAsked,
        (Err(refusal), _) => JobOutcome::Refused(refusal.to_string()),
        (Ok(Some(_)), Some(problem)) => JobOutcome::Refused(problem),
        (Ok(Some(_)), None) if record.gpus.is_empty() => {
            JobOutcome::Refused("the job has no GPU on this node".to_owned())
        }
        (Ok(Some(request)), None) => {
            let (outcome, problem) = apply(&request, job, &record.gpus, context);
            record.problems.extend(problem);
            outcome
        }
    };
    write(&records, &record)?;
    let mut cancels_job = false;
    match &record.outcome {
        JobOutcome::NothingAsked | JobOutcome::Unfinished => {}
        JobOutcome::Applied(settings) => records.log("applied", &record, &settings_text(settings)),
        JobOutcome::Refused(reason) => {
            records.log("refused", &record, reason);
            messages.push(format!("job {}: refused: {reason}", job.id));
            cancels_job = context.policy.cancels_refused;
        }
    }
    Ok(HookResult {
        record: Some(record),
        messages,
        cancels_job,
    })
}

/// Restores the GPUs of a job after its end, and records their energy.
pub fn epilog(job: &JobEnvironment, context: &HookContext<'_>) -> Result<HookResult, SessionError> {
    let records = open_records(job, context)?;
    let mut messages = release_left(&records, job, context);
    let Some(mut record) = records.read(job.id) else {
        return Ok(HookResult {
            messages,
            ..HookResult::NOTHING
        });
    };
    let indices: Vec<u32> = record.gpus.iter().map(|gpu| gpu.index).collect();
    let gpus = find_gpus(&indices).gpus;
    for gpu in &mut record.gpus {
        let end = gpus.iter().find(|found| found.uuid == gpu.uuid);
        let end = end.and_then(|found| found.counter_at_start_j);
        // A counter that fell has wrapped around or was reset: the energy is then unknown.
        let energy = gpu
            .counter_at_start_j
            .zip(end)
            .map(|(start, end)| end - start);
        gpu.energy_j = energy.filter(|energy| *energy >= 0.0);
    }
    record.ended_unix_s = Some(now());
    release(&mut record, context);
    write(&records, &record)?;
    match record.problems.is_empty() {
        true => records.log("restored", &record, &record.summary()),
        false => {
            let problems = record.problems.join("; ");
            records.log("not-restored", &record, &problems);
            messages.push(format!("job {}: not restored: {problems}", job.id));
        }
    }
    Ok(HookResult {
        record: Some(record),
        messages,
        cancels_job: false,
    })
}

/// Opens the folder with the records of this node.
fn open_records(
    job: &JobEnvironment,
    context: &HookContext<'_>,
) -> Result<JobRecords, SessionError> {
    JobRecords::open(&context.policy.folder, &job.node).map_err(SessionError::system(
        "cannot open the folder with the records of jobs",
    ))
}

/// Writes the record of a job.
fn write(records: &JobRecords, record: &JobRecord) -> Result<(), SessionError> {
    records
        .write(record)
        .map_err(SessionError::system("cannot write the record of a job"))
}

/// The scheduler's name of a job, by which the service knows its leases.
fn lease_name(job: u64) -> String {
    format!("slurm-{job}")
}

/// A connection to the service for a job.
fn writer(job: u64, uid: u32, context: &HookContext<'_>) -> RemoteWriter {
    let name = lease_name(job);
    RemoteWriter::for_job(context.socket, Job { name, uid })
}

/// Ends the leases of a job, and takes note of what could not be restored.
fn release(record: &mut JobRecord, context: &HookContext<'_>) {
    // A prolog that was killed may have set something before it wrote that down.
    let is_set = matches!(
        record.outcome,
        JobOutcome::Applied(_) | JobOutcome::Unfinished
    );
    let may_be_set = is_set || !record.problems.is_empty();
    record.problems.clear();
    record.progress = JobProgress::Ended;
    if !may_be_set {
        return;
    }
    match writer(record.job, record.uid, context).release_job() {
        Ok(problems) => record.problems = problems.iter().map(ToString::to_string).collect(),
        Err(refusal) => {
            record.problems.push(refusal.to_string());
            record.progress = JobProgress::NotRestored;
        }
    }
}

/// Ends what earlier jobs have left: those whose epilog could not reach the service, and those whose GPUs Slurm has given
/// to this job and that run no more (their epilog did not run, as after a crash).
fn release_left(
    records: &JobRecords,
    job: &JobEnvironment,
    context: &HookContext<'_>,
) -> Vec<String> {
    let mut messages = Vec::new();
    for left in records.open_jobs() {
        let has_its_gpus = || left.gpus.iter().any(|gpu| job.gpus.contains(&gpu.index));
        let is_over = left.job != job.id
            && (left.progress == JobProgress::NotRestored
                || has_its_gpus() && !is_alive(left.job, &job.node));
        if is_over {
            messages.extend(release_later(left, records, context));
        }
    }
    messages
}

/// Ends the leases of a job that is over, and returns a message if all is restored.
fn release_later(
    mut left: JobRecord,
    records: &JobRecords,
    context: &HookContext<'_>,
) -> Option<String> {
    left.ended_unix_s.get_or_insert_with(now);
    release(&mut left, context);
    if records.write(&left).is_err() || left.progress != JobProgress::Ended {
        return None;
    }
    records.log("restored-later", &left, &left.summary());
    Some(format!("job {}: what it left set is restored", left.job))
}

/// Sets what a job asks for on all its GPUs, or on none. The second value says why it is unknown whether something is set:
/// a service that does not respond may still do later what it was asked.
fn apply(
    request: &JobRequest,
    job: &JobEnvironment,
    gpus: &[JobGpu],
    context: &HookContext<'_>,
) -> (JobOutcome, Option<String>) {
    let settings = match request {
        JobRequest::Settings(settings) => *settings,
        JobRequest::Objective {
            objective,
            workload,
        } => match as_user::find_choice(context, job, objective, workload.as_deref(), gpus) {
            Ok(settings) => settings,
            Err(reason) => return (JobOutcome::Refused(reason), None),
        },
    };
    let mut writer = writer(job.id, job.uid, context);
    let devices: Vec<DeviceId> = gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    let owner = Owner::job(lease_name(job.id), job.uid);
    let applied = writer
        .lease(&devices, &owner, LeaseKind::Ceiling)
        .and_then(|_| {
            devices
                .iter()
                .try_for_each(|device| writer.apply(device, &settings).map(drop))
        });
    let refusal = match applied {
        Ok(()) => return (JobOutcome::Applied(settings), None),
        Err(refusal) => refusal,
    };
    let mut reason = refusal.to_string();
    let unknown = match writer.release_job() {
        Ok(problems) => {
            problems
                .iter()
                .for_each(|problem| reason += &format!("; {problem}"));
            None
        }
        Err(refusal) => writer.was_reached().then(|| refusal.to_string()),
    };
    (JobOutcome::Refused(reason), unknown)
}

/// The time in seconds since 1970.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
