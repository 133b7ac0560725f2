//! What came of a hold.

use sweetspot_control::hold::{HoldGoal, HoldMode, HoldSetting, HoldSummary};
use sweetspot_device::Descriptor;
use sweetspot_measure::Method;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_workload::CommandExit;

use super::request::HoldKnob;
use super::verdict::Verdict;
use crate::measure::Machine;

/// A hold from its begin to its end.
#[derive(Clone, Debug)]
pub struct HoldResult {
    /// The command.
    pub command: Vec<String>,
    /// Where.
    pub machine: Machine,
    /// The GPU.
    pub device: Descriptor,
    /// What was set.
    pub knob: HoldKnob,
    /// How the setting was found.
    pub mode: HoldMode,
    /// What was best.
    pub goal: HoldGoal,
    /// The sizes to choose from.
    pub batches: Vec<u64>,
    /// The bound, where there was one.
    pub latency_bound: Option<Seconds>,
    /// Wall time of the command.
    pub run_time: Seconds,
    /// What the controller's account says, from the first batch on.
    pub summary: HoldSummary,
    /// What the device drew from the first batch to the last.
    pub energy: Option<HeldEnergy>,
    /// Items a second after settling.
    pub settled_items_per_s: Option<f64>,
    /// 99 of 100 items took no longer, of batches that began after settling where that came.
    pub latency_p99: Option<Seconds>,
    /// What was set and when, the first included.
    pub settings: Vec<(Seconds, HoldSetting)>,
    /// The caps and when they came, the first included.
    pub caps: Vec<(Seconds, Watts)>,
    /// Means of equal parts of the time.
    pub over_time: Vec<Slice>,
    /// What was to be known, and when.
    pub notes: Vec<(Seconds, String)>,
    /// Whether cap and latency were kept as asked.
    pub kept: Verdict,
    /// How the command ended, or the signal that ended the hold.
    pub ended: CommandExit,
    /// Whether every device is as before.
    pub restored: bool,
}

/// Energy, and how it was come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldEnergy {
    /// The best value.
    pub value: Joules,
    /// It lies in here in 95 of 100 cases.
    pub interval95: (Joules, Joules),
    /// What it came from.
    pub method: Method,
}

/// A part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// Its end, from the start of the command.
    pub at: Seconds,
    /// Mean power, where there were readings.
    pub power: Option<Watts>,
    /// The highest reading.
    pub highest: Option<Watts>,
    /// The cap at its end.
    pub cap: Watts,
    /// The setting at its end.
    pub setting: HoldSetting,
    /// Items a second.
    pub items_per_s: f64,
}

/// As it is now, for a line on a terminal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// Since the start.
    pub elapsed: Seconds,
    /// The mean of the last second.
    pub power: Option<Watts>,
    /// To be held.
    pub cap: Watts,
    /// Of the device and the program.
    pub setting: HoldSetting,
    /// Of the last two seconds.
    pub items_per_s: Option<f64>,
    /// Of the last five seconds.
    pub p99: Option<Seconds>,
}
