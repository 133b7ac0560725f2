//! The physics of a GPU: how its state changes under a load.

use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};

use super::cycle::Cycle;
use super::decay::DecayRate;
use super::state::{Bounds, Limits, Load, State, Step};
use super::voltage::Voltage;
use crate::profile::GpuProfile;

/// The physical constants of a GPU, from which its power, clock and temperature are computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    pub(super) voltage: Voltage,
    default_clock: f64,
    pub(super) lowest_clock: f64,
    default_memory_clock: f64,
    pub(super) idle: f64,
    pub(super) context: f64,
    pub(super) memory: f64,
    pub(super) core: f64,
    pub(super) settling: DecayRate,
    pub(super) recovery: DecayRate,
    pub(super) ambient: f64,
    pub(super) degrees_per_watt: f64,
    warming: DecayRate,
    pub(super) idle_temperature: f64,
    pub(super) leakage_per_degree: f64,
}

/// The clock counts as settled if its distance from the governor's target, relative to the default clock, is
/// below this.
const SETTLED_DISTANCE: f64 = 1e-3;
/// In one step the clock changes by at most this, relative to the default clock. Power changes steeply with
/// the clock.
const MAX_CLOCK_CHANGE: f64 = 0.02;
/// While the clock changes, a step is at most this many time constants of the governor that enforces the
/// power cap.
const MAX_GOVERNOR_STEP: f64 = 1.0;
/// The maximum number of fixed-point iterations that compute a step's length and mean clock; each reduces the error
/// about tenfold.
const MAX_ITERATIONS: usize = 12;
/// A step is at most this many thermal time constants.
const MAX_THERMAL_STEP: f64 = 0.03;

impl Chip {
    /// Computes the physical constants of a GPU profile.
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
            settling: DecayRate::new(profile.cap.settling),
            recovery: DecayRate::new(profile.cap.recovery),
            ambient: thermal.ambient.get(),
            degrees_per_watt,
            warming: DecayRate::new(thermal.time_constant),
            idle_temperature: thermal.ambient.get() + degrees_per_watt * profile.power.idle.get(),
            leakage_per_degree: thermal.leakage_per_degree.get(),
        }
    }

    /// The state after a long time without load: cool, and at the default clock.
    pub fn rest_state(&self) -> State {
        State {
            clock: 1.0,
            target: 1.0,
            temperature: self.idle_temperature,
            energy: 0.0,
            power: self.idle,
        }
    }

    /// The limits that a power cap and locked clocks (in megahertz; `None` without a lock) impose.
    pub fn limits(&self, cap: Watts, core: Option<Megahertz>, memory: Option<Megahertz>) -> Limits {
        let memory_speed = memory.map_or(1.0, |clock| clock.get() / self.default_memory_clock);
        Limits {
            cap: cap.get(),
            highest_clock: core.map_or(1.0, |clock| clock.get() / self.default_clock),
            memory_speed,
            memory_slowness: 1.0 / memory_speed,
        }
    }

    /// Advances the state under `load` by one step. The step ends when the remaining share `left` of the load
    /// is done, after `at_most`, or when the power has changed so much that a new step is needed.
    pub fn step(
        &self,
        state: &mut State,
        limits: &Limits,
        load: &Load,
        left: Ratio,
        at_most: Seconds,
    ) -> Step {
        let left = left.get();
        let at_most = at_most.get().min(MAX_THERMAL_STEP * self.warming.constant);
        // A locked clock takes effect at once; only the governor of the cap takes time.
        state.clock = state.clock.min(limits.highest_clock);
        let warmer = state.temperature - self.idle_temperature;
        let idle = self.idle * (1.0 + self.leakage_per_degree * warmer);
        let (time, power, done) = match *load {
            Load::None => {
                self.recover_clock(state, limits.highest_clock, at_most);
                (at_most, idle, 0.0)
            }
            Load::Waiting { host } => {
                let time = (host.get() * left).min(at_most);
                self.recover_clock(state, limits.highest_clock, time);
                (
                    time,
                    idle + self.context,
                    share_done(time, host.get(), left),
                )
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
                let draw = KernelPower {
                    waiting: idle + self.context,
                    memory: self.memory * memory_activity.get() * limits.memory_speed,
                    core: self.core * switching.get(),
                };
                let busy = |clock| share_done(kernels(clock), whole(clock), 1.0);
                self.kernel_step(state, limits, left, at_most, &draw, whole, busy)
            }
            Load::Exchange {
                time,
                switching,
                memory_activity,
            } => {
                let draw = KernelPower {
                    waiting: idle + self.context,
                    memory: self.memory * memory_activity.get() * limits.memory_speed,
                    core: self.core * switching.get(),
                };
                self.kernel_step(state, limits, left, at_most, &draw, |_| time.get(), |_| 1.0)
            }
        };
        state.energy += power * time;
        state.power = power;
        self.update_temperature(state, power, time);
        Step {
            time: Seconds::new(time),
            power: Watts::new(power),
            done: Ratio::new(done),
        }
    }

    /// What limits a load at the clock after a [`Chip::step`] with it.
    pub fn bounds(&self, state: &State, limits: &Limits, load: &Load) -> Bounds {
        let is_capped = state.target < limits.highest_clock;
        match *load {
            Load::None | Load::Waiting { .. } => Bounds::default(),
            Load::Exchange { .. } => Bounds {
                is_capped,
                ..Bounds::default()
            },
            Load::Kernels {
                launch,
                core,
                memory,
                ..
            } => {
                let core = core.get() / state.clock;
                let memory = memory.get() * limits.memory_slowness;
                let whole = overlapped(launch.get(), core + memory);
                let share = |part: f64| Ratio::new(if whole > 0.0 { part / whole } else { 0.0 });
                Bounds {
                    is_capped,
                    core: share(core),
                    memory: share(memory),
                }
            }
        }
    }

    /// How often a workload iteration of this length may be repeated without computing it anew. After that,
    /// clock or temperature have changed too much.
    pub fn repeats(&self, cycle: &Cycle, length: Seconds) -> u64 {
        if length <= Seconds::ZERO {
            return 0;
        }
        let by_heat = MAX_THERMAL_STEP * self.warming.constant / length.get();
        by_heat.min(cycle.max_repeats()) as u64
    }

    /// Advances the state by `times` repetitions of the same workload iteration.
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
        self.update_temperature(state, (energy / length).get(), length.get() * times as f64);
    }

    /// Advances the state by a step in which kernels run. `whole` is the time of all the work at a given
    /// clock, and `busy` the share of that time in which kernels run. Returns the step's length, its mean
    /// power and the share of work done.
    #[expect(clippy::too_many_arguments, reason = "the inputs of one step")]
    fn kernel_step(
        &self,
        state: &mut State,
        limits: &Limits,
        left: f64,
        at_most: f64,
        draw: &KernelPower,
        whole: impl Fn(f64) -> f64,
        busy: impl Fn(f64) -> f64,
    ) -> (f64, f64, f64) {
        // Kernels that wait to be launched draw no power; the governor sees the mean.
        let now_busy = busy(state.target);
        let below_core = draw.waiting + draw.memory * now_busy;
        let target = self.target(state.target, limits, below_core, draw.core * now_busy);
        state.target = target;
        let (clock, time, done) = self.move_clock(state, target, left, at_most, whole);
        let running = draw.memory + draw.core * self.voltage.switching_power(clock);
        (time, draw.waiting + running * busy(clock), done)
    }

    /// The clock that the governor aims for: the highest clock at which the power is below the cap. `guess` is near it.
    pub(super) fn target(
        &self,
        guess: f64,
        limits: &Limits,
        below_core: f64,
        core_power: f64,
    ) -> f64 {
        let highest = limits.highest_clock;
        if below_core + core_power * self.voltage.switching_power(highest) <= limits.cap {
            return highest;
        }
        let allowed = ((limits.cap - below_core) / core_power).max(0.0);
        self.voltage
            .clock_for(allowed, guess)
            .clamp(self.lowest_clock.min(highest), highest)
    }

    /// Moves the clock towards its target for one step. The step ends when the remaining work is done, or
    /// earlier while the clock still changes. Returns the mean clock, the step's length and the share of work
    /// done.
    fn move_clock(
        &self,
        state: &mut State,
        target: f64,
        left: f64,
        at_most: f64,
        whole: impl Fn(f64) -> f64,
    ) -> (f64, f64, f64) {
        let distance = state.clock - target;
        if distance.abs() < SETTLED_DISTANCE {
            let whole = whole(target);
            let time = (whole * left).min(at_most);
            state.clock = target;
            return (target, time, share_done(time, whole, left));
        }
        let rate = if distance > 0.0 {
            self.settling
        } else {
            self.recovery
        };
        let longest =
            at_most.min(rate.constant * MAX_GOVERNOR_STEP.min(MAX_CLOCK_CHANGE / distance.abs()));
        let at = |time: f64| {
            let decay = rate.over(time);
            (
                target + distance * decay.mean,
                target + distance * decay.end,
            )
        };
        let (mut mean, mut end) = at(longest);
        let mut time = longest;
        let mut done = share_done(longest, whole(mean), left);
        if done == left {
            // The work ends within the step: its length and its mean clock depend on each other.
            for _ in 0..MAX_ITERATIONS {
                let needed = longest.min(whole(mean) * left);
                let has_converged = (needed - time).abs() <= 1e-9 * longest;
                time = needed;
                (mean, end) = at(time);
                if has_converged {
                    break;
                }
            }
            done = left;
        }
        state.clock = end;
        (mean, time, done)
    }

    /// Lets the clock rise to its highest allowed value while no kernel runs.
    fn recover_clock(&self, state: &mut State, highest: f64, time: f64) {
        state.clock = highest - (highest - state.clock) * self.recovery.over(time).end;
    }

    /// Changes the temperature towards its equilibrium at this power, with one time constant.
    fn update_temperature(&self, state: &mut State, power: f64, time: f64) {
        let steady = self.ambient + self.degrees_per_watt * power;
        let distance = state.temperature - steady;
        state.temperature = steady + distance * self.warming.over(time).end;
    }
}

/// The parts of the power while kernels run, in watts: that of a waiting program, that of the memory, and
/// that of the cores at the default clock.
struct KernelPower {
    waiting: f64,
    memory: f64,
    core: f64,
}

/// The time of kernels whose launches overlap with them: about the longer of both times. It is somewhat more
/// if both are similar, because some kernels are then shorter than their own launch.
pub(super) fn overlapped(launch: f64, kernels: f64) -> f64 {
    if launch <= 0.0 {
        return kernels;
    }
    let (shorter, longer) = (launch.min(kernels), launch.max(kernels));
    let square = |x: f64| x * x;
    let similarity = square(square(square(shorter / longer)));
    longer * (1.0 + similarity).sqrt().sqrt().sqrt()
}

/// The share of the work that is done in `time` if all of it takes `whole`, but at most the remaining share
/// `left`.
fn share_done(time: f64, whole: f64, left: f64) -> f64 {
    if whole <= 0.0 || time >= whole * left {
        left
    } else {
        time / whole
    }
}
