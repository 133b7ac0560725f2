//! What a GPU can be like: many possible workloads on it, each a smooth curve of time and energy.
//!
//! Part of the time the GPU waits for the host; the rest is two kinds of work with a power of their own,
//! each partly bound by the core clock. Power is static and dynamic, the dynamic part follows the clock and
//! the square of the voltage, which rises above a knee; a cap lowers the clock until the power fits.

use super::belief::Pair;
use crate::search::{Knob, Space};

/// A possible workload, all powers as shares of that of its heavier work at full clock.
struct Workload {
    waiting: f64,
    waiting_power: f64,
    static_power: f64,
    rise: f64,
    knee: f64,
    works: [Work; 2],
    /// Drawn all the time by what no knob reaches, in watts.
    beside: f64,
    /// Full power of the heavier work in watts.
    full: f64,
}

struct Work {
    share: f64,
    power: f64,
    clock_bound: f64,
}

const DIMENSIONS: usize = 9;
const LEAST_CLOCK: f64 = 0.08;

/// Possible workloads that draw the same power at the reference.
pub(super) struct Workloads {
    reference: Limits,
    /// Each with its time and energy at the reference.
    all: Vec<(Workload, f64, f64)>,
    /// What is asked for again and again: a place, and each workload there.
    columns: Vec<(usize, Vec<Pair>)>,
}

impl Workloads {
    /// Some that draw `power` watts on each GPU at the reference.
    pub(super) fn new(space: &Space, power: f64, count: usize) -> Self {
        let reference = Limits::of(space, &space.places()[space.reference()]);
        let all = (0..count).map(|number| {
            let workload = Workload::number(number, power, reference.cap);
            let (time, energy) = workload.at(reference.cap, 1.0);
            (workload, time, energy)
        });
        Self {
            all: all.collect(),
            reference,
            columns: Vec::new(),
        }
    }

    /// Keeps all workloads at a place.
    pub(super) fn look(&mut self, space: &Space, place: usize) {
        if self.column(place).is_none() {
            let all = 0..self.all.len();
            let column = all.map(|number| self.at(space, number, place)).collect();
            self.columns.push((place, column));
        }
    }

    /// All workloads at a place that was looked at.
    pub(super) fn column(&self, place: usize) -> Option<&[Pair]> {
        let mut columns = self.columns.iter();
        columns
            .find(|(known, _)| *known == place)
            .map(|(_, column)| column.as_slice())
    }

    /// Of a workload at a place.
    pub(super) fn at(&self, space: &Space, number: usize, place: usize) -> Pair {
        let (workload, time, energy) = &self.all[number];
        let here = Limits::of(space, &space.places()[place]);
        let clock = match (here.clock, self.reference.clock) {
            (Some(here), Some(reference)) => here / reference,
            _ => 1.0,
        };
        let (t, e) = workload.at(here.cap, clock);
        [libm::log(t / time), libm::log(e / energy)]
    }
}

/// What a place allows.
struct Limits {
    cap: Option<f64>,
    clock: Option<f64>,
}

impl Limits {
    fn of(space: &Space, place: &[f64]) -> Self {
        let value = |wanted: Knob| {
            let index = space.knobs().iter().position(|knob| *knob == wanted)?;
            Some(place[index].max(1e-3))
        };
        Self {
            cap: value(Knob::PowerCap),
            clock: value(Knob::CoreClock),
        }
    }
}

impl Workload {
    /// The workload of this number in a sequence that fills the space of parameters evenly.
    fn number(number: usize, power: f64, cap: Option<f64>) -> Self {
        let draw = even(number);
        let within = |dimension: usize, low: f64, high: f64| low + (high - low) * draw[dimension];
        let mut waiting = match draw[0] {
            share if share < 0.8 => 0.6 * share / 0.8,
            share => 0.6 + 0.37 * (share - 0.8) / 0.2,
        };
        let waiting_power = within(1, 0.06, 0.45);
        let static_power = 0.05 + 0.6 * draw[2] * draw[2];
        let share = draw[3];
        let lighter = within(4, 0.6, 1.0);
        let works = [
            Work {
                share,
                power: 1.0,
                clock_bound: draw[5] * draw[5],
            },
            Work {
                share: 1.0 - share,
                power: lighter,
                clock_bound: draw[6] * draw[6],
            },
        ];
        let busy = share + (1.0 - share) * lighter;
        let mut beside = 0.0;
        let mut full = power / (waiting * waiting_power + (1.0 - waiting) * busy);
        if let Some(cap) = cap
            && full > cap
        {
            // It is held back at the reference already, or less of it is the GPU's than it seems.
            full = cap * within(7, 1.0, 1.35);
            let capped: f64 = works
                .iter()
                .map(|work| work.share * (work.power * full).min(cap))
                .sum();
            waiting = ((capped - power) / (capped - waiting_power * full)).clamp(0.0, 0.97);
            let drawn = waiting * waiting_power * full + (1.0 - waiting) * capped;
            beside = (power - drawn).max(0.0);
        }
        Self {
            waiting,
            waiting_power,
            static_power,
            rise: 1.2 * draw[8],
            knee: within(7, 0.5, 0.95),
            works,
            beside,
            full,
        }
    }

    /// Time and energy under a cap and at a share of the reference's clock, where the reference takes about 1.
    fn at(&self, cap: Option<f64>, clock: f64) -> (f64, f64) {
        let mut time = self.waiting;
        let mut energy = self.waiting * self.waiting_power * self.full;
        for work in &self.works {
            let full = work.power * self.full;
            let still = self.static_power * self.full;
            let fits = match cap {
                Some(cap) if cap < full => self.clock_within((cap - still) / (full - still)),
                _ => f64::INFINITY,
            };
            let clock = clock.min(fits).max(LEAST_CLOCK);
            let power = still + (full - still).max(0.0) * self.dynamic(clock);
            let power = cap.map_or(power, |cap| power.min(cap.max(still)));
            let own = (1.0 - self.waiting) * work.share;
            let own = own * (1.0 - work.clock_bound + work.clock_bound / clock);
            time += own;
            energy += own * power;
        }
        (time, energy + self.beside * time)
    }

    fn voltage(&self, clock: f64) -> f64 {
        1.0 + self.rise * (clock - self.knee).max(0.0)
    }

    /// Dynamic power as a share of that at full clock.
    fn dynamic(&self, clock: f64) -> f64 {
        let voltage = self.voltage(clock) / self.voltage(1.0);
        clock * voltage * voltage
    }

    /// The clock whose dynamic power is this share.
    fn clock_within(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return LEAST_CLOCK;
        }
        let full = self.voltage(1.0);
        let below_knee = share * full * full;
        if below_knee <= self.knee {
            return below_knee;
        }
        // Newton's steps: the function rises and is convex, and the start is not below the root.
        let mut clock: f64 = 1.0;
        for _ in 0..4 {
            let voltage = self.voltage(clock);
            let slope = voltage * voltage + 2.0 * clock * voltage * self.rise;
            clock -= (clock * voltage * voltage - below_knee) / slope;
        }
        clock.max(self.knee)
    }
}

/// The point of this number in a sequence that fills the unit cube evenly (Roberts' additive recurrence).
fn even(number: usize) -> [f64; DIMENSIONS] {
    // The root of x^10 = x + 1.
    const ROOT: f64 = 1.075_766_066_086_837_2;
    let mut step = 1.0;
    std::array::from_fn(|_| {
        step /= ROOT;
        (0.5 + step * (number + 1) as f64).fract()
    })
}
