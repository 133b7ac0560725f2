//! The sensors of a generation, fed by the power that the physics draws.

use bytemuck::{Pod, Zeroable};
use sweetspot_quantity::{Joules, Ratio, Watts};
use sweetspot_sim::{Generation, SensorKind};
use sweetspot_stats::Seed;

/// One sample of the driver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Sample {
    /// Nanoseconds of monotonic time.
    pub at: u64,
    /// Watts.
    pub watts: f64,
}

/// What a power reading means on a generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerSensor {
    /// Nanoseconds between two values.
    pub period: u64,
    /// Nanoseconds that a value covers.
    pub window: u64,
    /// Nanoseconds from the end of what it covers to its appearance.
    pub lag: u64,
    /// Whether the ordinary reading is a mean over a second.
    pub averaged: bool,
}

const MS: u64 = 1_000_000;
/// How often the counter and the averages move.
pub(crate) const TICK: u64 = 100 * MS;
const BUFFER: usize = 119;
const TICKS: usize = 16;
/// The buffer's samples answer to power with this time constant.
const RESPONSE: f64 = 0.015;

impl PowerSensor {
    /// As measured (docs/simulator.md names the sources).
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

    /// In each period.
    const fn window_ends(&self) -> u64 {
        (self.period - self.lag) % self.period
    }

    /// In each period.
    const fn window_begins(&self) -> u64 {
        (2 * self.period - self.lag - self.window) % self.period
    }
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Sensors {
    /// Energy and busy seconds at the last ticks, the newest at `ticks % TICKS`.
    tick_energy: [f64; TICKS],
    tick_busy: [f64; TICKS],
    ticks: u64,
    /// The short window that is being measured, and its last value.
    window_begun: f64,
    pending: f64,
    /// What is shown of power and energy.
    instant: f64,
    average: f64,
    counter: f64,
    /// The filtered power that the buffer's samples show.
    filtered: f64,
    samples: [Sample; BUFFER],
    sample_count: u64,
    next_sample: u64,
    busy: f64,
    seed: u64,
    origin: u64,
}

impl Sensors {
    pub fn new(now: u64, watts: f64, seed: Seed) -> Self {
        let mut sensors = Self {
            window_begun: 0.0,
            instant: watts,
            average: watts,
            pending: watts,
            filtered: watts,
            origin: now,
            seed: seed.get(),
            ..Self::zeroed()
        };
        sensors.next_sample = now + sensors.spacing();
        // Before it was made, the GPU had been idle for ever.
        for (back, energy) in sensors.tick_energy.iter_mut().rev().enumerate() {
            *energy = -watts * (back + 1) as f64 * 0.1;
        }
        sensors.tick_energy[0] = 0.0;
        sensors
    }

    /// 11 to 35 ms, 20 on average.
    fn spacing(&self) -> u64 {
        let draw = Seed::new(self.seed).number(self.sample_count).uniform();
        let milliseconds = if draw < 0.625 {
            11.0 + 9.0 * (draw / 0.625)
        } else {
            20.0 + 15.0 * ((draw - 0.625) / 0.375)
        };
        (milliseconds * MS as f64) as u64
    }

    /// The next moment at which a sensor does something.
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
        let next = next(TICK, 0)
            .min(next(sensor.period, 0))
            .min(next(sensor.period, sensor.window_ends()))
            .min(next(sensor.period, sensor.window_begins()));
        (self.origin + next).min(self.next_sample)
    }

    /// Power was constant from the last moment to this one.
    pub fn passed(&mut self, seconds: f64, watts: f64, busy: bool) {
        self.filtered = watts + (self.filtered - watts) * (-seconds / RESPONSE).exp();
        if busy {
            self.busy += seconds;
        }
    }

    /// What happens at this moment; a sensor that is stuck goes on showing what it showed.
    pub fn happen(
        &mut self,
        now: u64,
        energy: f64,
        sensor: &PowerSensor,
        is_stuck: impl Fn(SensorKind) -> bool,
    ) {
        let age = now - self.origin;
        let is_at = |phase: u64| age % sensor.period == phase;
        if is_at(sensor.window_ends()) {
            self.pending = (energy - self.window_begun) / (sensor.window as f64 * 1e-9);
        }
        if is_at(sensor.window_begins()) {
            self.window_begun = energy;
        }
        if is_at(0) && !is_stuck(SensorKind::InstantPower) {
            self.instant = self.pending;
        }
        if age.is_multiple_of(TICK) {
            self.ticks += 1;
            let place = self.ticks as usize % TICKS;
            self.tick_energy[place] = energy;
            self.tick_busy[place] = self.busy;
            if !is_stuck(SensorKind::EnergyCounter) {
                self.counter = energy;
            }
            if !is_stuck(SensorKind::AveragePower) {
                // Ten ticks are a second.
                self.average = energy - self.tick_energy[(place + TICKS - 10) % TICKS];
            }
        }
        if now >= self.next_sample {
            if is_stuck(SensorKind::BufferedPower) {
                self.next_sample = u64::MAX;
                return;
            }
            self.samples[self.sample_count as usize % BUFFER] = Sample {
                at: now,
                watts: self.filtered,
            };
            self.sample_count += 1;
            self.next_sample = now + self.spacing();
        }
    }

    /// After a long sleep at constant power: as if every tick had been seen.
    pub fn wake(
        &mut self,
        now: u64,
        energy: f64,
        watts: f64,
        is_stuck: impl Fn(SensorKind) -> bool,
    ) {
        let age = now - self.origin;
        self.ticks = age / TICK;
        let since_tick = (age % TICK) as f64 * 1e-9;
        for back in 0..TICKS {
            let place = (self.ticks as usize + TICKS - back) % TICKS;
            self.tick_energy[place] = energy - watts * (since_tick + 0.1 * back as f64);
            self.tick_busy[place] = self.busy;
        }
        (self.pending, self.filtered) = (watts, watts);
        self.window_begun = energy;
        if !is_stuck(SensorKind::InstantPower) {
            self.instant = watts;
        }
        if !is_stuck(SensorKind::AveragePower) {
            self.average = watts;
        }
        if !is_stuck(SensorKind::EnergyCounter) {
            self.counter = self.tick_energy[self.ticks as usize % TICKS];
        }
        if !is_stuck(SensorKind::BufferedPower) {
            self.sample_count = 0;
            self.next_sample = now + self.spacing();
        }
    }

    pub fn counter(&self) -> Joules {
        Joules::new(self.counter)
    }

    pub fn instant(&self) -> Watts {
        Watts::new(self.instant)
    }

    /// Mean of the last second.
    pub fn average(&self) -> Watts {
        Watts::new(self.average)
    }

    /// Share of the last two ticks in which kernels ran.
    pub fn utilisation(&self) -> Ratio {
        let here = self.ticks as usize % TICKS;
        let ago = (self.ticks as usize + TICKS - 2) % TICKS;
        Ratio::new((self.tick_busy[here] - self.tick_busy[ago]) / 0.2)
    }

    /// Oldest first.
    pub fn samples(&self) -> impl Iterator<Item = Sample> + '_ {
        let count = (self.sample_count as usize).min(BUFFER);
        let first = self.sample_count as usize - count;
        (first..first + count).map(|index| self.samples[index % BUFFER])
    }
}
