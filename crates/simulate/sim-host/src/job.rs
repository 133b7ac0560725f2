//! The stored state of a job on a simulated GPU.

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Bytes, Joules, Ratio, Seconds};
use sweetspot_sim::{Load, Phase};

/// The maximum number of jobs on one GPU.
pub(crate) const MAX_JOBS: usize = 16;
/// The maximum number of phases of an iteration.
pub(crate) const MAX_PHASES: usize = 16;
/// The number of phases whose ends are remembered until the job asks for them.
pub(crate) const PHASE_LOG: usize = 128;

/// Identifies a job on a simulated GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId {
    pub(crate) slot: usize,
    pub(crate) pid: u32,
}

/// The progress of a job on a simulated GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobProgress {
    /// The number of workload iterations that are finished.
    pub done: u64,
    /// The energy that the GPU drew from the job's start to the end of its granted iterations, or until now.
    pub energy: Joules,
    /// The monotonic time, in nanoseconds, at which all granted iterations were finished; `None` before that.
    pub finished_at: Option<u64>,
}

/// The stored code for a phase that runs kernels.
const KERNELS: u64 = 0;
/// The stored code for a phase in which the GPU only waits.
const WAITING: u64 = 1;
/// The stored code for a phase that keeps the GPU busy for a fixed time.
const EXCHANGE: u64 = 2;

/// A phase of an iteration, in the form in which it is stored.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PhaseRecord {
    kind: u64,
    host: f64,
    launch: f64,
    core: f64,
    memory: f64,
    switching: f64,
    memory_activity: f64,
}

impl PhaseRecord {
    /// Converts a phase to its stored form.
    pub fn new(phase: &Phase) -> Self {
        let mut record = Self::zeroed();
        match phase.load {
            Load::None => record.kind = WAITING,
            Load::Waiting { host } => {
                record.kind = WAITING;
                record.host = host.get();
            }
            Load::Exchange {
                time,
                switching,
                memory_activity,
            } => {
                record.kind = EXCHANGE;
                record.host = time.get();
                record.switching = switching.get();
                record.memory_activity = memory_activity.get();
            }
            Load::Kernels {
                launch,
                core,
                memory,
                switching,
                memory_activity,
            } => {
                record.kind = KERNELS;
                record.launch = launch.get();
                record.core = core.get();
                record.memory = memory.get();
                record.switching = switching.get();
                record.memory_activity = memory_activity.get();
            }
        }
        record
    }

    /// The length of the phase in seconds with a host of this speed, if the GPU only waits in it; `None` for other
    /// phases.
    pub fn waiting_time(&self, host_speed: f64) -> Option<f64> {
        (self.kind == WAITING).then_some(self.host / host_speed)
    }

    /// The load of a phase that keeps the GPU busy, with a host of this speed.
    pub fn load(&self, host_speed: f64) -> Load {
        if self.kind == EXCHANGE {
            return Load::Exchange {
                time: Seconds::new(self.host),
                switching: Ratio::new(self.switching),
                memory_activity: Ratio::new(self.memory_activity),
            };
        }
        Load::Kernels {
            launch: Seconds::new(self.launch / host_speed),
            core: Seconds::new(self.core),
            memory: Seconds::new(self.memory),
            switching: Ratio::new(self.switching),
            memory_activity: Ratio::new(self.memory_activity),
        }
    }
}

/// A job of a simulated GPU, or a free place for one, in the form in which it is stored.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    /// The id of the job's process; 0 if there is no job.
    pub pid: u64,
    pub memory: f64,
    /// The monotonic time, in nanoseconds, at which the job's process last accessed the GPU.
    pub seen_at: u64,
    /// The monotonic time, in nanoseconds, at which the job expires.
    pub alive_until: u64,
    pub phases: [PhaseRecord; MAX_PHASES],
    pub phase_count: u64,
    pub phase: u64,
    pub left: f64,
    pub granted: u64,
    pub done: u64,
    pub finished_at: u64,
    pub energy_at_start: f64,
    pub energy_at_finish: f64,
    pub kernel_time: f64,
    /// The number of phases that have ended since iterations were last granted.
    pub ended_phases: u64,
    /// The monotonic times, in nanoseconds, at which the last phases ended; phase n is at n modulo the length.
    pub phase_ends: [u64; PHASE_LOG],
}

impl Slot {
    /// Creates a job without iterations; `energy` is what the GPU has drawn so far, in joules.
    pub fn new(pid: u32, memory: Bytes, energy: f64) -> Self {
        Self {
            pid: u64::from(pid),
            memory: memory.get(),
            left: 1.0,
            energy_at_start: energy,
            energy_at_finish: energy,
            ..Self::zeroed()
        }
    }

    /// Marks the job as alive. Its process may then be silent for 20 s, because the computer may be busy.
    pub fn mark_seen(&mut self, now: u64) {
        /// The time without access after which a job expires, in nanoseconds.
        const MAX_SILENCE: u64 = 20_000_000_000;
        self.seen_at = now;
        self.alive_until = now + MAX_SILENCE;
    }

    /// Marks the job's process as ended: its memory is free at once, as with a real driver, and the job expires soon after
    /// it was last seen.
    pub fn mark_ended(&mut self) {
        /// The time after which the job of an ended process expires, in nanoseconds.
        const GRACE_PERIOD: u64 = 200_000_000;
        self.alive_until = self.alive_until.min(self.seen_at + GRACE_PERIOD);
        self.memory = 0.0;
    }

    /// Whether the job has granted iterations that are not finished.
    pub fn has_work(&self) -> bool {
        self.pid != 0 && self.done < self.granted && self.phase_count > 0
    }

    /// The phase that the job runs at present.
    pub fn current(&self) -> &PhaseRecord {
        &self.phases[(self.phase as usize).min(MAX_PHASES - 1)]
    }

    /// Advances the current phase by a share of its work. If the phase is then finished, the next one starts.
    pub fn progress(&mut self, share: f64, now: u64, energy: f64) {
        self.left -= share;
        if self.left > 1e-12 {
            return;
        }
        self.left = 1.0;
        self.phase_ends[self.ended_phases as usize % PHASE_LOG] = now;
        self.ended_phases += 1;
        self.phase += 1;
        if self.phase == self.phase_count {
            self.phase = 0;
            self.done += 1;
            if self.done == self.granted {
                self.finished_at = now;
                self.energy_at_finish = energy;
            }
        }
    }
}
