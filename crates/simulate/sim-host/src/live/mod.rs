//! A shared GPU at the present moment: its stored state and its readings.

mod advance;
mod jobs;
mod settings;

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, GpuProfile, State};

use crate::job::{MAX_JOBS, Slot};
use crate::sensors::{LimitTimes, PowerSensor, Sample, Sensors};

/// The state of a GPU as it is stored in its file.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Record {
    /// The monotonic time of the state, in nanoseconds.
    pub now: u64,
    /// The monotonic time at which the GPU was created, in nanoseconds.
    pub created_at: u64,
    pub physics: [f64; 5],
    pub cap: f64,
    /// The lower end of the range to which the core clock is locked, in megahertz; 0 without a lock.
    pub core_low: f64,
    /// The upper end of the range to which the core clock is locked, in megahertz; 0 without a lock.
    pub core_high: f64,
    pub memory_low: f64,
    pub memory_high: f64,
    /// The application clock of the cores, in megahertz; 0 if it is not set.
    pub application_core: f64,
    /// The application clock of the memory, in megahertz; 0 if it is not set.
    pub application_memory: f64,
    /// The offset of the memory clock from its default, in megahertz.
    pub memory_offset: f64,
    pub persistence: u64,
    /// The speed of the processor that feeds the GPU, relative to its speed without a power cap.
    pub host_speed: f64,
    pub sensors: Sensors,
    pub slots: [Slot; MAX_JOBS],
}

/// The error that a simulated fault prevents a setting from being changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteDenied;

/// Why a GPU does not run at its highest clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// The GPU runs at its highest clock.
    None,
    /// No kernels are running.
    Idle,
    /// The power cap keeps the clock below its highest value.
    PowerCap,
    /// A locked clock or an application clock limits the clock.
    ClockSetting,
}

/// A simulated GPU at the present moment, which a closure can read and change. Changes are stored when the
/// closure returns.
pub struct LiveGpu<'a> {
    pub(crate) profile: &'a GpuProfile,
    pub(crate) chip: &'a Chip,
    pub(crate) record: &'a mut Record,
}

impl LiveGpu<'_> {
    /// The profile of the GPU.
    pub fn profile(&self) -> &GpuProfile {
        self.profile
    }

    /// The present monotonic time, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.record.now
    }

    /// The present physical state of the GPU.
    pub(crate) fn state(&self) -> State {
        State::from_array(self.record.physics)
    }

    /// The time since the GPU was created.
    pub(crate) fn age(&self) -> Seconds {
        Seconds::new((self.record.now - self.record.created_at) as f64 * 1e-9)
    }

    /// Whether a simulated fault has made the GPU stop responding.
    pub fn is_lost(&self) -> bool {
        let age = self.age();
        self.profile.faults.iter().any(|fault| fault.is_lost(age))
    }

    /// The exact energy that the GPU has drawn since its creation.
    pub fn energy(&self) -> Joules {
        self.state().energy()
    }

    /// The share of the true power and energy that the sensors show; other than 1 by a simulated fault.
    fn shown_share(&self) -> Ratio {
        let faults = self.profile.faults.iter();
        faults.fold(Ratio::new(1.0), |share, fault| share * fault.shown_share())
    }

    /// The value of the energy counter; `None` if the GPU's generation has no counter.
    pub fn counter(&self) -> Option<Joules> {
        if !self.profile.sensors.has_energy_counter() {
            return None;
        }
        let faults = self.profile.faults.iter();
        let counted = self.record.sensors.counter() * self.shown_share();
        Some(faults.fold(counted, |counted, fault| fault.wrap_counter(counted)))
    }

    /// The reading of the instantaneous power sensor: the mean over the sensor's short averaging time.
    pub fn instant_power(&self) -> Watts {
        self.record.sensors.instant() * self.shown_share()
    }

    /// The mean power of the last second, as the averaging sensor shows it.
    pub fn average_power(&self) -> Watts {
        self.record.sensors.average() * self.shown_share()
    }

    /// The power that `nvmlDeviceGetPowerUsage` returns on this generation: averaged or instantaneous.
    pub fn power_usage(&self) -> Watts {
        if PowerSensor::of(self.profile.sensors).averaged {
            self.average_power()
        } else {
            self.instant_power()
        }
    }

    /// The samples in the driver's buffer, oldest first.
    pub fn samples(&self) -> Vec<Sample> {
        let share = self.shown_share().get();
        let samples = self.record.sensors.samples();
        samples
            .map(|sample| Sample {
                watts: sample.watts * share,
                ..sample
            })
            .collect()
    }

    /// The share of recent time in which kernels ran.
    pub fn utilisation(&self) -> Ratio {
        self.record.sensors.utilisation()
    }

    /// The total times for which something limited the GPU, since its creation.
    pub fn limit_times(&self) -> LimitTimes {
        self.record.sensors.limit_times()
    }

    /// The temperature of the chip.
    pub fn temperature(&self) -> Celsius {
        self.state().temperature()
    }

    /// The core clock as the driver reports it: the nearest supported clock at or below the exact one, or the lowest
    /// clock if there are no jobs.
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

    /// The present memory clock, as the driver reports it.
    pub fn memory_clock(&self) -> Megahertz {
        self.memory_clock_setting()
            .unwrap_or(self.profile.memory.default)
    }

    /// Why the GPU does not run at its highest clock.
    pub fn throttle(&self) -> Throttle {
        let is_running = self.record.slots.iter().any(Slot::has_work);
        let highest = self
            .core_clock_setting()
            .map_or(1.0, |clock| (clock / self.profile.core.default).get());
        if !is_running {
            Throttle::Idle
        } else if self.state().clock().get() < highest - 2e-3 {
            Throttle::PowerCap
        } else if highest < 1.0 {
            Throttle::ClockSetting
        } else {
            Throttle::None
        }
    }
}
