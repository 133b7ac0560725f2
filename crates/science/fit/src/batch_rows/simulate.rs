//! The run of a measured row, simulated.

use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{Workload, WorkloadProfile};
use sweetspot_study::{Configuration, RunEnding};
use sweetspot_virtual_time::SimulatedJob;

use super::{FitError, FitRequest, MeasuredRow};

/// Simulates the run of a row without noise, and returns the time of an iteration and the mean power.
pub fn simulate(
    request: &FitRequest,
    profile: &WorkloadProfile,
    row: &MeasuredRow,
) -> Result<(Seconds, Watts), FitError> {
    let error = |reason: String| FitError::Row {
        batch: row.batch,
        reason,
    };
    let workload = Workload {
        name: request.network.clone(),
        profile: profile.clone(),
    };
    let gpus = vec![(request.gpu_name.clone(), request.gpu.clone())];
    let mut job = SimulatedJob::from_profiles(gpus, None, workload)
        .map_err(|problem| error(problem.to_string()))?;
    job.items = row.batch.saturating_mul(row.iterations);
    let configuration = Configuration::on(1)
        .with_settings(row.settings)
        .with_batch(row.batch);
    match job.run(&configuration, None) {
        Ok(RunEnding::Done(run)) => {
            let energy = run.energies.job_gpus.map(|energy| energy.value / run.time);
            let power =
                energy.ok_or_else(|| error("the simulated run has no energy".to_owned()))?;
            Ok((run.time / row.iterations as f64, power))
        }
        Ok(RunEnding::Failed(failure)) => Err(error(failure.reason)),
        Err(problem) => Err(error(problem.to_string())),
    }
}
