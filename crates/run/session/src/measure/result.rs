//! What measuring came to.

use std::collections::BTreeMap;

use sweetspot_device::Descriptor;
use sweetspot_measure::math::{Attribution, AttributionError, CheckedEnergy};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::{Machine, RunWindow};

/// A value that several devices or runs add up to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TotalEnergy {
    /// The sum.
    pub value: Joules,
    /// It lies in here in 95 of 100 cases.
    pub interval95: (Joules, Joules),
}

impl TotalEnergy {
    /// Of values whose errors are their own.
    pub fn of(parts: &[(Joules, (Joules, Joules))]) -> Self {
        let value: Joules = parts.iter().map(|part| part.0).sum();
        let below = parts
            .iter()
            .map(|(v, i)| (*v - i.0).get().powi(2))
            .sum::<f64>();
        let above = parts
            .iter()
            .map(|(v, i)| (i.1 - *v).get().powi(2))
            .sum::<f64>();
        Self {
            value,
            interval95: (
                value - Joules::new(below.sqrt()),
                value + Joules::new(above.sqrt()),
            ),
        }
    }
}

/// One device in one run.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// Which device.
    pub device: Descriptor,
    /// Its energy in the window, or why there is none.
    pub energy: Result<CheckedEnergy, String>,
    /// Its phases, or why there are none; nothing where the command marked none.
    pub phases: Option<Result<Attribution, AttributionError>>,
}

/// A phase of all devices together.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTable {
    /// Its name; `other` is what belongs to none.
    pub name: String,
    /// How long it was under way: of the slowest rank.
    pub time: Seconds,
    /// How often.
    pub count: usize,
    /// Of all devices, each while it was under way there.
    pub power: Watts,
    /// Of all devices.
    pub energy: TotalEnergy,
}

impl DeviceRun {
    /// The time that its energy is of, where that is not the whole window.
    pub fn part(&self, window: Seconds) -> Option<Seconds> {
        let energy = &self.energy.as_ref().ok()?.energy;
        let part = energy.covered.length();
        (part < window).then_some(part)
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct RunMeasurement {
    /// Of the window.
    pub time: Seconds,
    /// Of the whole run.
    pub run_time: Seconds,
    /// Why the window is the whole run and not the one asked for, where it is so.
    pub window_problem: Option<String>,
    /// Each device.
    pub devices: Vec<DeviceRun>,
    /// Of all devices; nothing where that of one is not known, or not for all of the window.
    pub energy: Option<TotalEnergy>,
    /// What is left without what the devices draw at rest.
    pub above_idle: Option<TotalEnergy>,
    /// By phase, or why not; nothing where the command marked none.
    pub phases: Option<Result<Vec<PhaseTable>, String>>,
    /// Items done in the window, where progress is known.
    pub items: Option<f64>,
    /// The last of each value that the command reported.
    pub values: BTreeMap<String, f64>,
    /// The command's own code.
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What should be known about these figures.
    pub warnings: Vec<String>,
}

impl RunMeasurement {
    /// Energy over time.
    pub fn power(&self) -> Option<Watts> {
        self.energy.map(|energy| energy.value / self.time)
    }

    /// Whether the command went well.
    pub fn went_well(&self) -> bool {
        self.exit_code == 0
    }

    /// Whether the window is the one that was asked for, with the energy of every device in all of it.
    pub fn is_met(&self) -> bool {
        self.window_problem.is_none() && self.energy.is_some()
    }
}

/// The devices at rest.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// How long they were watched.
    pub time: Seconds,
    /// Of all devices.
    pub energy: TotalEnergy,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The command.
    pub command: Vec<String>,
    /// Where.
    pub machine: Machine,
    /// The part of each run that counts.
    pub window: RunWindow,
    /// The method asked for.
    pub method: String,
    /// At rest, where that was asked for.
    pub idle: Option<Idle>,
    /// Run by run.
    pub runs: Vec<RunMeasurement>,
    /// Why there are fewer runs than asked for, where it is not the last one's exit code.
    pub stopped: Option<Stopped>,
}

/// Why there are fewer runs than asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A signal to this program.
    Signal(i32),
    /// Something failed between runs.
    Problem(String),
}
