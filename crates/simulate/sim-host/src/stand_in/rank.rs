//! A rank of `sim-workload` on its simulated GPU.

use std::time::{Duration, Instant};

use sweetspot_quantity::Bytes;
use sweetspot_sim::{Job, JobError, JobRequest, Phase, Variation, Workload};

use super::gpu_job::{GpuJob, await_iterations};
use super::marks::{PhaseMarks, name_phases};
use super::{Amount, StandInError, StandInRequest};
use crate::{HostError, JobProgress, SharedGpu};

/// A rank of `sim-workload` on its GPU.
pub struct Rank<'a> {
    pub on_gpu: GpuJob<'a>,
    pub job: Job,
    /// The marks of the rank's phases on the shared-memory link.
    pub marks: PhaseMarks,
}

impl<'a> Rank<'a> {
    /// Adds a rank to a GPU. It is an error if the GPU has too little free memory.
    pub fn new(
        gpu: &'a SharedGpu,
        workload: &Workload,
        request: &StandInRequest,
        marks: PhaseMarks,
    ) -> Result<Self, StandInError> {
        let profile = gpu.profile();
        let work = workload.work_on(gpu.name(), profile)?;
        let whole = JobRequest {
            batch: request.batch,
            items: Some(match request.amount {
                Amount::Items(items) => items,
                _ => work.items(),
            }),
        };
        let share = whole.share(&workload.profile, request.ranks);
        let job = Job::new(&workload.profile, &work, profile, share, Variation::NONE)
            .map_err(|problem| workload.cannot_run(problem))?;
        let memory = &workload.profile.memory;
        let need = memory.fixed + memory.per_item * job.batch as f64;
        let on_gpu = GpuJob::new(gpu, need)?
            .map_err(|free| workload.cannot_run(out_of_memory(gpu, job.batch, need, free)))?;
        Ok(Self { on_gpu, job, marks })
    }

    /// Lets the rank run more iterations of these phases. Returns their start: the present monotonic time in
    /// nanoseconds.
    pub fn grant_iterations(&self, phases: &[Phase], iterations: u64) -> Result<u64, HostError> {
        if !self.marks.is_read() {
            return self.on_gpu.grant(phases, iterations);
        }
        let named = name_phases(&self.job, phases);
        let phases: Vec<Phase> = named.iter().map(|one| one.phase.clone()).collect();
        let now = self.on_gpu.grant(&phases, iterations)?;
        let names = named.into_iter().map(|one| one.name);
        self.marks.granted(names.collect(), now);
        Ok(now)
    }

    /// The present monotonic time in nanoseconds, and the progress of the rank. Marks the phases of finished
    /// iterations.
    pub fn poll(&self) -> Result<(u64, JobProgress), HostError> {
        let known = self.marks.known();
        let job = &self.on_gpu;
        let (now, progress, ends) = job.gpu.with_gpu(|live| {
            let progress = live.poll_job(job.id)?;
            let ends = match self.marks.is_read() {
                true => live.ended_phases(job.id, known)?,
                false => Vec::new(),
            };
            Ok::<_, HostError>((live.now(), progress, ends))
        })??;
        self.marks.ended(&ends);
        Ok((now, progress))
    }

    /// Waits until all granted iterations are done, and returns when the last one was done.
    pub fn finish(
        &self,
        mut on_progress: impl FnMut(u64) -> Result<(), StandInError>,
    ) -> Result<(u64, JobProgress), StandInError> {
        let (mut last, mut before) = self.poll()?;
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(at) = before.finished_at {
                return Ok((at, before));
            }
            std::thread::sleep(pause);
            let (now, progress) = self.poll()?;
            on_progress(progress.done)?;
            // The poll interval is short if iterations are short or the end may be near.
            let each = (now - last) / (progress.done - before.done).max(1);
            pause = Duration::from_nanos((each / 8).clamp(500_000, 20_000_000));
            if progress.done > before.done {
                (last, before) = (now, progress);
            } else {
                before.finished_at = progress.finished_at;
                before.energy = progress.energy;
            }
        }
    }

    /// Waits for a single iteration, and polls often once its end is near, because other ranks wait for it.
    pub fn await_iteration(&self, near: Instant) -> Result<(u64, JobProgress), HostError> {
        await_iterations(near, || self.poll())
    }
}

/// The error that a batch needs more memory than the GPU has free.
pub fn out_of_memory(gpu: &SharedGpu, batch: u64, need: Bytes, free: Bytes) -> JobError {
    JobError::OutOfMemory {
        gpu: gpu.profile().name.clone(),
        batch,
        need,
        capacity: free,
        largest: 0,
    }
}
