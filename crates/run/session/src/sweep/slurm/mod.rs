//! `sweep` on Slurm: the runs of a study are jobs, which leave their results in the study's folder; the sweep itself only
//! submits, watches and gathers.

mod arrays;
mod commands;
mod error;
mod executor;
mod ledger;
mod options;
mod pinned;
mod probe;
mod queue;
mod script;
mod submit;
mod tracker;
mod unplanned;
mod wait;

pub use commands::call_from_hook;
pub use error::SlurmError;
pub use options::{Placement, SlurmOptions};
pub use probe::answer_probe;
pub use tracker::QueueSummary;
pub use unplanned::{UnplannedJobs, test_without_gpus};

use std::path::{Path, PathBuf};
use std::time::Duration;

use sweetspot_study::{Definition, Outline};
use sweetspot_virtual_time::SimulatedSweep;

use super::{Backend, Sweep};
use crate::SessionError;
use crate::observer::Observer;
use commands::{Scheduler, SlurmCommands};
use ledger::Ledger;
use probe::probe;
use script::array_job;

/// How long Slurm's commands may fail before the sweep gives up: a controller may be restarted.
const MAX_OUTAGE: Duration = Duration::from_secs(600);

/// The time after which a controller that did not respond is asked again.
const OUTAGE_POLL: Duration = Duration::from_secs(10);

/// A study whose runs are made by jobs of Slurm.
pub struct SlurmSweep {
    options: SlurmOptions,
    /// The program that jobs run.
    program: PathBuf,
    /// The node on which all runs are made; `None` unless they are pinned, and if a resumed study was not pinned before.
    node: Option<String>,
    /// Whether an interrupted sweep cancels its jobs.
    cancels: bool,
    limits: queue::Limits,
}

/// How a study is started on Slurm.
pub struct SlurmRequest<'a> {
    /// The user's options.
    pub options: SlurmOptions,
    /// The program that jobs run.
    pub program: PathBuf,
    /// A folder of the file system on which the study will be.
    pub base: &'a Path,
    /// Whether an interrupted sweep cancels its jobs.
    pub cancels: bool,
    /// Whether the study is only planned: no job is submitted.
    pub dry_run: bool,
}

/// The jobs of a study, as far as they are known before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobCounts {
    /// The number of jobs.
    pub jobs: usize,
    /// The number of arrays in which they are submitted.
    pub arrays: usize,
    /// The number of runs of one job.
    pub runs_per_job: usize,
}

impl Sweep {
    /// Plans a new study on Slurm. A study of a command is planned by a job, with the GPUs of its node; the job also checks
    /// that the nodes see the study's folder.
    pub fn on_slurm(
        definition: &Definition,
        request: SlurmRequest<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Self, SessionError> {
        definition.check()?;
        let words = request.options.sbatch_words()?;
        let limits = SlurmCommands::default().limits()?;
        let is_simulated = definition.command.is_none();
        let mut planned = match is_simulated || request.dry_run {
            true => Some(match is_simulated && definition.simulate.is_some() {
                true => {
                    let prepared = SimulatedSweep::prepare(definition)?;
                    (prepared.outline, prepared.prior, prepared.notes)
                }
                false => {
                    let sweep = Self::prepare(definition)?;
                    (sweep.outline, sweep.prior, sweep.notes)
                }
            }),
            false => None,
        };
        let mut node = None;
        if !request.dry_run {
            let asked = planned.is_none().then_some(definition);
            let probed = probe(request.base, asked, &request.program, &words, observer)?;
            node = (request.options.placement() == Placement::Pinned).then_some(probed.node);
            planned = planned.or(probed.outline.map(|outline| {
                let prior = sweetspot_study::PriorStudies::default();
                (outline, prior, probed.notes)
            }));
        }
        let (outline, prior, notes) = planned.ok_or(super::SweepError::NothingToRun)?;
        let slurm = SlurmSweep {
            options: request.options,
            program: request.program,
            node,
            cancels: request.cancels,
            limits,
        };
        if request.dry_run {
            slurm.test(&outline, request.base, &words)?;
        }
        Ok(Self {
            outline,
            prior,
            notes,
            backend: Backend::Slurm(slurm),
        })
    }

    /// Prepares to resume a study on Slurm. Options that are not given are those with which it was started.
    pub fn resume_on_slurm(
        outline: &Outline,
        folder: &Path,
        request: SlurmRequest<'_>,
    ) -> Result<Self, SessionError> {
        let ledger = Ledger::new(folder, &outline.identity());
        let (earlier, node) = ledger.executor()?.unwrap_or_default();
        let options = request.options.or(earlier);
        options.sbatch_words()?;
        let limits = SlurmCommands::default().limits()?;
        let node = node.filter(|_| options.placement() == Placement::Pinned);
        Ok(Self {
            outline: outline.clone(),
            prior: sweetspot_study::PriorStudies::default(),
            notes: Vec::new(),
            backend: Backend::Slurm(SlurmSweep {
                options,
                program: request.program,
                node,
                cancels: request.cancels,
                limits,
            }),
        })
    }
}

/// Whether a study was started on Slurm.
pub fn was_started_on_slurm(outline: &Outline, folder: &Path) -> Result<bool, SlurmError> {
    Ok(Ledger::new(folder, &outline.identity())
        .executor()?
        .is_some())
}

/// Whether jobs were submitted for a study: their results, and what they have printed, are in its folder.
pub fn has_submitted_jobs(outline: &Outline, folder: &Path) -> bool {
    let arrays = Ledger::new(folder, &outline.identity()).arrays();
    arrays.map_or(true, |arrays| !arrays.is_empty())
}

/// Refuses to make runs here while jobs of the study are in the queue.
pub fn reject_queued_jobs(outline: &Outline, folder: &Path) -> Result<(), SlurmError> {
    let arrays = Ledger::new(folder, &outline.identity()).arrays()?;
    let names: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
    let queue = match SlurmCommands::default().queue(&names) {
        // Without Slurm nobody knows, and nothing can be lost: the first result of a run is kept.
        Err(SlurmError::NotInstalled(_)) => return Ok(()),
        queue => queue?,
    };
    let exists = |task: &&queue::QueuedTask| !matches!(task.state, queue::JobState::Ended(_));
    match queue.iter().filter(exists).count() {
        0 => Ok(()),
        jobs => Err(SlurmError::JobsInQueue {
            jobs,
            name: names.join(","),
        }),
    }
}

impl SlurmSweep {
    /// The jobs for this many runs.
    pub fn jobs(&self, outline: &Outline, runs: usize) -> JobCounts {
        let is_simulated = outline.definition.command.is_none();
        let runs_per_job = self.options.runs_per_job(runs, is_simulated);
        let jobs = runs.div_ceil(runs_per_job);
        JobCounts {
            jobs,
            arrays: jobs.div_ceil(self.limits.array_size.max(1)),
            runs_per_job,
        }
    }

    /// Makes the arrays of the whole plan and asks Slurm whether it would accept the first, without submitting anything.
    fn test(&self, outline: &Outline, base: &Path, words: &[String]) -> Result<(), SessionError> {
        let points = outline.empty_points(outline.subject.energy_of);
        let runs: Vec<u64> = executor::wanted(outline, &points);
        let per_job = self.jobs(outline, runs.len()).runs_per_job;
        let mut arrays = arrays::divide(&runs, per_job, self.limits.array_size);
        if arrays.is_empty() {
            return Ok(());
        }
        let ledger = Ledger::new(base, &outline.identity());
        let array = ledger.planned(1, arrays.swap_remove(0));
        let max = self.options.max_jobs.map(std::num::NonZeroUsize::get);
        let job = array_job(base, &ledger, &array, &self.program, max, words);
        Ok(SlurmCommands::default().test(&job)?)
    }
}

/// The node and the job of Slurm in which this process runs; `None` if it runs in none.
pub fn current_job() -> Option<(String, String)> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let job = variable("SLURM_JOB_ID")?;
    let job = match (
        variable("SLURM_ARRAY_JOB_ID"),
        variable("SLURM_ARRAY_TASK_ID"),
    ) {
        (Some(array), Some(index)) => format!("{array}_{index}"),
        _ => job,
    };
    let host = || {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    };
    Some((variable("SLURMD_NODENAME").unwrap_or_else(host), job))
}

/// What to tell the user about jobs that wait, when that is due: at once if Slurm's reason will not pass by itself, else
/// after a while; and again only when the reason changes.
fn wait_reason(reason: &str, waited: Duration, told: &mut String) -> Option<String> {
    /// How long jobs may wait before the user is told why.
    const USUAL_WAIT: Duration = Duration::from_secs(10);
    /// Words of reasons that pass by themselves.
    const PASSING: [&str; 6] = [
        "Resources",
        "Priority",
        "None",
        "BeginTime",
        "JobArrayTaskLimit",
        "Prolog",
    ];
    let is_passing = reason.is_empty() || PASSING.contains(&reason);
    if (is_passing && waited < USUAL_WAIT) || told == reason {
        return None;
    }
    reason.clone_into(told);
    let reason = match reason {
        "" | "None" => "Slurm gives no reason yet",
        reason => reason,
    };
    Some(match is_passing {
        true => format!("Slurm's reason is {reason}"),
        false => format!(
            "Slurm's reason is {reason}; it may wait for ever: `scontrol show job` tells more"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_does_not_pass_is_told_at_once_and_only_once() {
        let mut told = String::new();
        let second = Duration::from_secs(1);
        assert_eq!(wait_reason("Resources", second, &mut told), None);
        let text = wait_reason("PartitionTimeLimit", second, &mut told).unwrap();
        assert!(text.contains("PartitionTimeLimit") && text.contains("for ever"));
        assert_eq!(
            wait_reason("PartitionTimeLimit", 60 * second, &mut told),
            None
        );
        let text = wait_reason("Resources", 60 * second, &mut told).unwrap();
        assert_eq!(text, "Slurm's reason is Resources");
    }
}
