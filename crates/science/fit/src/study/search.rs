//! The parameters of a fit, what is usual for them, and the search for the best.

use sweetspot_sim::GpuProfile;
use sweetspot_stats::{Bounds, fit};

use super::physics::{Conditions, Physics};
use super::{MeasuredStudy, StudyFitError};

/// What is moved. Times, powers and the half-speed batch are logarithms; shares are kept above one, so that
/// none at all is a number like any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Device time of an item.
    Item,
    /// The part of it that follows the memory clock.
    MemoryShare,
    /// The part of an item's time in which the GPU waits for the host.
    Host,
    /// Power of a program that waits.
    Waiting,
    /// Of the memory.
    MemoryPower,
    /// Of the cores.
    CorePower,
    /// Where voltage begins to rise.
    Knee,
    /// Voltage below it.
    Floor,
    /// Launches, against the shortest iteration.
    Launch,
    /// Items that keep half of the cores busy.
    HalfSpeed,
    /// Memory work of an iteration, against its device time.
    MemoryPerBatch,
    /// Host work of an iteration, against the shortest.
    HostPerBatch,
}

use Key::{
    CorePower, Floor, HalfSpeed, Host, HostPerBatch, Item, Knee, Launch, MemoryPerBatch,
    MemoryPower, MemoryShare, Waiting,
};

const KEYS: usize = 12;
const ALWAYS: [Key; 8] = [
    Item,
    MemoryShare,
    Host,
    Waiting,
    MemoryPower,
    CorePower,
    Knee,
    Floor,
];

/// A value for each parameter.
pub type Values = [f64; KEYS];

/// What is usual, and how far it is known.
#[derive(Clone, Copy)]
struct Usual {
    middle: f64,
    spread: f64,
    bounds: Bounds,
}

/// How near the physics can come to a real board at best.
const MODEL: f64 = 0.005;
/// Deviations of more than so many spreads are more likely odd points than a wrong fit.
const ODD: f64 = 4.0;
/// A batch of one item for so many arithmetic units keeps half of them busy, on the H200 and the P40.
const UNITS_PER_ITEM: f64 = 600.0;
/// The lowest cap can be kept, with this margin.
const MARGIN: f64 = 0.97;
const MOST_STEPS: usize = 80;

/// What a fit is to meet.
pub struct Search {
    pub keys: Vec<Key>,
    usual: [Usual; KEYS],
    points: Vec<Target>,
    batch: f64,
    shortest: f64,
    lowest_clock: f64,
    lowest_cap: f64,
}

/// A point: what was measured, how well it is known, and what the simulator makes of the physics there.
#[derive(Clone, Copy)]
pub struct Target {
    conditions: Conditions,
    time: f64,
    energy: f64,
    spread: [f64; 2],
    pub factor: [f64; 2],
}

impl Search {
    pub fn new(study: &MeasuredStudy, gpu: &GpuProfile) -> Self {
        let points = study.points.iter().map(|point| Target {
            conditions: Conditions::new(point, gpu),
            time: point.time.get(),
            energy: point.energy.get(),
            spread: point.known.map(|known| MODEL.hypot(known)),
            factor: [1.0; 2],
        });
        let points: Vec<Target> = points.collect();
        let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
        let of = |value: fn(&super::MeasuredPoint) -> f64| {
            least(study.points.iter().map(value).collect())
        };
        let largest = study
            .points
            .iter()
            .map(|point| point.batch)
            .max()
            .unwrap_or(1);
        let each = of(|point| point.time.get() / point.items as f64);
        let shortest = of(|point| point.time.get() * point.batch as f64 / point.items as f64);
        let lowest_power = of(|point| (point.energy / point.time).get());
        let most_power = -of(|point| -(point.energy / point.time).get());
        let default_cap = gpu.cap.default.get();
        let waiting = (0.2 * default_cap).min(0.55 * lowest_power);
        let memory_power = (0.08 * default_cap).min(0.3 * lowest_power);
        let core_power = (1.05 * most_power - waiting - memory_power).max(0.1 * most_power);
        let half_speed = gpu.core.units as f64 / UNITS_PER_ITEM;
        let factor = |middle: f64, spread: f64, most: f64| Usual {
            middle: middle.ln(),
            spread,
            bounds: Bounds {
                low: (middle / most).ln(),
                high: (middle * most).ln(),
            },
        };
        let share = |middle: f64, spread: f64, low: f64, high: f64| Usual {
            middle: 1.0 + middle,
            spread,
            bounds: Bounds {
                low: 1.0 + low,
                high: 1.0 + high,
            },
        };
        let mut usual = [share(0.0, 1.0, 0.0, 1.0); KEYS];
        usual[Item as usize] = factor(each, 10.0, 30.0);
        usual[MemoryShare as usize] = share(0.4, 0.25, 0.0, 0.97);
        usual[Host as usize] = share(0.08, 0.15, 0.0, 0.97);
        usual[Waiting as usize] = factor(waiting, 0.5, 10.0);
        usual[Waiting as usize].bounds.high = (0.99 * lowest_power).ln();
        usual[MemoryPower as usize] = factor(memory_power, 0.7, 20.0);
        usual[CorePower as usize] = factor(core_power, 0.7, 20.0);
        usual[Knee as usize] = share(0.55, 0.15, 0.02, 0.97);
        usual[Floor as usize] = share(0.75, 0.08, 0.4, 0.99);
        usual[Launch as usize] = share(0.2, 0.4, 0.0, 1.5);
        usual[HalfSpeed as usize] = factor(half_speed, 1.0, 100.0);
        usual[MemoryPerBatch as usize] = share(0.0, 0.05, 0.0, 0.5);
        usual[HostPerBatch as usize] = share(0.0, 0.1, 0.0, 1.0);
        let mut batches: Vec<u64> = study.points.iter().map(|point| point.batch).collect();
        batches.sort_unstable();
        batches.dedup();
        let mut keys = ALWAYS.to_vec();
        if batches.len() >= 2 {
            keys.extend([Launch, HalfSpeed]);
        } else {
            usual[Launch as usize].middle = 1.0;
            if !study.batch_known {
                usual[HalfSpeed as usize].middle = f64::NEG_INFINITY;
            }
        }
        if batches.len() >= 3 {
            keys.extend([MemoryPerBatch, HostPerBatch]);
        }
        Self {
            keys,
            usual,
            points,
            batch: largest as f64,
            shortest,
            lowest_clock: (gpu.core.min / gpu.core.default).get(),
            lowest_cap: gpu.cap.min.get(),
        }
    }

    /// Only these points.
    pub fn of(&self, which: impl Fn(usize) -> bool) -> Self {
        let points = self
            .points
            .iter()
            .enumerate()
            .filter(|(index, _)| which(*index));
        Self {
            keys: self.keys.clone(),
            usual: self.usual,
            points: points.map(|(_, point)| *point).collect(),
            ..*self
        }
    }

    pub fn points_mut(&mut self) -> &mut [Target] {
        &mut self.points
    }

    /// The physics that these values mean.
    pub fn physics(&self, at: &Values) -> Physics {
        let get = |key: Key| at[key as usize];
        let share = |key: Key| at[key as usize] - 1.0;
        let item = get(Item).exp();
        Physics {
            core: item * (1.0 - share(MemoryShare)),
            memory: item * share(MemoryShare),
            memory_per_batch: item * self.batch * share(MemoryPerBatch),
            host: item * share(Host) / (1.0 - share(Host)),
            host_per_batch: self.shortest * share(HostPerBatch),
            launch: self.shortest * share(Launch),
            half_speed_batch: get(HalfSpeed).exp(),
            batch: self.batch,
            waiting: get(Waiting).exp(),
            memory_power: get(MemoryPower).exp(),
            core_power: get(CorePower).exp(),
            knee: share(Knee),
            floor: share(Floor),
        }
    }

    /// Time and energy of each point by the physics alone, without the simulator's factor.
    pub fn raw(&self, at: &Values) -> Vec<(f64, f64)> {
        let physics = self.physics(at);
        self.points
            .iter()
            .map(|point| physics.run(&point.conditions))
            .collect()
    }

    fn residuals(&self, at: &Values) -> Vec<f64> {
        let physics = self.physics(at);
        let mut all = Vec::with_capacity(2 * self.points.len() + KEYS + 1);
        for point in &self.points {
            let (time, energy) = physics.run(&point.conditions);
            let [time_factor, energy_factor] = point.factor;
            all.push(softened(
                (time * time_factor / point.time).ln() / point.spread[0],
            ));
            all.push(softened(
                (energy * energy_factor / point.energy).ln() / point.spread[1],
            ));
        }
        for key in &self.keys {
            let usual = &self.usual[*key as usize];
            all.push((at[*key as usize] - usual.middle) / usual.spread);
        }
        let least = physics.least(self.lowest_clock) / (MARGIN * self.lowest_cap);
        all.push(100.0 * least.ln().max(0.0));
        all
    }

    /// The sum of squares, with the simulator's own results in place of the physics'.
    pub fn cost(&self, at: &Values, simulated: &[(f64, f64)]) -> f64 {
        let mut here = self.of(|_| true);
        let raw = here.raw(at);
        for (point, (raw, simulated)) in here.points.iter_mut().zip(raw.iter().zip(simulated)) {
            point.factor = [simulated.0 / raw.0, simulated.1 / raw.1];
        }
        square(&here.residuals(at))
    }

    fn usual(&self) -> Values {
        self.usual.map(|usual| usual.middle)
    }

    /// The best from one start.
    pub fn from(&self, start: &Values) -> (Values, f64) {
        let place = |moved: &[f64]| {
            let mut at = *start;
            for (key, value) in self.keys.iter().zip(moved) {
                at[*key as usize] = *value;
            }
            at
        };
        let from: Vec<f64> = self.keys.iter().map(|key| start[*key as usize]).collect();
        let bounds: Vec<Bounds> = self
            .keys
            .iter()
            .map(|key| self.usual[*key as usize].bounds)
            .collect();
        let found = fit(
            |moved| self.residuals(&place(moved)),
            &from,
            &bounds,
            MOST_STEPS,
        );
        (place(&found.parameters), square(&found.residuals))
    }

    /// The best of several starts.
    pub fn best(&self) -> Result<Values, StudyFitError> {
        let mut best: Option<(Values, f64)> = None;
        for share in [0.15, 0.6] {
            for knee in [0.35, 0.6, 0.8] {
                for host in [0.02, 0.3] {
                    let mut start = self.usual();
                    start[MemoryShare as usize] = 1.0 + share;
                    start[Knee as usize] = 1.0 + knee;
                    start[Host as usize] = 1.0 + host;
                    let (found, cost) = self.from(&start);
                    if cost.is_finite() && best.is_none_or(|(_, least)| cost < least) {
                        best = Some((found, cost));
                    }
                }
            }
        }
        best.map(|(found, _)| found).ok_or(StudyFitError::NoResult)
    }
}

fn square(residuals: &[f64]) -> f64 {
    residuals.iter().map(|r| r * r).sum()
}

/// Its square grows like that of small deviations, and in a straight line with odd ones.
fn softened(against: f64) -> f64 {
    let part = against / ODD;
    let square = 2.0 * ODD * ODD * ((1.0 + part * part).sqrt() - 1.0);
    square.sqrt().copysign(against)
}
