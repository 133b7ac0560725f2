//! A physical model of workloads on a GPU: each has a smooth curve of time and energy over the power cap and the
//! core clock.
//!
//! For a share of the time the GPU waits for the host. The rest consists of two phases, each with its own power and
//! with a share of its time that is inversely proportional to the core clock. Power has a static and a dynamic part.
//! The dynamic part is proportional to the clock and to the square of the voltage, which rises with the clock above
//! a knee. A power cap lowers the clock until the power does not exceed the cap.

use std::ops::Range;
use std::sync::Arc;

use super::deviation::Deviation;
use super::posterior::LogRatios;
use crate::search::{KnobKind, SearchSpace};

/// A simulated workload. Powers are shares of the power of its heavier phase at full clock, unless a unit is given.
struct Workload {
    /// The share of the time at the reference during which the GPU waits for the host.
    wait_share: f64,
    wait_power: f64,
    /// The part of the power that does not depend on the clock.
    static_power: f64,
    voltage: Voltage,
    phases: [Phase; 2],
    /// The constant power that no knob affects, in watts.
    background_power: f64,
    /// The power of the heavier phase at full clock, in watts.
    full_power: f64,
}

/// One of the two phases in which the GPU computes.
struct Phase {
    /// The share of the computing time at full clock that this phase takes.
    share: f64,
    /// The power at full clock.
    power: f64,
    /// The share of the phase's time that is inversely proportional to the clock.
    clock_bound: f64,
}

/// The number of parameters that describe a simulated workload.
const PARAMETER_COUNT: usize = 10;
/// The parameters that describe a simulated workload, each scaled to the range from 0 to 1.
type Parameters = [f64; PARAMETER_COUNT];
/// The lowest clock of the model, relative to full clock.
const MIN_CLOCK: f64 = 0.08;
/// The lowest voltage of the model, relative to the voltage at full clock.
const MIN_VOLTAGE: f64 = 0.5;

/// A simulated workload that represents all workloads with similar parameters.
struct PossibleWorkload {
    parameters: Parameters,
    /// Half the width of the range that the workload represents, the same for each parameter.
    half_width: f64,
    workload: Workload,
    /// The workload's time at the reference, in arbitrary units.
    reference_time: f64,
    /// The workload's energy at the reference, in watts times the unit of `reference_time`.
    reference_energy: f64,
    /// How an earlier study deviates from the workload that explains it best; absent for a workload of the model
    /// alone.
    deviation: Option<Arc<Deviation>>,
}

/// Simulated workloads that all draw the same power at the reference.
pub(super) struct PossibleWorkloads {
    reference: KnobSettings,
    power: f64,
    all: Vec<PossibleWorkload>,
    /// Cached predictions: the index of a point, and the time and energy of every workload at that point.
    columns: Vec<(usize, Vec<LogRatios>)>,
}

impl PossibleWorkloads {
    /// Creates `count` simulated workloads that draw `power` watts per GPU at the reference.
    pub(super) fn new(space: &SearchSpace, power: f64, count: usize) -> Self {
        let half_width = 0.5 * libm::pow(count as f64, -1.0 / PARAMETER_COUNT as f64);
        let mut workloads = Self {
            reference: KnobSettings::from_point(space, &space.points()[space.reference()]),
            power,
            all: Vec::with_capacity(count),
            columns: Vec::new(),
        };
        for number in 0..count {
            workloads.add(low_discrepancy(number), half_width, None);
        }
        workloads
    }

    /// Adds a workload with the parameters of the initial one of this index, and with the deviation of an earlier study
    /// from it.
    pub(super) fn add_study(&mut self, number: usize, deviation: Arc<Deviation>) {
        let half_width = self.all[number].half_width;
        self.add(low_discrepancy(number), half_width, Some(deviation));
    }

    /// Adds the workload that has these parameters.
    fn add(&mut self, parameters: Parameters, half_width: f64, deviation: Option<Arc<Deviation>>) {
        let cap = self.reference.cap;
        let workload = Workload::new(&parameters, self.power, cap);
        let (time, energy) = workload.time_and_energy(cap, 1.0);
        self.all.push(PossibleWorkload {
            parameters,
            half_width,
            workload,
            reference_time: time,
            reference_energy: energy,
            deviation,
        });
    }

    /// Divides the range of parameters that a workload represents among the workload and `parts - 1` new ones around
    /// it. Returns the indices of the new workloads.
    pub(super) fn subdivide(
        &mut self,
        space: &SearchSpace,
        number: usize,
        parts: usize,
    ) -> Range<usize> {
        let own = &mut self.all[number];
        let (centre, half_width) = (own.parameters, own.half_width);
        let narrower = half_width * libm::pow(parts as f64, -1.0 / PARAMETER_COUNT as f64);
        own.half_width = narrower;
        let deviation = own.deviation.clone();
        let first = self.all.len();
        for new in first..first + parts - 1 {
            let offsets = low_discrepancy(new);
            let parameters = std::array::from_fn(|dimension| {
                let value = centre[dimension] + half_width * (2.0 * offsets[dimension] - 1.0);
                // The value is mirrored at 0 and 1.
                let value = value.abs();
                if value > 1.0 { 2.0 - value } else { value }
            });
            self.add(parameters, narrower, deviation.clone());
        }
        let new = first..self.all.len();
        let mut columns = std::mem::take(&mut self.columns);
        for (point, column) in &mut columns {
            column.extend(
                new.clone()
                    .map(|number| self.log_ratios(space, number, *point)),
            );
        }
        self.columns = columns;
        new
    }

    /// Computes and caches the time and energy of all workloads at a point.
    pub(super) fn add_column(&mut self, space: &SearchSpace, point: usize) {
        if self.column(point).is_none() {
            let all = 0..self.all.len();
            let column = all
                .map(|number| self.log_ratios(space, number, point))
                .collect();
            self.columns.push((point, column));
        }
    }

    /// The cached time and energy of all workloads at a point; `None` if [`Self::add_column`] was not called for it.
    pub(super) fn column(&self, point: usize) -> Option<&[LogRatios]> {
        let mut columns = self.columns.iter();
        columns
            .find(|(known, _)| *known == point)
            .map(|(_, column)| column.as_slice())
    }

    /// The time and the energy of a workload at a point, as log ratios to those at the reference.
    pub(super) fn log_ratios(&self, space: &SearchSpace, number: usize, point: usize) -> LogRatios {
        let own = &self.all[number];
        let here = KnobSettings::from_point(space, &space.points()[point]);
        let clock = match (here.clock, self.reference.clock) {
            (Some(here), Some(reference)) => here / reference,
            _ => 1.0,
        };
        let (time, energy) = own.workload.time_and_energy(here.cap, clock);
        let deviation = own.deviation.as_ref().map_or([0.0; 2], |deviation| {
            let points = space.points();
            deviation.log_ratios(&points[point], &points[space.reference()], self.power)
        });
        [
            libm::log(time / own.reference_time) + deviation[0],
            libm::log(energy / own.reference_energy) + deviation[1],
        ]
    }
}

/// The power cap in watts and the core clock in megahertz of a point; absent if the search has no such knob.
struct KnobSettings {
    cap: Option<f64>,
    clock: Option<f64>,
}

impl KnobSettings {
    /// Reads the power cap and the core clock from a point's coordinates.
    fn from_point(space: &SearchSpace, point: &[f64]) -> Self {
        let value = |wanted: KnobKind| {
            let index = space.knobs().iter().position(|knob| *knob == wanted)?;
            Some(point[index].max(1e-3))
        };
        Self {
            cap: value(KnobKind::PowerCap),
            clock: value(KnobKind::CoreClock),
        }
    }
}

impl Workload {
    /// Creates the workload that has these parameters and draws `power` watts under the power cap of the reference.
    fn new(parameters: &Parameters, power: f64, cap: Option<f64>) -> Self {
        let within =
            |dimension: usize, low: f64, high: f64| low + (high - low) * parameters[dimension];
        let mut wait_share = match parameters[0] {
            share if share < 0.8 => 0.6 * share / 0.8,
            share => 0.6 + 0.37 * (share - 0.8) / 0.2,
        };
        let wait_power = within(1, 0.06, 0.45);
        let static_power = 0.05 + 0.6 * parameters[2] * parameters[2];
        let share = parameters[3];
        let lighter = within(4, 0.6, 1.0);
        let phases = [
            Phase {
                share,
                power: 1.0,
                clock_bound: parameters[5] * parameters[5],
            },
            Phase {
                share: 1.0 - share,
                power: lighter,
                clock_bound: parameters[6] * parameters[6],
            },
        ];
        let busy = share + (1.0 - share) * lighter;
        let mut background_power = 0.0;
        let mut full_power = power / (wait_share * wait_power + (1.0 - wait_share) * busy);
        if let Some(cap) = cap
            && full_power > cap
        {
            // Either the cap already limits the workload at the reference, or a part of the power is not the GPU's.
            full_power = cap * within(7, 1.0, 1.35);
            let capped: f64 = phases
                .iter()
                .map(|phase| phase.share * (phase.power * full_power).min(cap))
                .sum();
            wait_share = ((capped - power) / (capped - wait_power * full_power)).clamp(0.0, 0.97);
            let drawn = wait_share * wait_power * full_power + (1.0 - wait_share) * capped;
            background_power = (power - drawn).max(0.0);
        }
        Self {
            wait_share,
            wait_power,
            static_power,
            voltage: Voltage::new(within(8, 0.4, 0.95), 1.2 * parameters[9]),
            phases,
            background_power,
            full_power,
        }
    }

    /// The time and the energy under a power cap in watts and at a clock relative to the reference's; the time is about
    /// 1 at the reference.
    fn time_and_energy(&self, cap: Option<f64>, clock: f64) -> (f64, f64) {
        let mut time = self.wait_share;
        let mut energy = self.wait_share * self.wait_power * self.full_power;
        for phase in &self.phases {
            let full_power = phase.power * self.full_power;
            let static_power = self.static_power * self.full_power;
            let highest_clock = match cap {
                Some(cap) if cap < full_power => self
                    .voltage
                    .clock_for_power((cap - static_power) / (full_power - static_power)),
                _ => f64::INFINITY,
            };
            let clock = clock.min(highest_clock).max(MIN_CLOCK);
            let power = static_power
                + (full_power - static_power).max(0.0) * self.voltage.dynamic_power(clock);
            let power = cap.map_or(power, |cap| power.min(cap.max(static_power)));
            let phase_time = (1.0 - self.wait_share) * phase.share;
            let phase_time = phase_time * (1.0 - phase.clock_bound + phase.clock_bound / clock);
            time += phase_time;
            energy += phase_time * power;
        }
        (time, energy + self.background_power * time)
    }
}

/// The voltage as a function of the clock, both relative to full clock: constant up to a knee, then rising linearly to
/// 1.
struct Voltage {
    /// The clock above which the voltage rises.
    knee: f64,
    /// The voltage below the knee.
    floor: f64,
    /// The rise of the voltage per clock above the knee.
    slope: f64,
}

impl Voltage {
    fn new(knee: f64, slope: f64) -> Self {
        let floor = (1.0 - slope * (1.0 - knee)).max(MIN_VOLTAGE);
        Self {
            knee,
            floor,
            slope: (1.0 - floor) / (1.0 - knee),
        }
    }

    /// The relative voltage at a relative clock.
    fn voltage_at(&self, clock: f64) -> f64 {
        self.floor + self.slope * (clock - self.knee).max(0.0)
    }

    /// The dynamic power at a relative clock, as a share of the dynamic power at full clock.
    fn dynamic_power(&self, clock: f64) -> f64 {
        let voltage = self.voltage_at(clock);
        clock * voltage * voltage
    }

    /// The relative clock at which the dynamic power is this share of the dynamic power at full clock.
    fn clock_for_power(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return MIN_CLOCK;
        }
        let below_knee = share / (self.floor * self.floor);
        if below_knee <= self.knee {
            return below_knee;
        }
        // Newton's method converges, because the function is increasing and convex and the start is not below the
        // root.
        let mut clock: f64 = 1.0;
        for _ in 0..4 {
            let voltage = self.voltage_at(clock);
            let rise = voltage * (voltage + 2.0 * clock * self.slope);
            clock -= (clock * voltage * voltage - share) / rise;
        }
        clock.max(self.knee)
    }
}

/// The element at this index of a sequence that fills the unit cube evenly (Roberts' additive recurrence).
fn low_discrepancy(number: usize) -> Parameters {
    // The solution of x^11 = x + 1.
    const ROOT: f64 = 1.068_297_188_920_841_2;
    let mut step = 1.0;
    std::array::from_fn(|_| {
        step /= ROOT;
        (0.5 + step * (number + 1) as f64).fract()
    })
}
