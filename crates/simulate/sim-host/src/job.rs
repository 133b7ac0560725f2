//! A program's place on a GPU.

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Bytes, Joules, Ratio, Seconds};
use sweetspot_sim::{Load, Phase};

/// Programs on one GPU at most.
pub(crate) const SLOTS: usize = 16;
/// Phases of an iteration at most.
pub(crate) const PHASES: usize = 12;

/// A program's place on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobId {
    pub(crate) place: usize,
    pub(crate) pid: u32,
}

/// How far a program has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobProgress {
    /// Iterations done.
    pub done: u64,
    /// Of the GPU since the program came, up to its last finished iteration where none is under way.
    pub energy: Joules,
    /// Nanoseconds of monotonic time at which all that was granted was done, if it is.
    pub finished_at: Option<u64>,
}

/// Marks a phase that keeps the GPU busy for a set time.
const EXCHANGES: u64 = 2;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PhaseRecord {
    waits: u64,
    host: f64,
    launch: f64,
    core: f64,
    memory: f64,
    switching: f64,
    memory_activity: f64,
}

impl PhaseRecord {
    pub fn new(phase: &Phase) -> Self {
        let mut record = Self::zeroed();
        match phase.load {
            Load::None => record.waits = 1,
            Load::Waiting { host } => {
                record.waits = 1;
                record.host = host.get();
            }
            Load::Exchange {
                time,
                switching,
                memory_activity,
            } => {
                record.waits = EXCHANGES;
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
                record.launch = launch.get();
                record.core = core.get();
                record.memory = memory.get();
                record.switching = switching.get();
                record.memory_activity = memory_activity.get();
            }
        }
        record
    }

    /// Seconds of waiting, where that is all it does.
    pub fn waits(&self) -> Option<f64> {
        (self.waits == 1).then_some(self.host)
    }

    pub fn load(&self) -> Load {
        if self.waits == EXCHANGES {
            return Load::Exchange {
                time: Seconds::new(self.host),
                switching: Ratio::new(self.switching),
                memory_activity: Ratio::new(self.memory_activity),
            };
        }
        Load::Kernels {
            launch: Seconds::new(self.launch),
            core: Seconds::new(self.core),
            memory: Seconds::new(self.memory),
            switching: Ratio::new(self.switching),
            memory_activity: Ratio::new(self.memory_activity),
        }
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Slot {
    /// 0 where the place is free.
    pub pid: u64,
    pub memory: f64,
    /// When the program last showed itself, and the moment until which it counts as there.
    pub shown_at: u64,
    pub alive_until: u64,
    pub phases: [PhaseRecord; PHASES],
    pub phase_count: u64,
    pub phase: u64,
    pub left: f64,
    pub granted: u64,
    pub done: u64,
    pub finished_at: u64,
    pub energy_begun: f64,
    pub energy_finished: f64,
    pub kernel_time: f64,
}

impl Slot {
    pub fn new(pid: u32, memory: Bytes, energy: f64) -> Self {
        Self {
            pid: u64::from(pid),
            memory: memory.get(),
            left: 1.0,
            energy_begun: energy,
            energy_finished: energy,
            ..Self::zeroed()
        }
    }

    /// A program that lives may be silent for long, for the machine may be busy.
    pub fn shows(&mut self, now: u64) {
        const PATIENCE: u64 = 20_000_000_000;
        self.shown_at = now;
        self.alive_until = now + PATIENCE;
    }

    /// Its process is gone: it worked a little longer than it was last seen.
    pub fn died(&mut self) {
        const AFTERLIFE: u64 = 200_000_000;
        self.alive_until = self.alive_until.min(self.shown_at + AFTERLIFE);
    }

    pub fn has_work(&self) -> bool {
        self.pid != 0 && self.done < self.granted && self.phase_count > 0
    }

    pub fn current(&self) -> &PhaseRecord {
        &self.phases[(self.phase as usize).min(PHASES - 1)]
    }

    /// Does a part of the present phase, and goes on to the next where it is over.
    pub fn progress(&mut self, part: f64, now: u64, energy: f64) {
        self.left -= part;
        if self.left > 1e-12 {
            return;
        }
        self.left = 1.0;
        self.phase += 1;
        if self.phase == self.phase_count {
            self.phase = 0;
            self.done += 1;
            if self.done == self.granted {
                self.finished_at = now;
                self.energy_finished = energy;
            }
        }
    }
}
