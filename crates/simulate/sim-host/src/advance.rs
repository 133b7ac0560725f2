//! Bringing a GPU up to the present moment.

use bytemuck::Zeroable;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{Limits, Load};

use crate::job::Slot;
use crate::sensors::PowerSensor;
use crate::state::Live;

/// Two programs' kernels take turns.
const TURN: f64 = 0.002;
/// Longer than all sensors remember, in nanoseconds.
const MEMORY: u64 = 4_000_000_000;

impl Live<'_> {
    /// Moves everything on to this moment of monotonic time.
    pub(crate) fn advance(&mut self, to: u64) {
        let sensor = PowerSensor::of(self.profile.sensors);
        self.call_the_roll();
        self.sleep_through(to);
        while self.record.now < to {
            self.drop_the_dead();
            let limits = self.limits();
            let until = self.next_moment(to, &sensor);
            self.step(until, &limits);
            if self.record.now >= self.record.sensors.next_event(self.record.now - 1, &sensor) {
                let (now, energy, age) = (self.record.now, self.energy().get(), self.age());
                let stuck = |kind| {
                    self.profile
                        .faults
                        .iter()
                        .any(|fault| fault.is_stuck(kind, age))
                };
                self.record.sensors.happen(now, energy, &sensor, stuck);
            }
        }
    }

    fn limits(&self) -> Limits {
        self.chip.limits(
            self.enforced_cap(),
            self.wanted_core_clock(),
            self.wanted_memory_clock(),
        )
    }

    /// A long time in which nobody was there is taken in one stride, but for what sensors remember.
    fn sleep_through(&mut self, to: u64) {
        if self.is_occupied() || to - self.record.now < 2 * MEMORY {
            return;
        }
        let limits = self.limits();
        let mut state = self.state();
        let mut left = (to - MEMORY - self.record.now) as f64 * 1e-9;
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
        self.record.now = to - MEMORY;
        let (now, energy, age) = (self.record.now, state.energy().get(), self.age());
        let stuck = |kind| {
            self.profile
                .faults
                .iter()
                .any(|fault| fault.is_stuck(kind, age))
        };
        let watts = state.power().get();
        self.record.sensors.wake(now, energy, watts, stuck);
    }

    /// Sensors, and the moment at which a silent program counts as gone, end a step.
    fn next_moment(&self, to: u64, sensor: &PowerSensor) -> u64 {
        let event = self.record.sensors.next_event(self.record.now, sensor);
        let silent = self
            .record
            .slots
            .iter()
            .filter(|slot| slot.pid != 0)
            .map(|slot| slot.alive_until);
        silent
            .fold(to.min(event), u64::min)
            .max(self.record.now + 1)
    }

    fn drop_the_dead(&mut self) {
        let now = self.record.now;
        for slot in &mut self.record.slots {
            if slot.pid != 0 && slot.alive_until <= now {
                *slot = Slot::zeroed();
            }
        }
    }

    /// One step of the physics, at most to `until`, under the kernels whose turn it is.
    fn step(&mut self, until: u64, limits: &Limits) {
        let at_most = (until - self.record.now) as f64 * 1e-9;
        let waits = |slot: &Slot| slot.has_work().then(|| slot.current().waits()).flatten();
        let runs = |slot: &Slot| slot.has_work() && slot.current().waits().is_none();
        let running = self.record.slots.iter().filter(|slot| runs(slot)).count();
        let shortest_wait = self
            .record
            .slots
            .iter()
            .filter_map(|slot| Some(waits(slot)? * slot.left))
            .fold(f64::INFINITY, f64::min);
        let mut at_most = at_most.min(shortest_wait);
        if running > 1 {
            at_most = at_most.min(TURN);
        }
        let turn = self
            .record
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| runs(slot))
            .min_by(|a, b| a.1.kernel_time.total_cmp(&b.1.kernel_time))
            .map(|(index, _)| index);
        let (load, left) = match turn {
            Some(index) => (
                self.record.slots[index].current().load(),
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
            .passed(seconds, step.power.get(), turn.is_some());
        let (now, energy) = (self.record.now, state.energy().get());
        for (index, slot) in self.record.slots.iter_mut().enumerate() {
            if Some(index) == turn {
                slot.kernel_time += seconds;
                slot.progress(step.done.get(), now, energy);
            } else if let Some(host) = waits(slot) {
                slot.progress(if host > 0.0 { seconds / host } else { 1.0 }, now, energy);
            }
        }
    }
}
