//! What a GPU can be like: many possible workloads on it, each a smooth curve of time and energy.
//!
//! Part of the time the GPU waits for the host; the rest is two kinds of work with a power of their own,
//! each partly bound by the core clock. Power is static and dynamic, the dynamic part follows the clock and
//! the square of the voltage, which rises above a knee; a cap lowers the clock until the power fits.

use std::ops::Range;

use super::belief::Pair;
use crate::search::{Knob, Space};

/// A possible workload, all powers as shares of that of its heavier work at full clock.
struct Workload {
    waiting: f64,
    waiting_power: f64,
    static_power: f64,
    voltage: Voltage,
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

const DIMENSIONS: usize = 10;
/// A point of the cube of parameters.
type Draw = [f64; DIMENSIONS];
const LEAST_CLOCK: f64 = 0.08;
const LEAST_VOLTAGE: f64 = 0.5;

/// A workload that stands for all that are like it.
struct Possible {
    draw: Draw,
    /// Half the width of what it stands for, in each parameter.
    reach: f64,
    workload: Workload,
    /// At the reference.
    time: f64,
    energy: f64,
}

/// Possible workloads that draw the same power at the reference.
pub(super) struct Workloads {
    reference: Limits,
    power: f64,
    all: Vec<Possible>,
    /// What is asked for again and again: a place, and each workload there.
    columns: Vec<(usize, Vec<Pair>)>,
}

impl Workloads {
    /// Some that draw `power` watts on each GPU at the reference.
    pub(super) fn new(space: &Space, power: f64, count: usize) -> Self {
        let reach = 0.5 * libm::pow(count as f64, -1.0 / DIMENSIONS as f64);
        let mut workloads = Self {
            reference: Limits::of(space, &space.places()[space.reference()]),
            power,
            all: Vec::with_capacity(count),
            columns: Vec::new(),
        };
        for number in 0..count {
            workloads.add(even(number), reach);
        }
        workloads
    }

    fn add(&mut self, draw: Draw, reach: f64) {
        let cap = self.reference.cap;
        let workload = Workload::new(&draw, self.power, cap);
        let (time, energy) = workload.at(cap, 1.0);
        self.all.push(Possible {
            draw,
            reach,
            workload,
            time,
            energy,
        });
    }

    /// Puts `parts` workloads in the place of one, each for a part of what it stands for: itself and others
    /// around it. The numbers of the others.
    pub(super) fn divide(&mut self, space: &Space, number: usize, parts: usize) -> Range<usize> {
        let own = &mut self.all[number];
        let (centre, reach) = (own.draw, own.reach);
        let narrower = reach * libm::pow(parts as f64, -1.0 / DIMENSIONS as f64);
        own.reach = narrower;
        let first = self.all.len();
        for new in first..first + parts - 1 {
            let offsets = even(new);
            let draw = std::array::from_fn(|dimension| {
                let value = centre[dimension] + reach * (2.0 * offsets[dimension] - 1.0);
                // Mirrored at the faces of the cube.
                let value = value.abs();
                if value > 1.0 { 2.0 - value } else { value }
            });
            self.add(draw, narrower);
        }
        let new = first..self.all.len();
        let mut columns = std::mem::take(&mut self.columns);
        for (place, column) in &mut columns {
            column.extend(new.clone().map(|number| self.at(space, number, *place)));
        }
        self.columns = columns;
        new
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
        let own = &self.all[number];
        let here = Limits::of(space, &space.places()[place]);
        let clock = match (here.clock, self.reference.clock) {
            (Some(here), Some(reference)) => here / reference,
            _ => 1.0,
        };
        let (time, energy) = own.workload.at(here.cap, clock);
        [libm::log(time / own.time), libm::log(energy / own.energy)]
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
    /// With these parameters, drawing `power` watts under a cap.
    fn new(draw: &Draw, power: f64, cap: Option<f64>) -> Self {
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
            voltage: Voltage::new(within(8, 0.4, 0.95), 1.2 * draw[9]),
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
                Some(cap) if cap < full => {
                    self.voltage.clock_within((cap - still) / (full - still))
                }
                _ => f64::INFINITY,
            };
            let clock = clock.min(fits).max(LEAST_CLOCK);
            let power = still + (full - still).max(0.0) * self.voltage.dynamic(clock);
            let power = cap.map_or(power, |cap| power.min(cap.max(still)));
            let own = (1.0 - self.waiting) * work.share;
            let own = own * (1.0 - work.clock_bound + work.clock_bound / clock);
            time += own;
            energy += own * power;
        }
        (time, energy + self.beside * time)
    }
}

/// Constant up to a knee and rising in a straight line above it, through 1 at full clock.
struct Voltage {
    knee: f64,
    floor: f64,
    slope: f64,
}

impl Voltage {
    fn new(knee: f64, slope: f64) -> Self {
        let floor = (1.0 - slope * (1.0 - knee)).max(LEAST_VOLTAGE);
        Self {
            knee,
            floor,
            slope: (1.0 - floor) / (1.0 - knee),
        }
    }

    fn at(&self, clock: f64) -> f64 {
        self.floor + self.slope * (clock - self.knee).max(0.0)
    }

    /// Dynamic power at a clock, as a share of that at full clock.
    fn dynamic(&self, clock: f64) -> f64 {
        let voltage = self.at(clock);
        clock * voltage * voltage
    }

    /// The clock whose dynamic power is this share.
    fn clock_within(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return LEAST_CLOCK;
        }
        let below_knee = share / (self.floor * self.floor);
        if below_knee <= self.knee {
            return below_knee;
        }
        // Newton's steps: the function rises and is convex, and the start is not below the root.
        let mut clock: f64 = 1.0;
        for _ in 0..4 {
            let voltage = self.at(clock);
            let rise = voltage * (voltage + 2.0 * clock * self.slope);
            clock -= (clock * voltage * voltage - share) / rise;
        }
        clock.max(self.knee)
    }
}

/// The point of this number in a sequence that fills the unit cube evenly (Roberts' additive recurrence).
fn even(number: usize) -> Draw {
    // The root of x^11 = x + 1.
    const ROOT: f64 = 1.068_297_188_920_841_2;
    let mut step = 1.0;
    std::array::from_fn(|_| {
        step /= ROOT;
        (0.5 + step * (number + 1) as f64).fract()
    })
}
