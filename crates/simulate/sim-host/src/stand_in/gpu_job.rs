//! A job of `sim-workload` on a simulated GPU.

use std::time::{Duration, Instant};

use sweetspot_quantity::Bytes;
use sweetspot_sim::Phase;

use crate::{HostError, JobId, JobProgress, SharedGpu};

/// A job on a GPU; dropping it removes the job from the GPU.
pub struct GpuJob<'a> {
    pub gpu: &'a SharedGpu,
    pub id: JobId,
}

impl<'a> GpuJob<'a> {
    /// Adds a job that uses this memory. The inner error is the memory that is free, if that is less.
    pub fn new(gpu: &'a SharedGpu, memory: Bytes) -> Result<Result<Self, Bytes>, HostError> {
        let id = gpu.with_gpu(|live| {
            let free = gpu.profile().memory.capacity - live.memory_used();
            if memory > free {
                return Ok(Err(free));
            }
            live.add_job(std::process::id(), memory).map(Ok)
        })??;
        Ok(id.map(|id| Self { gpu, id }))
    }

    /// Lets the job run more iterations of these phases. Returns their start: the present monotonic time in nanoseconds.
    pub fn grant(&self, phases: &[Phase], iterations: u64) -> Result<u64, HostError> {
        self.gpu.with_gpu(|live| {
            live.grant_iterations(self.id, phases, iterations)?;
            Ok(live.now())
        })?
    }

    /// The present monotonic time in nanoseconds, and the progress of the job.
    pub fn poll(&self) -> Result<(u64, JobProgress), HostError> {
        self.gpu
            .with_gpu(|live| Ok((live.now(), live.poll_job(self.id)?)))?
    }
}

impl Drop for GpuJob<'_> {
    fn drop(&mut self) {
        let _ = self.gpu.with_gpu(|live| live.remove_job(self.id));
    }
}

/// Waits until all granted iterations are done, and polls often once their end is near, because others wait for it.
/// Returns when the last one was done.
pub fn await_iterations(
    near: Instant,
    poll: impl Fn() -> Result<(u64, JobProgress), HostError>,
) -> Result<(u64, JobProgress), HostError> {
    std::thread::sleep(near.saturating_duration_since(Instant::now()));
    loop {
        let (_, progress) = poll()?;
        if let Some(at) = progress.finished_at {
            return Ok((at, progress));
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
