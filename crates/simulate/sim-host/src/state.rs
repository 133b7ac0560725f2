//! A GPU at the present moment: what is set, what is read, who is on it.

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Bytes, Celsius, Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, GpuProfile, Phase, State};

use crate::error::HostError;
use crate::job::{JobId, JobProgress, PHASES, PhaseRecord, SLOTS, Slot};
use crate::sensors::{PowerSensor, Sample, Sensors};

/// A GPU as it lies in its file.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Record {
    /// Nanoseconds of monotonic time to which everything below has been brought.
    pub now: u64,
    pub made: u64,
    pub physics: [f64; 5],
    pub cap: f64,
    /// Locked range of the core clock; 0 where there is none.
    pub core_low: f64,
    pub core_high: f64,
    pub memory_low: f64,
    pub memory_high: f64,
    /// Application clocks; 0 where there are none.
    pub application_core: f64,
    pub application_memory: f64,
    pub persistence: u64,
    pub sensors: Sensors,
    pub slots: [Slot; SLOTS],
}

/// A write that a fault forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteDenied;

/// Why a GPU does not run at its highest clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// It does.
    None,
    /// Nothing runs on it.
    Idle,
    /// The power cap.
    PowerCap,
    /// A locked or application clock.
    ClockSetting,
}

/// A GPU at the present moment. Changes are kept when the closure that was given it returns.
pub struct Live<'a> {
    pub(crate) profile: &'a GpuProfile,
    pub(crate) chip: &'a Chip,
    pub(crate) record: &'a mut Record,
}

impl Live<'_> {
    /// The profile of the GPU.
    pub fn profile(&self) -> &GpuProfile {
        self.profile
    }

    /// Nanoseconds of monotonic time.
    pub fn now(&self) -> u64 {
        self.record.now
    }

    pub(crate) fn state(&self) -> State {
        State::from_array(self.record.physics)
    }

    /// Since the GPU was made.
    pub(crate) fn age(&self) -> Seconds {
        Seconds::new((self.record.now - self.record.made) as f64 * 1e-9)
    }

    /// Whether the GPU no longer answers.
    pub fn is_lost(&self) -> bool {
        let age = self.age();
        self.profile.faults.iter().any(|fault| fault.is_lost(age))
    }

    fn writable(&self, knob: sweetspot_sim::Knob) -> Result<(), WriteDenied> {
        if self.profile.faults.iter().any(|fault| fault.denies(knob)) {
            return Err(WriteDenied);
        }
        Ok(())
    }

    /// What the physics has really drawn.
    pub fn energy(&self) -> Joules {
        self.state().energy()
    }

    /// What the energy counter shows; nothing where the generation has none.
    pub fn counter(&self) -> Option<Joules> {
        if !self.profile.sensors.has_energy_counter() {
            return None;
        }
        let faults = self.profile.faults.iter();
        let counted = self.record.sensors.counter();
        Some(faults.fold(counted, |counted, fault| fault.wrap_counter(counted)))
    }

    /// The short window.
    pub fn instant_power(&self) -> Watts {
        self.record.sensors.instant()
    }

    /// The mean of the last second.
    pub fn average_power(&self) -> Watts {
        self.record.sensors.average()
    }

    /// What the ordinary power reading shows on this generation.
    pub fn power_usage(&self) -> Watts {
        if PowerSensor::of(self.profile.sensors).averaged {
            self.average_power()
        } else {
            self.instant_power()
        }
    }

    /// The driver's buffer, oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        self.record.sensors.samples().collect()
    }

    /// Share of time in which kernels ran.
    pub fn utilisation(&self) -> Ratio {
        self.record.sensors.utilisation()
    }

    /// Of the chip.
    pub fn temperature(&self) -> Celsius {
        self.state().temperature()
    }

    /// The core clock as the driver shows it: the level at or below the real one; the lowest where
    /// nothing runs.
    pub fn core_clock(&self) -> Megahertz {
        let levels = self.profile.core.levels();
        let low = levels.first().copied().unwrap_or(self.profile.core.min);
        if !self.is_occupied() && self.record.core_low == 0.0 {
            return low;
        }
        let exact = (self.profile.core.default * self.state().clock()).get() + 1e-6;
        let below = levels.iter().rev().find(|level| level.get() <= exact);
        below.copied().unwrap_or(low)
    }

    /// The memory clock.
    pub fn memory_clock(&self) -> Megahertz {
        self.wanted_memory_clock()
            .unwrap_or(self.profile.memory.default)
    }

    /// Why it does not run faster.
    pub fn throttle(&self) -> Throttle {
        let running = self.record.slots.iter().any(Slot::has_work);
        let highest = self
            .wanted_core_clock()
            .map_or(1.0, |clock| (clock / self.profile.core.default).get());
        if !running {
            Throttle::Idle
        } else if self.state().clock().get() < highest - 2e-3 {
            Throttle::PowerCap
        } else if highest < 1.0 {
            Throttle::ClockSetting
        } else {
            Throttle::None
        }
    }

    /// As set.
    pub fn power_cap(&self) -> Watts {
        Watts::new(self.record.cap)
    }

    /// What is in force of it.
    pub fn enforced_cap(&self) -> Watts {
        self.profile.enforced_cap(self.power_cap())
    }

    /// Sets the cap; the caller has checked its range.
    pub fn set_power_cap(&mut self, cap: Watts) -> Result<(), WriteDenied> {
        self.writable(sweetspot_sim::Knob::PowerCap)?;
        self.record.cap = cap.get();
        Ok(())
    }

    /// Locks the core clock to a range, or frees it.
    pub fn lock_core_clock(
        &mut self,
        range: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.writable(sweetspot_sim::Knob::CoreClock)?;
        let (low, high) = range.map_or((0.0, 0.0), |(low, high)| (low.get(), high.get()));
        (self.record.core_low, self.record.core_high) = (low, high);
        Ok(())
    }

    /// The range the core clock is locked to. NVML has no such getter; tests look here.
    pub fn core_lock(&self) -> Option<(Megahertz, Megahertz)> {
        let (low, high) = (self.record.core_low, self.record.core_high);
        (high > 0.0).then(|| (Megahertz::new(low), Megahertz::new(high)))
    }

    /// Locks the memory clock to a range, or frees it.
    pub fn lock_memory_clock(
        &mut self,
        range: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.writable(sweetspot_sim::Knob::MemoryClock)?;
        let (low, high) = range.map_or((0.0, 0.0), |(low, high)| (low.get(), high.get()));
        (self.record.memory_low, self.record.memory_high) = (low, high);
        Ok(())
    }

    /// Memory and core clock for applications, or the default ones.
    pub fn set_application_clocks(
        &mut self,
        clocks: Option<(Megahertz, Megahertz)>,
    ) -> Result<(), WriteDenied> {
        self.writable(sweetspot_sim::Knob::CoreClock)?;
        self.writable(sweetspot_sim::Knob::MemoryClock)?;
        let (memory, core) = clocks.map_or((0.0, 0.0), |(memory, core)| (memory.get(), core.get()));
        (self.record.application_memory, self.record.application_core) = (memory, core);
        Ok(())
    }

    /// Memory and core clock for applications.
    pub fn application_clocks(&self) -> (Megahertz, Megahertz) {
        let or = |set: f64, default| {
            if set > 0.0 {
                Megahertz::new(set)
            } else {
                default
            }
        };
        (
            or(self.record.application_memory, self.profile.memory.default),
            or(self.record.application_core, self.profile.core.default),
        )
    }

    /// Whether the driver stays loaded without a client.
    pub fn persistence(&self) -> bool {
        self.record.persistence != 0
    }

    /// See [`Live::persistence`].
    pub fn set_persistence(&mut self, on: bool) {
        self.record.persistence = u64::from(on);
    }

    pub(crate) fn wanted_core_clock(&self) -> Option<Megahertz> {
        let record = &self.record;
        let default = self.profile.core.default.get();
        if record.core_high > 0.0 {
            Some(Megahertz::new(default.clamp(
                record.core_low.min(record.core_high),
                record.core_high,
            )))
        } else if record.application_core > 0.0 {
            Some(Megahertz::new(record.application_core))
        } else {
            None
        }
    }

    pub(crate) fn wanted_memory_clock(&self) -> Option<Megahertz> {
        let record = &self.record;
        let default = self.profile.memory.default.get();
        if record.memory_high > 0.0 {
            Some(Megahertz::new(default.clamp(
                record.memory_low.min(record.memory_high),
                record.memory_high,
            )))
        } else if record.application_memory > 0.0 {
            Some(Megahertz::new(record.application_memory))
        } else {
            None
        }
    }

    /// Programs on the GPU: process and memory.
    pub fn programs(&self) -> Vec<(u32, Bytes)> {
        let taken = self.record.slots.iter().filter(|slot| slot.pid != 0);
        taken
            .map(|slot| (slot.pid as u32, Bytes::new(slot.memory)))
            .collect()
    }

    pub(crate) fn is_occupied(&self) -> bool {
        self.record.slots.iter().any(|slot| slot.pid != 0)
    }

    /// Memory that programs take.
    pub fn memory_used(&self) -> Bytes {
        self.programs().into_iter().map(|(_, memory)| memory).sum()
    }

    /// A program comes.
    pub fn join(&mut self, pid: u32, memory: Bytes) -> Result<JobId, HostError> {
        let energy = self.energy().get();
        let free = self.record.slots.iter().position(|slot| slot.pid == 0);
        let place = free.ok_or(HostError::Full(SLOTS))?;
        let mut slot = Slot::new(pid, memory, energy);
        // A newcomer takes turns with the others from now on; it is owed nothing for the past.
        let others = self.record.slots.iter().filter(|slot| slot.pid != 0);
        let turns = others.map(|slot| slot.kernel_time).reduce(f64::max);
        slot.kernel_time = turns.unwrap_or(0.0);
        slot.shows(self.record.now);
        self.record.slots[place] = slot;
        Ok(JobId { place, pid })
    }

    /// Memory that a program takes.
    pub fn memory_of(&mut self, job: JobId) -> Result<Bytes, HostError> {
        Ok(Bytes::new(self.slot(job)?.memory))
    }

    /// A program takes so much memory from now on.
    pub fn take_memory(&mut self, job: JobId, memory: Bytes) -> Result<(), HostError> {
        self.slot(job)?.memory = memory.get();
        Ok(())
    }

    fn slot(&mut self, job: JobId) -> Result<&mut Slot, HostError> {
        let slot = &mut self.record.slots[job.place];
        if slot.pid == u64::from(job.pid) {
            Ok(slot)
        } else {
            Err(HostError::Dropped(job.pid))
        }
    }

    /// The program may do so many iterations of these phases, beyond those it has done.
    pub fn grant(
        &mut self,
        job: JobId,
        phases: &[Phase],
        iterations: u64,
    ) -> Result<(), HostError> {
        if phases.len() > PHASES {
            return Err(HostError::Phases(phases.len(), PHASES));
        }
        let now = self.record.now;
        let slot = self.slot(job)?;
        slot.phase_count = phases.len() as u64;
        for (place, phase) in slot.phases.iter_mut().zip(phases) {
            *place = PhaseRecord::new(phase);
        }
        slot.phase = 0;
        slot.left = 1.0;
        slot.granted = slot.done + iterations;
        slot.finished_at = 0;
        slot.shows(now);
        Ok(())
    }

    /// The program shows that it is there, and learns how far it has come.
    pub fn show(&mut self, job: JobId) -> Result<JobProgress, HostError> {
        let (now, energy) = (self.record.now, self.energy().get());
        let slot = self.slot(job)?;
        slot.shows(now);
        let finished = slot.finished_at > 0 && slot.done == slot.granted;
        let until = if finished {
            slot.energy_finished
        } else {
            energy
        };
        Ok(JobProgress {
            done: slot.done,
            energy: Joules::new(until - slot.energy_begun),
            finished_at: finished.then_some(slot.finished_at),
        })
    }

    /// The program leaves.
    pub fn leave(&mut self, job: JobId) {
        if let Ok(slot) = self.slot(job) {
            *slot = Slot::zeroed();
        }
    }

    /// Looks which programs are still there.
    pub(crate) fn call_the_roll(&mut self) {
        for slot in self.record.slots.iter_mut().filter(|slot| slot.pid != 0) {
            if !lives(slot.pid) {
                slot.died();
            }
        }
    }
}

/// A process that ended but was not waited for is gone as well.
fn lives(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        // Without a view of processes, nobody is declared dead but by silence.
        return !std::path::Path::new("/proc/self/stat").exists();
    };
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X'))
}
