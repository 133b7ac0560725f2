//! The jobs on a GPU.

use bytemuck::Zeroable;
use sweetspot_quantity::{Bytes, Joules};
use sweetspot_sim::Phase;

use super::LiveGpu;
use crate::error::HostError;
use crate::job::{JobId, JobProgress, MAX_JOBS, MAX_PHASES, PHASE_LOG, PhaseRecord, Slot};

impl LiveGpu<'_> {
    /// The jobs on the GPU: process id and memory of each.
    pub fn jobs(&self) -> Vec<(u32, Bytes)> {
        let used = self.record.slots.iter().filter(|slot| slot.pid != 0);
        used.map(|slot| (slot.pid as u32, Bytes::new(slot.memory)))
            .collect()
    }

    /// Whether any job is on the GPU.
    pub fn is_occupied(&self) -> bool {
        self.record.slots.iter().any(|slot| slot.pid != 0)
    }

    /// The memory that all jobs use.
    pub fn memory_used(&self) -> Bytes {
        self.jobs().into_iter().map(|(_, memory)| memory).sum()
    }

    /// Adds a job of the process `pid` that uses this memory.
    pub fn add_job(&mut self, pid: u32, memory: Bytes) -> Result<JobId, HostError> {
        let energy = self.energy().get();
        let free = self.record.slots.iter().position(|slot| slot.pid == 0);
        let index = free.ok_or(HostError::TooManyJobs(MAX_JOBS))?;
        let mut slot = Slot::new(pid, memory, energy);
        // A new job starts with the longest run time of the other jobs; with 0 it would have the cores for itself at
        // first.
        let others = self.record.slots.iter().filter(|slot| slot.pid != 0);
        let most = others.map(|slot| slot.kernel_time).reduce(f64::max);
        slot.kernel_time = most.unwrap_or(0.0);
        slot.mark_seen(self.record.now);
        self.record.slots[index] = slot;
        Ok(JobId { slot: index, pid })
    }

    /// The memory that a job uses.
    pub fn job_memory(&mut self, job: JobId) -> Result<Bytes, HostError> {
        Ok(Bytes::new(self.slot(job)?.memory))
    }

    /// Sets the memory that a job uses.
    pub fn reserve_memory(&mut self, job: JobId, memory: Bytes) -> Result<(), HostError> {
        self.slot(job)?.memory = memory.get();
        Ok(())
    }

    /// The stored state of a job; an error if the job has expired.
    fn slot(&mut self, job: JobId) -> Result<&mut Slot, HostError> {
        let slot = &mut self.record.slots[job.slot];
        if slot.pid == u64::from(job.pid) {
            Ok(slot)
        } else {
            Err(HostError::JobExpired(job.pid))
        }
    }

    /// Lets a job run this many more iterations, which consist of these phases.
    pub fn grant_iterations(
        &mut self,
        job: JobId,
        phases: &[Phase],
        iterations: u64,
    ) -> Result<(), HostError> {
        if phases.len() > MAX_PHASES {
            return Err(HostError::TooManyPhases(phases.len(), MAX_PHASES));
        }
        let now = self.record.now;
        let slot = self.slot(job)?;
        slot.phase_count = phases.len() as u64;
        for (record, phase) in slot.phases.iter_mut().zip(phases) {
            *record = PhaseRecord::new(phase);
        }
        slot.phase = 0;
        slot.ended_phases = 0;
        slot.left = 1.0;
        slot.granted = slot.done + iterations;
        slot.finished_at = 0;
        slot.mark_seen(now);
        Ok(())
    }

    /// Signals that a job's process is alive, and returns the job's progress.
    pub fn poll_job(&mut self, job: JobId) -> Result<JobProgress, HostError> {
        let (now, energy) = (self.record.now, self.energy().get());
        let slot = self.slot(job)?;
        slot.mark_seen(now);
        let is_finished = slot.finished_at > 0 && slot.done == slot.granted;
        let until = if is_finished {
            slot.energy_at_finish
        } else {
            energy
        };
        Ok(JobProgress {
            done: slot.done,
            energy: Joules::new(until - slot.energy_at_start),
            finished_at: is_finished.then_some(slot.finished_at),
        })
    }

    /// The number and the end, in nanoseconds of the monotonic time, of each phase that ended after the first `known`
    /// ones. Phases are counted from 0 since iterations were last granted; of many only the last are remembered.
    pub fn ended_phases(&mut self, job: JobId, known: u64) -> Result<Vec<(u64, u64)>, HostError> {
        let slot = self.slot(job)?;
        let oldest = slot.ended_phases.saturating_sub(PHASE_LOG as u64);
        let ends = known.max(oldest)..slot.ended_phases;
        Ok(ends
            .map(|phase| (phase, slot.phase_ends[phase as usize % PHASE_LOG]))
            .collect())
    }

    /// Removes a job from the GPU.
    pub fn remove_job(&mut self, job: JobId) {
        if let Ok(slot) = self.slot(job) {
            *slot = Slot::zeroed();
        }
    }

    /// Marks the jobs whose process has ended.
    pub(crate) fn mark_ended_jobs(&mut self) {
        for slot in self.record.slots.iter_mut().filter(|slot| slot.pid != 0) {
            if !is_running(slot.pid) {
                slot.mark_ended();
            }
        }
    }
}

/// Whether a process is running. A zombie, which ended but was not waited for, is not.
fn is_running(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        // Without /proc, a job ends only after it was silent for too long.
        return !std::path::Path::new("/proc/self/stat").exists();
    };
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}
