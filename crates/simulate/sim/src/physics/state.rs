//! The inputs and outputs of a GPU's physics: limits, loads, the state and its steps.

use sweetspot_quantity::{Celsius, Joules, Ratio, Seconds, Watts};

/// The limits that a GPU's settings impose: power in watts, clocks relative to the default clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub(super) cap: f64,
    pub(super) highest_clock: f64,
    pub(super) memory_speed: f64,
    pub(super) memory_slowness: f64,
}

/// The load that a program puts on the GPU during one of its phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// No program uses the GPU.
    None,
    /// A program has opened the GPU, but runs no kernels: the GPU waits for the host.
    Waiting {
        /// How long the GPU waits for the host.
        host: Seconds,
    },
    /// The GPU runs kernels.
    Kernels {
        /// The time that the host needs to launch the kernels; it overlaps with their execution.
        launch: Seconds,
        /// The part of the execution time, at default clocks, that scales with the core clock.
        core: Seconds,
        /// The part of the execution time, at default clocks, that scales with the memory clock.
        memory: Seconds,
        /// The switching power of the cores, relative to the GPU profile's `power.core`.
        switching: Ratio,
        /// The memory power, relative to the GPU profile's `power.memory`.
        memory_activity: Ratio,
    },
    /// Kernels busy-wait for other GPUs, for a time that does not depend on this GPU's clocks.
    Exchange {
        /// How long the kernels wait for other GPUs.
        time: Seconds,
        /// The switching power of the cores, relative to the GPU profile's `power.core`.
        switching: Ratio,
        /// The memory power, relative to the GPU profile's `power.memory`.
        memory_activity: Ratio,
    },
}

impl Load {
    /// The part of a load that one of `gpus` GPUs does if they divide its kernels among them. The host's part stays, because
    /// the host launches every kernel on every GPU.
    pub fn divided_among(&self, gpus: usize) -> Self {
        let share = 1.0 / gpus.max(1) as f64;
        match *self {
            Self::Kernels {
                launch,
                core,
                memory,
                switching,
                memory_activity,
            } => Self::Kernels {
                launch,
                core: core * share,
                memory: memory * share,
                switching,
                memory_activity,
            },
            other => other,
        }
    }
}

/// The state of a GPU: clock, target clock, temperature, energy and power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct State {
    pub(super) clock: f64,
    pub(super) target: f64,
    pub(super) temperature: f64,
    pub(super) energy: f64,
    pub(super) power: f64,
}

/// The result of one step of the physics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The length of the step.
    pub time: Seconds,
    /// The mean power during the step.
    pub power: Watts,
    /// The share of the load's work that was done in the step.
    pub done: Ratio,
}

/// What limits the work of a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Whether the power cap keeps the clock below the highest that the settings allow.
    pub is_capped: bool,
    /// The share of the time in which the cores limit the work, so that it scales with the core clock.
    pub core: Ratio,
    /// The share of the time in which the memory limits the work, so that it scales with the memory clock.
    pub memory: Ratio,
}

impl State {
    /// Converts the state to plain numbers, for storage.
    pub const fn to_array(self) -> [f64; 5] {
        [
            self.clock,
            self.target,
            self.temperature,
            self.energy,
            self.power,
        ]
    }

    /// Restores a state from [`State::to_array`].
    pub const fn from_array([clock, target, temperature, energy, power]: [f64; 5]) -> Self {
        Self {
            clock,
            target,
            temperature,
            energy,
            power,
        }
    }

    /// The energy that the GPU has drawn since the state was created.
    pub fn energy(&self) -> Joules {
        Joules::new(self.energy)
    }

    /// The power during the last step.
    pub fn power(&self) -> Watts {
        Watts::new(self.power)
    }

    /// The temperature of the chip.
    pub fn temperature(&self) -> Celsius {
        Celsius::new(self.temperature)
    }

    /// The core clock, relative to the default clock.
    pub fn clock(&self) -> Ratio {
        Ratio::new(self.clock)
    }
}
