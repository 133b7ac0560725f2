//! A GPU's state and how it moves on under a load.

use sweetspot_quantity::{Celsius, Joules, Megahertz, Ratio, Seconds, Watts};

use super::cycle::Cycle;
use super::rate::Rate;
use super::voltage::Voltage;
use crate::profile::GpuProfile;

/// A GPU as the physics sees it: constants only, shared by every run.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    voltage: Voltage,
    default_clock: f64,
    lowest_clock: f64,
    default_memory_clock: f64,
    idle: f64,
    context: f64,
    memory: f64,
    core: f64,
    settling: Rate,
    recovery: Rate,
    ambient: f64,
    degrees_per_watt: f64,
    warming: Rate,
    idle_temperature: f64,
    leakage_per_degree: f64,
}

/// What is set on a GPU, as the physics sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    cap: f64,
    highest_clock: f64,
    memory_speed: f64,
    memory_slowness: f64,
}

/// What a program does to the GPU while one phase of it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// No program holds the GPU.
    None,
    /// A program holds the GPU and waits for its host.
    Waiting {
        /// How long.
        host: Seconds,
    },
    /// Kernels run.
    Kernels {
        /// What the host needs to launch them, while they run.
        launch: Seconds,
        /// What follows the core clock, at the default one.
        core: Seconds,
        /// What follows the memory clock, at the default one.
        memory: Seconds,
        /// Switching power against the chip's.
        switching: Ratio,
        /// Memory power against the chip's.
        memory_activity: Ratio,
    },
    /// Kernels wait for other GPUs, busily, for a time that no clock of this one changes.
    Exchange {
        /// How long.
        time: Seconds,
        /// Switching power against the chip's.
        switching: Ratio,
        /// Memory power against the chip's.
        memory_activity: Ratio,
    },
}

/// Everything about a GPU that changes: small, plain, copied at will.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    clock: f64,
    target: f64,
    temperature: f64,
    energy: f64,
    power: f64,
}

/// What one step of the physics did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// How long it was.
    pub time: Seconds,
    /// Mean power in it.
    pub power: Watts,
    /// The part of the load's work that it did.
    pub done: Ratio,
}

/// A clock this near to where the governor wants it is there already: 0.1 % of the default clock.
const SETTLED: f64 = 1e-3;
/// The farthest that the clock moves in a step, against the default clock: power may change steeply.
const MOST_MOVED: f64 = 0.02;
/// The longest step while the clock moves, in time constants of its governor.
const STRIDE: f64 = 1.0;
/// Rounds in which a step's length and its mean clock agree; each is some ten times nearer.
const MOST_ROUNDS: usize = 12;
/// The longest step at all, in thermal time constants.
const THERMAL_STRIDE: f64 = 0.03;

impl Chip {
    /// From a profile.
    pub fn new(profile: &GpuProfile) -> Self {
        let relative = |clock: Megahertz| (clock / profile.core.default).get();
        let thermal = &profile.thermal;
        let degrees_per_watt =
            (thermal.at_default_cap - thermal.ambient).get() / profile.cap.default.get();
        Self {
            voltage: Voltage::new(
                relative(profile.core.voltage_knee),
                profile.core.voltage_floor.get(),
            ),
            default_clock: profile.core.default.get(),
            lowest_clock: relative(profile.core.min),
            default_memory_clock: profile.memory.default.get(),
            idle: profile.power.idle.get(),
            context: profile.power.context.get(),
            memory: profile.power.memory.get(),
            core: profile.power.core.get(),
            settling: Rate::of(profile.cap.settling),
            recovery: Rate::of(profile.cap.recovery),
            ambient: thermal.ambient.get(),
            degrees_per_watt,
            warming: Rate::of(thermal.time_constant),
            idle_temperature: thermal.ambient.get() + degrees_per_watt * profile.power.idle.get(),
            leakage_per_degree: thermal.leakage_per_degree.get(),
        }
    }

    /// At rest for a long time.
    pub fn rest(&self) -> State {
        State {
            clock: 1.0,
            target: 1.0,
            temperature: self.idle_temperature,
            energy: 0.0,
            power: self.idle,
        }
    }

    /// A cap, and clocks where they are locked.
    pub fn limits(&self, cap: Watts, core: Option<Megahertz>, memory: Option<Megahertz>) -> Limits {
        let memory_speed = memory.map_or(1.0, |clock| clock.get() / self.default_memory_clock);
        Limits {
            cap: cap.get(),
            highest_clock: core.map_or(1.0, |clock| clock.get() / self.default_clock),
            memory_speed,
            memory_slowness: 1.0 / memory_speed,
        }
    }

    /// Moves on under `load` until its `left` part is done, for `at_most` so long, or until the power
    /// has changed so much that a new step is due, whatever comes first.
    pub fn step(
        &self,
        state: &mut State,
        limits: &Limits,
        load: &Load,
        left: Ratio,
        at_most: Seconds,
    ) -> Step {
        let left = left.get();
        let at_most = at_most.get().min(THERMAL_STRIDE * self.warming.constant);
        // A lock acts at once; only the cap's governor takes its time.
        state.clock = state.clock.min(limits.highest_clock);
        let warmer = state.temperature - self.idle_temperature;
        let idle = self.idle * (1.0 + self.leakage_per_degree * warmer);
        let (time, power, done) = match *load {
            Load::None => {
                self.drift(state, limits.highest_clock, at_most);
                (at_most, idle, 0.0)
            }
            Load::Waiting { host } => {
                let time = (host.get() * left).min(at_most);
                self.drift(state, limits.highest_clock, time);
                (time, idle + self.context, part(time, host.get(), left))
            }
            Load::Kernels {
                launch,
                core,
                memory,
                switching,
                memory_activity,
            } => {
                let kernels = |clock| core.get() / clock + memory.get() * limits.memory_slowness;
                let whole = |clock| overlapped(launch.get(), kernels(clock));
                let draw = Draw {
                    waiting: idle + self.context,
                    memory: self.memory * memory_activity.get() * limits.memory_speed,
                    core: self.core * switching.get(),
                };
                let busy = |clock| part(kernels(clock), whole(clock), 1.0);
                self.busily(state, limits, left, at_most, &draw, whole, busy)
            }
            Load::Exchange {
                time,
                switching,
                memory_activity,
            } => {
                let draw = Draw {
                    waiting: idle + self.context,
                    memory: self.memory * memory_activity.get() * limits.memory_speed,
                    core: self.core * switching.get(),
                };
                self.busily(state, limits, left, at_most, &draw, |_| time.get(), |_| 1.0)
            }
        };
        state.energy += power * time;
        state.power = power;
        self.warm(state, power, time);
        Step {
            time: Seconds::new(time),
            power: Watts::new(power),
            done: Ratio::new(done),
        }
    }

    /// How often a cycle of this length may be repeated before it must be computed again: while the
    /// clock has moved by a hair only, and the chip is as warm as it was.
    pub fn repeats(&self, cycle: &Cycle, length: Seconds) -> u64 {
        if length <= Seconds::ZERO {
            return 0;
        }
        let by_heat = THERMAL_STRIDE * self.warming.constant / length.get();
        by_heat.min(cycle.most()) as u64
    }

    /// Repeats a cycle: the state after so many more of them.
    pub fn repeat(
        &self,
        state: &mut State,
        cycle: &Cycle,
        times: u64,
        length: Seconds,
        energy: Joules,
    ) {
        state.clock += cycle.movement(times);
        state.energy += energy.get() * times as f64;
        self.warm(state, (energy / length).get(), length.get() * times as f64);
    }

    /// A step of kernels that take `whole` at a clock, `busy` of that time: its length, mean power and work
    /// done.
    #[expect(clippy::too_many_arguments, reason = "one step, seen from all sides")]
    fn busily(
        &self,
        state: &mut State,
        limits: &Limits,
        left: f64,
        at_most: f64,
        draw: &Draw,
        whole: impl Fn(f64) -> f64,
        busy: impl Fn(f64) -> f64,
    ) -> (f64, f64, f64) {
        // While kernels wait to be launched they draw nothing; the governor sees the mean.
        let now_busy = busy(state.target);
        let below_core = draw.waiting + draw.memory * now_busy;
        let target = self.target(state, limits, below_core, draw.core * now_busy);
        state.target = target;
        let (clock, time, done) = self.glide(state, target, left, at_most, whole);
        let running = draw.memory + draw.core * self.voltage.switching(clock);
        (time, draw.waiting + running * busy(clock), done)
    }

    /// The clock the governor wants: the highest that keeps power under the cap.
    fn target(&self, state: &State, limits: &Limits, below_core: f64, core_power: f64) -> f64 {
        let highest = limits.highest_clock;
        if below_core + core_power * self.voltage.switching(highest) <= limits.cap {
            return highest;
        }
        let allowed = ((limits.cap - below_core) / core_power).max(0.0);
        self.voltage
            .clock_for(allowed, state.target)
            .clamp(self.lowest_clock.min(highest), highest)
    }

    /// Lets the clock follow its target for one step: as long as the work left takes, and short while
    /// the clock still moves. Gives the step's mean clock, its length and the work done.
    fn glide(
        &self,
        state: &mut State,
        target: f64,
        left: f64,
        at_most: f64,
        whole: impl Fn(f64) -> f64,
    ) -> (f64, f64, f64) {
        let away = state.clock - target;
        if away.abs() < SETTLED {
            let whole = whole(target);
            let time = (whole * left).min(at_most);
            state.clock = target;
            return (target, time, part(time, whole, left));
        }
        let rate = if away > 0.0 {
            self.settling
        } else {
            self.recovery
        };
        let stride = at_most.min(rate.constant * STRIDE.min(MOST_MOVED / away.abs()));
        let at = |time: f64| {
            let glide = rate.over(time);
            (target + away * glide.mean, target + away * glide.end)
        };
        let (mut mean, mut end) = at(stride);
        let mut time = stride;
        let mut done = part(stride, whole(mean), left);
        if done == left {
            // The work ends within the stride: its length and its mean clock depend on each other.
            for _ in 0..MOST_ROUNDS {
                let needed = stride.min(whole(mean) * left);
                let settled = (needed - time).abs() <= 1e-9 * stride;
                time = needed;
                (mean, end) = at(time);
                if settled {
                    break;
                }
            }
            done = left;
        }
        state.clock = end;
        (mean, time, done)
    }

    /// The clock while no kernel runs: back up to where it may be.
    fn drift(&self, state: &mut State, highest: f64, time: f64) {
        state.clock = highest - (highest - state.clock) * self.recovery.over(time).end;
    }

    /// Temperature follows power with one time constant.
    fn warm(&self, state: &mut State, power: f64, time: f64) {
        let steady = self.ambient + self.degrees_per_watt * power;
        let away = state.temperature - steady;
        state.temperature = steady + away * self.warming.over(time).end;
    }
}

/// What is drawn while kernels run: by a waiting program, by memory, and by the cores at the default clock.
struct Draw {
    waiting: f64,
    memory: f64,
    core: f64,
}

/// How long kernels take whose launches take so long beside them: about the longer of the two, and somewhat
/// more where they are alike, because some of the kernels are then shorter than their own launch.
fn overlapped(launch: f64, kernels: f64) -> f64 {
    if launch <= 0.0 {
        return kernels;
    }
    let (shorter, longer) = (launch.min(kernels), launch.max(kernels));
    let square = |x: f64| x * x;
    let alike = square(square(square(shorter / longer)));
    longer * (1.0 + alike).sqrt().sqrt().sqrt()
}

/// The part done in `time` of something that takes `whole`, and all that is left when it is over.
fn part(time: f64, whole: f64, left: f64) -> f64 {
    if whole <= 0.0 || time >= whole * left {
        left
    } else {
        time / whole
    }
}

impl State {
    /// As plain numbers, to keep it outside of the program.
    pub const fn to_array(self) -> [f64; 5] {
        [
            self.clock,
            self.target,
            self.temperature,
            self.energy,
            self.power,
        ]
    }

    /// Back from [`State::to_array`].
    pub const fn from_array([clock, target, temperature, energy, power]: [f64; 5]) -> Self {
        Self {
            clock,
            target,
            temperature,
            energy,
            power,
        }
    }

    /// Drawn since the state was made.
    pub fn energy(&self) -> Joules {
        Joules::new(self.energy)
    }

    /// Drawn in the last step.
    pub fn power(&self) -> Watts {
        Watts::new(self.power)
    }

    /// Of the chip.
    pub fn temperature(&self) -> Celsius {
        Celsius::new(self.temperature)
    }

    /// The core clock against the default one.
    pub fn clock(&self) -> Ratio {
        Ratio::new(self.clock)
    }
}
