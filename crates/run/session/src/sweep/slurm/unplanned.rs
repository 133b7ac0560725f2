//! A dry run on a machine that has no GPU, as the one on which users of a cluster type often has none: the study is
//! planned by its first job, and until then only its definition is known.

use sweetspot_device::HostError;
use sweetspot_study::{Definition, written_configurations};

use super::commands::{Scheduler, SlurmCommands};
use super::ledger::Ledger;
use super::script::array_job;
use super::{JobCounts, SlurmRequest};
use crate::SessionError;
use crate::host::{DevicesError, all_gpus, open_host};

/// What is known about the jobs of a study before a node has planned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnplannedJobs {
    /// Why it cannot be planned on this machine.
    pub reason: String,
    /// The most configurations, without the reference; `None` if the GPUs of the node decide.
    pub configurations: Option<usize>,
    /// The most runs, and their jobs; `None` if the GPUs of the node decide.
    pub most: Option<(usize, JobCounts)>,
}

/// Checks a study of a command on a machine without GPUs, and asks Slurm whether it would accept its jobs; nothing is
/// submitted. `None` if the study can be planned here.
pub fn test_without_gpus(
    definition: &Definition,
    request: &SlurmRequest<'_>,
) -> Result<Option<UnplannedJobs>, SessionError> {
    definition.check()?;
    let is_simulated = definition.simulate.is_some() || definition.node.is_some();
    if definition.command.is_none() || is_simulated {
        return Ok(None);
    }
    let found = open_host().map_err(SessionError::from);
    let reason = match found.and_then(|host| all_gpus(host.as_ref())) {
        Err(SessionError::Devices(
            problem @ (DevicesError::NoGpu | DevicesError::Host(HostError::Unavailable(_))),
        )) => problem.to_string(),
        _ => return Ok(None),
    };
    let configurations = written_configurations(definition)?;
    let words = request.options.sbatch_words()?;
    let mut slurm = SlurmCommands::default();
    let limits = slurm.limits()?;
    let per_job = request.options.runs_per_job(1, false);
    let most = configurations.map(|count| {
        // The reference may be one of the configurations.
        let runs = (count + 1).saturating_mul(definition.most_repeats() as usize);
        let runs = definition
            .evaluations
            .map_or(runs, |most| runs.min(most as usize));
        let jobs = runs.div_ceil(per_job);
        let counts = JobCounts {
            jobs,
            arrays: jobs.div_ceil(limits.array_size.max(1)),
            runs_per_job: per_job,
        };
        (runs, counts)
    });
    let jobs = most.map_or(1, |(_, counts)| counts.jobs.min(limits.array_size));
    let ledger = Ledger::new(request.base, "dry-run");
    let array = ledger.planned(1, vec![vec![0]; jobs.max(1)]);
    let max = request.options.max_jobs.map(std::num::NonZeroUsize::get);
    let job = array_job(request.base, &ledger, &array, &request.program, max, &words);
    slurm.test(&job)?;
    Ok(Some(UnplannedJobs {
        reason,
        configurations,
        most,
    }))
}
