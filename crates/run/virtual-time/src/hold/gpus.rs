//! The GPUs of a simulated run of `hold`: they run a batch together and wait for the slowest one.

use sweetspot_control::hold::HoldEvent;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Limits, Load, State, Variation};

use super::server::ServerGpu;
use super::{CapsOfGpus, HoldSimulation, INSTANT_WINDOW, READING_PERIOD, Sensor, power_reading};

/// Times that differ by less than this count as equal, in seconds.
const TIME_TOLERANCE: f64 = 1e-9;

/// The present state of a GPU of the simulated server.
pub(super) struct RunningGpu<'a> {
    gpu: &'a ServerGpu,
    pub(super) variation: Variation,
    state: State,
    limits: Limits,
    /// The energy since the start and in the power reading that is in progress, in joules.
    pub(super) energy: f64,
    reading_energy: f64,
    /// Whether the power cap lowered the clock in the power reading that is in progress.
    is_capped: bool,
}

/// Where a GPU is in the loads of a batch.
#[derive(Clone, Copy)]
struct Cursor {
    load: usize,
    left: Ratio,
    now: f64,
}

impl<'a> RunningGpu<'a> {
    /// Creates a GPU at rest.
    pub(super) fn new(gpu: &'a ServerGpu, variation: Variation) -> Self {
        let setting = sweetspot_control::hold::HoldSetting {
            batch: 1,
            core_clock: None,
            power_cap: None,
        };
        Self {
            variation,
            state: gpu.chip.rest_state(),
            limits: gpu.limits(&setting),
            gpu,
            energy: 0.0,
            reading_energy: 0.0,
            is_capped: false,
        }
    }

    /// Advances a load by at most a time. Returns the energy of the step.
    fn step(&mut self, load: &Load, cursor: &mut Cursor, until: f64) -> f64 {
        let at_most = Seconds::new((until - cursor.now).max(TIME_TOLERANCE));
        let chip = &self.gpu.chip;
        let step = chip.step(&mut self.state, &self.limits, load, cursor.left, at_most);
        cursor.left -= step.done;
        cursor.now += step.time.get();
        let energy = step.power.get() * step.time.get();
        self.energy += energy;
        self.reading_energy += energy;
        energy
    }
}

impl HoldSimulation<'_> {
    /// Advances the simulation until each GPU has done its loads. GPUs that are done wait for the others.
    pub(super) fn run_loads(&mut self, loads: &[Vec<Load>]) {
        let start = Cursor {
            load: 0,
            left: Ratio::new(1.0),
            now: self.now,
        };
        let mut cursors = vec![start; loads.len()];
        let is_done = |cursors: &[Cursor]| {
            let mut each = cursors.iter().zip(loads);
            each.all(|(cursor, loads)| cursor.load >= loads.len())
        };
        while !is_done(&cursors) {
            let next = (self.reading.number + 1) as f64 * READING_PERIOD;
            let window_start = next - INSTANT_WINDOW;
            let is_before_window = self.conditions.sensor == Sensor::Instant
                && self.now < window_start - TIME_TOLERANCE;
            let until = if is_before_window { window_start } else { next };
            self.run_until(loads, &mut cursors, until);
            if is_before_window {
                self.reading.energy_before_window = self.reading.energy;
            }
            if self.now >= next - TIME_TOLERANCE {
                self.end_reading();
            }
        }
    }

    /// Advances all GPUs to the time `until`, or to the end of their loads if that is earlier.
    fn run_until(&mut self, loads: &[Vec<Load>], cursors: &mut [Cursor], until: f64) {
        let is_alone = self.gpus.len() == 1;
        let each = self.gpus.iter_mut().zip(loads).zip(cursors.iter_mut());
        for ((gpu, loads), cursor) in each {
            while cursor.load < loads.len() && cursor.now < until - TIME_TOLERANCE {
                let load = &loads[cursor.load];
                self.reading.energy += gpu.step(load, cursor, until);
                if !is_alone {
                    let bounds = gpu.gpu.chip.bounds(&gpu.state, &gpu.limits, load);
                    gpu.is_capped |= bounds.is_capped;
                }
                if cursor.left <= Ratio::ZERO {
                    (cursor.load, cursor.left) = (cursor.load + 1, Ratio::new(1.0));
                }
            }
        }
        self.now = cursors
            .iter()
            .map(|cursor| cursor.now)
            .fold(self.now, f64::max);
        let each = self.gpus.iter_mut().zip(loads).zip(cursors);
        for ((gpu, loads), cursor) in each {
            let left = self.now - cursor.now;
            if cursor.load >= loads.len() && left > TIME_TOLERANCE {
                let wait = self.server.wait_load(loads, Seconds::new(left));
                while cursor.left > Ratio::ZERO {
                    self.reading.energy += gpu.step(&wait, cursor, self.now);
                }
                cursor.left = Ratio::new(1.0);
            }
            cursor.now = self.now;
        }
    }

    /// Puts the present setting into effect on all GPUs.
    pub(super) fn set_gpus(&mut self) {
        let now = Seconds::new(self.now);
        if let (Some(division), Some(total)) = (&mut self.division, self.setting.power_cap) {
            division.set_total(now, total);
            division.restart(now);
        }
        let caps: Option<&[Watts]> = match (&self.division, &self.conditions.caps_of_gpus) {
            (Some(division), _) => Some(division.caps()),
            (None, CapsOfGpus::Fixed(caps)) => Some(caps),
            (None, CapsOfGpus::Divided(_)) => None,
        };
        for (index, gpu) in self.gpus.iter_mut().enumerate() {
            let mut own = self.setting;
            if let Some(cap) = caps.and_then(|caps| caps.get(index)) {
                own.power_cap = Some(*cap);
            }
            gpu.limits = gpu.gpu.limits(&own);
        }
        if let Some(caps) = caps.filter(|caps| {
            let last = self.outcome.caps_of_gpus.last();
            last.is_none_or(|(_, last)| last != caps)
        }) {
            self.outcome.caps_of_gpus.push((now, caps.to_vec()));
        }
    }

    /// Moves watts between GPUs, if a power reading that ends at `to` shows that some have too many.
    pub(super) fn balance_gpus(&mut self, to: f64) {
        let (mut has_changed, mut balanced) = (false, None);
        if let Some(division) = &mut self.division {
            let now = Seconds::new(to);
            for (index, gpu) in self.gpus.iter_mut().enumerate() {
                let power = gpu.reading_energy / READING_PERIOD;
                division.record_power(index, &power_reading(to - READING_PERIOD, to, power));
                division.record_throttle(index, now, gpu.is_capped);
            }
            has_changed = division.rebalance(now, self.holder.config().cap);
            balanced = division.take_balanced();
        }
        for gpu in &mut self.gpus {
            (gpu.reading_energy, gpu.is_capped) = (0.0, false);
        }
        if has_changed {
            self.set_gpus();
        }
        if let Some(has_changed) = balanced {
            self.statistics.continue_settling(Seconds::new(to));
            self.send(HoldEvent::Balanced { has_changed });
        }
    }
}
