//! Advances a GPU to the present moment.

use bytemuck::Zeroable;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{Limits, Load};

use super::LiveGpu;
use crate::job::Slot;
use crate::sensors::PowerSensor;

/// If several jobs run, each gets the GPU for this many seconds before it is another's turn.
const TIME_SLICE: f64 = 0.002;
/// The values of all sensors depend only on the power in this last time, in nanoseconds.
const SENSOR_MEMORY: u64 = 4_000_000_000;

impl LiveGpu<'_> {
    /// Advances physics, sensors and jobs to this monotonic time, in nanoseconds.
    pub(crate) fn advance(&mut self, to: u64) {
        let sensor = PowerSensor::of(self.profile.sensors);
        self.mark_ended_jobs();
        self.skip_idle_time(to);
        while self.record.now < to {
            self.remove_ended_jobs();
            let limits = self.limits();
            let until = self.end_of_step(to, &sensor);
            self.step(until, &limits);
            if self.record.now >= self.record.sensors.next_event(self.record.now - 1, &sensor) {
                let (now, energy, age) = (self.record.now, self.energy().get(), self.age());
                let is_stuck = |kind| {
                    self.profile
                        .faults
                        .iter()
                        .any(|fault| fault.is_stuck(kind, age))
                };
                self.record.sensors.update(now, energy, &sensor, is_stuck);
            }
        }
    }

    /// The limits that the GPU's settings put on its power and clocks.
    fn limits(&self) -> Limits {
        self.chip.limits(
            self.enforced_cap(),
            self.core_clock_setting(),
            self.memory_clock_setting(),
        )
    }

    /// Skips a long time without jobs in large steps. The end of that time is simulated in detail, because
    /// the sensors' values depend on it.
    fn skip_idle_time(&mut self, to: u64) {
        if self.is_occupied() || to - self.record.now < 2 * SENSOR_MEMORY {
            return;
        }
        let limits = self.limits();
        let mut state = self.state();
        let mut left = (to - SENSOR_MEMORY - self.record.now) as f64 * 1e-9;
        while left > 0.0 {
            let step = self.chip.step(
                &mut state,
                &limits,
                &Load::None,
                Ratio::new(1.0),
                Seconds::new(left),
            );
            left -= step.time.get();
        }
        self.record.physics = state.to_array();
        self.record.now = to - SENSOR_MEMORY;
        let (now, energy, age) = (self.record.now, state.energy().get(), self.age());
        let is_stuck = |kind| {
            self.profile
                .faults
                .iter()
                .any(|fault| fault.is_stuck(kind, age))
        };
        let watts = state.power().get();
        self.record.sensors.resume(now, energy, watts, is_stuck);
    }

    /// The time at which the next step ends: when a sensor updates or a silent job expires, but not after `to`.
    fn end_of_step(&self, to: u64, sensor: &PowerSensor) -> u64 {
        let event = self.record.sensors.next_event(self.record.now, sensor);
        let expiries = self
            .record
            .slots
            .iter()
            .filter(|slot| slot.pid != 0)
            .map(|slot| slot.alive_until);
        expiries
            .fold(to.min(event), u64::min)
            .max(self.record.now + 1)
    }

    /// Removes the jobs that have ended or were silent for too long.
    fn remove_ended_jobs(&mut self) {
        let now = self.record.now;
        for slot in &mut self.record.slots {
            if slot.pid != 0 && slot.alive_until <= now {
                *slot = Slot::zeroed();
            }
        }
    }

    /// Makes one step of the physics, at most to `until`. The kernels are those of the job that has used the
    /// GPU for the shortest time.
    fn step(&mut self, until: u64, limits: &Limits) {
        let at_most = (until - self.record.now) as f64 * 1e-9;
        let speed = self.record.host_speed;
        let waits = |slot: &Slot| {
            slot.has_work()
                .then(|| slot.current().waiting_time(speed))
                .flatten()
        };
        let runs = |slot: &Slot| slot.has_work() && waits(slot).is_none();
        let running = self.record.slots.iter().filter(|slot| runs(slot)).count();
        let shortest_wait = self
            .record
            .slots
            .iter()
            .filter_map(|slot| Some(waits(slot)? * slot.left))
            .fold(f64::INFINITY, f64::min);
        let mut at_most = at_most.min(shortest_wait);
        if running > 1 {
            at_most = at_most.min(TIME_SLICE);
        }
        let current = self
            .record
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| runs(slot))
            .min_by(|a, b| a.1.kernel_time.total_cmp(&b.1.kernel_time))
            .map(|(index, _)| index);
        let (load, left) = match current {
            Some(index) => (
                self.record.slots[index].current().load(speed),
                self.record.slots[index].left,
            ),
            None if self.is_occupied() => (
                Load::Waiting {
                    host: Seconds::new(1e9),
                },
                1.0,
            ),
            None => (Load::None, 1.0),
        };
        let mut state = self.state();
        let step = self.chip.step(
            &mut state,
            limits,
            &load,
            Ratio::new(left),
            Seconds::new(at_most),
        );
        self.record.physics = state.to_array();
        let seconds = step.time.get();
        self.record.now = until.min(self.record.now + (seconds * 1e9).ceil() as u64);
        self.record
            .sensors
            .advance(seconds, step.power.get(), current.is_some());
        let bounds = self.chip.bounds(&state, limits, &load);
        self.record.sensors.count_limits(seconds, bounds);
        let (now, energy) = (self.record.now, state.energy().get());
        for (index, slot) in self.record.slots.iter_mut().enumerate() {
            if Some(index) == current {
                slot.kernel_time += seconds;
                slot.progress(step.done.get(), now, energy);
            } else if let Some(host) = waits(slot) {
                slot.progress(if host > 0.0 { seconds / host } else { 1.0 }, now, energy);
            }
        }
    }
}
