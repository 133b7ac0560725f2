//! The power sensors and energy counter of each GPU generation, computed from the simulated power.

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Joules, Ratio, Watts};
use sweetspot_sim::{Bounds, Generation, SensorKind};
use sweetspot_stats::Seed;

/// A sample in the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Sample {
    /// The monotonic time of the sample, in nanoseconds.
    pub at: u64,
    /// The power that the sample shows, in watts.
    pub watts: f64,
}

/// The timing of the power sensor in one generation of GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSensor {
    /// The time between two values of the sensor, in nanoseconds.
    pub period: u64,
    /// The time over which each value is averaged, in nanoseconds.
    pub window: u64,
    /// The delay from the end of the averaging until the value is shown, in nanoseconds.
    pub lag: u64,
    /// Whether `nvmlDeviceGetPowerUsage` returns the mean of the last second instead of this sensor's value.
    pub averaged: bool,
}

/// A millisecond, in nanoseconds.
const MS: u64 = 1_000_000;
/// The update period of the energy counter and of the 1 s average, in nanoseconds. Each update is called a
/// tick.
pub(crate) const TICK_PERIOD: u64 = 100 * MS;
/// The number of samples in the driver's buffer.
const BUFFER_SIZE: usize = 119;
/// The number of recent ticks whose energies are stored.
const STORED_TICKS: usize = 16;
/// The time constant of the low-pass filter on the buffer's samples, in seconds.
const SAMPLE_TIME_CONSTANT: f64 = 0.015;

impl PowerSensor {
    /// The sensor timing of a GPU generation, as measured (docs/explanation/simulator.md names the sources).
    pub const fn of(generation: Generation) -> Self {
        let (period, window, lag, averaged) = match generation {
            Generation::Maxwell | Generation::Pascal | Generation::Volta => (20, 10, 0, false),
            Generation::Turing => (100, 100, 0, false),
            Generation::AmpereGa100 => (100, 25, 50, false),
            Generation::Ampere | Generation::Ada => (100, 100, 0, true),
            Generation::Hopper => (100, 25, 50, true),
        };
        Self {
            period: period * MS,
            window: window * MS,
            lag: lag * MS,
            averaged,
        }
    }

    /// When the averaging time ends, in nanoseconds from the start of each period.
    const fn window_end(&self) -> u64 {
        (self.period - self.lag) % self.period
    }

    /// When the averaging time starts, in nanoseconds from the start of each period.
    const fn window_start(&self) -> u64 {
        (2 * self.period - self.lag - self.window) % self.period
    }
}

/// The total times, in seconds, for which something limited a simulated GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct LimitTimes {
    /// The time for which the power cap kept the clock low.
    pub capped: f64,
    /// The time for which the cores limited the work.
    pub core: f64,
    /// The time for which the memory limited the work.
    pub memory: f64,
}

/// The sensors of a simulated GPU, in the form in which they are stored.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sensors {
    /// The energy drawn up to each recent tick, in joules; the newest is at `ticks % STORED_TICKS`.
    tick_energy: [f64; STORED_TICKS],
    /// The time in which kernels ran up to each recent tick, in seconds, stored like `tick_energy`.
    tick_busy: [f64; STORED_TICKS],
    ticks: u64,
    /// The energy at the start of the current averaging time, in joules.
    window_start_energy: f64,
    /// The value of the instantaneous sensor that is not shown yet, in watts.
    pending: f64,
    /// The power that the instantaneous sensor shows, in watts.
    instant: f64,
    /// The power that the averaging sensor shows, in watts.
    average: f64,
    /// The energy that the counter shows, in joules.
    counter: f64,
    /// The low-pass filtered power, in watts, from which the samples of the driver's buffer are taken.
    filtered: f64,
    samples: [Sample; BUFFER_SIZE],
    sample_count: u64,
    next_sample: u64,
    busy: f64,
    limits: LimitTimes,
    seed: u64,
    origin: u64,
}

impl Sensors {
    /// Creates the sensors of a GPU that has drawn this power for a long time.
    pub fn new(now: u64, watts: f64, seed: Seed) -> Self {
        let mut sensors = Self {
            window_start_energy: 0.0,
            instant: watts,
            average: watts,
            pending: watts,
            filtered: watts,
            origin: now,
            seed: seed.get(),
            ..Self::zeroed()
        };
        sensors.next_sample = now + sensors.sample_spacing();
        // Before its creation, the GPU counts as idle.
        for (back, energy) in sensors.tick_energy.iter_mut().rev().enumerate() {
            *energy = -watts * (back + 1) as f64 * 0.1;
        }
        sensors.tick_energy[0] = 0.0;
        sensors
    }

    /// The random time to the next sample in nanoseconds: 11 to 35 ms, 20 ms on average.
    fn sample_spacing(&self) -> u64 {
        let draw = Seed::new(self.seed).number(self.sample_count).uniform();
        let milliseconds = if draw < 0.625 {
            11.0 + 9.0 * (draw / 0.625)
        } else {
            20.0 + 15.0 * ((draw - 0.625) / 0.375)
        };
        (milliseconds * MS as f64) as u64
    }

    /// The next time at which any sensor updates, in nanoseconds.
    pub fn next_event(&self, now: u64, sensor: &PowerSensor) -> u64 {
        let age = now - self.origin;
        let next = |period: u64, phase: u64| {
            let this_period = age - age % period + phase;
            if this_period > age {
                this_period
            } else {
                this_period + period
            }
        };
        let next = next(TICK_PERIOD, 0)
            .min(next(sensor.period, 0))
            .min(next(sensor.period, sensor.window_end()))
            .min(next(sensor.period, sensor.window_start()));
        (self.origin + next).min(self.next_sample)
    }

    /// Advances the sensors over a time of constant power.
    pub fn advance(&mut self, seconds: f64, watts: f64, busy: bool) {
        self.filtered = watts + (self.filtered - watts) * (-seconds / SAMPLE_TIME_CONSTANT).exp();
        if busy {
            self.busy += seconds;
        }
    }

    /// Counts a time in which this limited the work.
    pub fn count_limits(&mut self, seconds: f64, bounds: Bounds) {
        if bounds.is_capped {
            self.limits.capped += seconds;
        }
        self.limits.core += seconds * bounds.core.get();
        self.limits.memory += seconds * bounds.memory.get();
    }

    /// The total times for which something limited the GPU.
    pub fn limit_times(&self) -> LimitTimes {
        self.limits
    }

    /// Updates the sensors whose update is due; a stuck sensor shows its old value.
    pub fn update(
        &mut self,
        now: u64,
        energy: f64,
        sensor: &PowerSensor,
        is_stuck: impl Fn(SensorKind) -> bool,
    ) {
        let age = now - self.origin;
        let is_at = |phase: u64| age % sensor.period == phase;
        if is_at(sensor.window_end()) {
            self.pending = (energy - self.window_start_energy) / (sensor.window as f64 * 1e-9);
        }
        if is_at(sensor.window_start()) {
            self.window_start_energy = energy;
        }
        if is_at(0) && !is_stuck(SensorKind::InstantPower) {
            self.instant = self.pending;
        }
        if age.is_multiple_of(TICK_PERIOD) {
            self.ticks += 1;
            let index = self.ticks as usize % STORED_TICKS;
            self.tick_energy[index] = energy;
            self.tick_busy[index] = self.busy;
            if !is_stuck(SensorKind::EnergyCounter) {
                self.counter = energy;
            }
            if !is_stuck(SensorKind::AveragePower) {
                // Ten ticks are a second.
                self.average =
                    energy - self.tick_energy[(index + STORED_TICKS - 10) % STORED_TICKS];
            }
        }
        if now >= self.next_sample {
            if is_stuck(SensorKind::BufferedPower) {
                self.next_sample = u64::MAX;
                return;
            }
            self.samples[self.sample_count as usize % BUFFER_SIZE] = Sample {
                at: now,
                watts: self.filtered,
            };
            self.sample_count += 1;
            self.next_sample = now + self.sample_spacing();
        }
    }

    /// Updates the sensors after a long time at constant power. The result is the same as if every tick had
    /// been simulated.
    pub fn resume(
        &mut self,
        now: u64,
        energy: f64,
        watts: f64,
        is_stuck: impl Fn(SensorKind) -> bool,
    ) {
        let age = now - self.origin;
        self.ticks = age / TICK_PERIOD;
        let since_tick = (age % TICK_PERIOD) as f64 * 1e-9;
        for back in 0..STORED_TICKS {
            let index = (self.ticks as usize + STORED_TICKS - back) % STORED_TICKS;
            self.tick_energy[index] = energy - watts * (since_tick + 0.1 * back as f64);
            self.tick_busy[index] = self.busy;
        }
        (self.pending, self.filtered) = (watts, watts);
        self.window_start_energy = energy;
        if !is_stuck(SensorKind::InstantPower) {
            self.instant = watts;
        }
        if !is_stuck(SensorKind::AveragePower) {
            self.average = watts;
        }
        if !is_stuck(SensorKind::EnergyCounter) {
            self.counter = self.tick_energy[self.ticks as usize % STORED_TICKS];
        }
        if !is_stuck(SensorKind::BufferedPower) {
            self.sample_count = 0;
            self.next_sample = now + self.sample_spacing();
        }
    }

    /// The energy that the counter shows.
    pub fn counter(&self) -> Joules {
        Joules::new(self.counter)
    }

    /// The power that the instantaneous sensor shows.
    pub fn instant(&self) -> Watts {
        Watts::new(self.instant)
    }

    /// The mean power of the last second, as the averaging sensor shows it.
    pub fn average(&self) -> Watts {
        Watts::new(self.average)
    }

    /// The share of time in which kernels ran, over the last two ticks (0.2 s).
    pub fn utilisation(&self) -> Ratio {
        let newest = self.ticks as usize % STORED_TICKS;
        let earlier = (self.ticks as usize + STORED_TICKS - 2) % STORED_TICKS;
        Ratio::new((self.tick_busy[newest] - self.tick_busy[earlier]) / 0.2)
    }

    /// The samples in the driver's buffer, oldest first.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let count = (self.sample_count as usize).min(BUFFER_SIZE);
        let first = self.sample_count as usize - count;
        (first..first + count).map(|index| self.samples[index % BUFFER_SIZE])
    }
}
