//! The steady state of a GPU under a load that repeats.

use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::chip::{Chip, overlapped};
use super::state::{Limits, Load};

/// How a GPU runs an iteration that has been repeated for long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// The time of an iteration.
    pub time: Seconds,
    /// The average power.
    pub power: Watts,
    /// The core clock, relative to the default clock.
    pub clock: Ratio,
}

/// The number of steps that halve the range of the clock.
const CLOCK_STEPS: usize = 40;
/// The number of times that power and temperature are computed from each other; each reduces the error a hundredfold.
const TEMPERATURE_STEPS: usize = 4;

/// The number of times that the clock and the share of time with kernels are computed from each other.
const BUSY_STEPS: usize = 4;

impl Chip {
    /// The steady state under the loads of an iteration that is shorter than the governor of the cap takes to move the
    /// clock: the clock then stays where its falls and rises within an iteration are equal.
    pub fn steady(&self, limits: &Limits, loads: &[Load]) -> Steady {
        let mut power = self.waiting_at(0.0);
        let mut steady = Steady {
            time: Seconds::ZERO,
            power: Watts::new(power),
            clock: Ratio::new(limits.highest_clock),
        };
        for _ in 0..TEMPERATURE_STEPS {
            let waiting = self.waiting_at(power);
            let clock = self.steady_clock(limits, loads, waiting);
            let (mut time, mut energy) = (0.0, 0.0);
            for load in loads {
                let (length, drawn) = self.draw(limits, load, waiting, clock);
                time += length;
                energy += length * drawn;
            }
            power = if time > 0.0 { energy / time } else { waiting };
            steady = Steady {
                time: Seconds::new(time),
                power: Watts::new(power),
                clock: Ratio::new(clock),
            };
        }
        steady
    }

    /// The clock at which falls and rises within an iteration are equal.
    fn steady_clock(&self, limits: &Limits, loads: &[Load], waiting: f64) -> f64 {
        let targets: Vec<f64> = loads
            .iter()
            .map(|load| self.steady_target(limits, load, waiting))
            .collect();
        let movement = |clock: f64| {
            let parts = loads.iter().zip(&targets);
            let moves = parts.map(|(load, target)| {
                let (time, _) = self.draw(limits, load, waiting, clock);
                time * (target - clock) / self.approach_constant(clock, *target)
            });
            moves.sum::<f64>()
        };
        let highest = limits.highest_clock;
        let (mut low, mut high) = targets
            .iter()
            .fold((highest, 0.0_f64), |(low, high), target| {
                (low.min(*target), high.max(*target))
            });
        if targets.is_empty() || low >= high {
            return low;
        }
        for _ in 0..CLOCK_STEPS {
            let middle = 0.5 * (low + high);
            match movement(middle) > 0.0 {
                true => low = middle,
                false => high = middle,
            }
        }
        0.5 * (low + high)
    }

    /// The clock that the governor aims for under a load.
    fn steady_target(&self, limits: &Limits, load: &Load, waiting: f64) -> f64 {
        let mut target = limits.highest_clock;
        let Some(parts) = self.parts(limits, load) else {
            return target;
        };
        for _ in 0..BUSY_STEPS {
            let busy = parts.busy(target);
            let below_core = waiting + parts.memory_power * busy;
            target = self.target(target, limits, below_core, parts.core_power * busy);
        }
        target
    }

    /// The time of a load at a clock, and its power; a GPU that waits draws `waiting`.
    fn draw(&self, limits: &Limits, load: &Load, waiting: f64, clock: f64) -> (f64, f64) {
        match (load, self.parts(limits, load)) {
            (_, Some(parts)) => {
                let running =
                    parts.memory_power + parts.core_power * self.voltage.switching_power(clock);
                (parts.time(clock), waiting + running * parts.busy(clock))
            }
            (Load::Waiting { host }, None) => (host.get(), waiting),
            (_, None) => (0.0, waiting),
        }
    }

    /// The times and powers of a load that runs kernels; `None` for others.
    fn parts(&self, limits: &Limits, load: &Load) -> Option<KernelParts> {
        let (launch, core, memory, fixed, switching, memory_activity) = match *load {
            Load::None | Load::Waiting { .. } => return None,
            Load::Kernels {
                launch,
                core,
                memory,
                switching,
                memory_activity,
            } => (
                launch.get(),
                core.get(),
                memory.get() * limits.memory_slowness,
                0.0,
                switching,
                memory_activity,
            ),
            Load::Exchange {
                time,
                switching,
                memory_activity,
            } => (0.0, 0.0, 0.0, time.get(), switching, memory_activity),
        };
        Some(KernelParts {
            launch,
            core,
            rest: memory + fixed,
            core_power: self.core * switching.get(),
            memory_power: self.memory * memory_activity.get() * limits.memory_speed,
        })
    }

    /// The power of a GPU that runs no kernel but has an open program, at the temperature that a power leads to.
    pub fn waiting_power(&self, at: Watts) -> Watts {
        Watts::new(self.waiting_at(at.get()))
    }

    /// The power of the cores at the default clock and full switching.
    pub fn core_power(&self) -> Watts {
        Watts::new(self.core)
    }

    /// The power of the memory at the default memory clock and full activity.
    pub fn memory_power(&self) -> Watts {
        Watts::new(self.memory)
    }

    /// The same as [`Chip::waiting_power`], in plain numbers.
    fn waiting_at(&self, power: f64) -> f64 {
        let temperature = self.ambient + self.degrees_per_watt * power;
        let warmer = temperature - self.idle_temperature;
        self.idle * (1.0 + self.leakage_per_degree * warmer) + self.context
    }

    /// The time constant with which the clock approaches its target.
    fn approach_constant(&self, clock: f64, target: f64) -> f64 {
        match clock > target {
            true => self.settling.constant,
            false => self.recovery.constant,
        }
    }
}

/// The times of a load that runs kernels, in seconds at the default core clock, and its powers in watts.
struct KernelParts {
    launch: f64,
    core: f64,
    /// The time that does not depend on the core clock.
    rest: f64,
    core_power: f64,
    memory_power: f64,
}

impl KernelParts {
    /// The time at a clock.
    fn time(&self, clock: f64) -> f64 {
        overlapped(self.launch, self.core / clock + self.rest)
    }

    /// The share of the time in which kernels run.
    fn busy(&self, clock: f64) -> f64 {
        let time = self.time(clock);
        if time > 0.0 {
            ((self.core / clock + self.rest) / time).min(1.0)
        } else {
            0.0
        }
    }
}
