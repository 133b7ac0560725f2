//! The result of a hold, and its status while it runs.

use sweetspot_control::hold::{HoldGoal, HoldMode, HoldSetting, HoldSummary};
use sweetspot_device::Descriptor;
use sweetspot_measure::Method;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_workload::CommandExit;

use super::request::HoldKnob;
use super::verdict::Verdict;
use crate::measure::Machine;

/// The result of a hold. Times count from the start of the command.
#[derive(Clone, Debug)]
pub struct HoldResult {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The machine that it ran on.
    pub machine: Machine,
    /// The GPU that was held below the cap.
    pub device: Descriptor,
    /// The knob that held the cap.
    pub knob: HoldKnob,
    /// The algorithm that chose the settings.
    pub mode: HoldMode,
    /// What was optimised below the cap.
    pub goal: HoldGoal,
    /// The batch sizes to choose from.
    pub batches: Vec<u64>,
    /// The bound on the p99 latency, if there was one.
    pub latency_bound: Option<Seconds>,
    /// The wall time of the command.
    pub run_time: Seconds,
    /// The holder's statistics from the first batch on.
    pub summary: HoldSummary,
    /// The device's energy from the first batch to the last.
    pub energy: Option<HoldEnergy>,
    /// Items per second after settling.
    pub settled_items_per_s: Option<f64>,
    /// The p99 latency of items in batches that began after settling; of all batches where it never settled.
    pub latency_p99: Option<Seconds>,
    /// Every setting with the time it was made, including the first.
    pub settings: Vec<(Seconds, HoldSetting)>,
    /// Every cap with the time it was given, including the first.
    pub caps: Vec<(Seconds, Watts)>,
    /// Means over equal slices of the run.
    pub over_time: Vec<TimeSlice>,
    /// The messages for the user and their times.
    pub notices: Vec<(Seconds, String)>,
    /// Whether the cap and the latency bound were met.
    pub verdict: Verdict,
    /// How the command ended, or the signal that ended the hold.
    pub ended: CommandExit,
    /// Whether every device has its earlier settings again.
    pub restored: bool,
}

/// An energy and the method that measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldEnergy {
    /// The estimate.
    pub value: Joules,
    /// The 95 % confidence interval.
    pub interval95: (Joules, Joules),
    /// The measurement method.
    pub method: Method,
}

/// Means over a slice of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSlice {
    /// The slice's end, from the start of the command.
    pub at: Seconds,
    /// Mean power, if there were readings.
    pub power: Option<Watts>,
    /// The highest power reading.
    pub highest: Option<Watts>,
    /// The cap at the slice's end.
    pub cap: Watts,
    /// The setting at the slice's end.
    pub setting: HoldSetting,
    /// Items per second.
    pub items_per_s: f64,
}

/// The present state of a hold, for a status line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldStatus {
    /// The time since the start.
    pub elapsed: Seconds,
    /// Mean power of the last second.
    pub power: Option<Watts>,
    /// The power cap.
    pub cap: Watts,
    /// The present setting.
    pub setting: HoldSetting,
    /// Items per second over the last two seconds.
    pub items_per_s: Option<f64>,
    /// The p99 latency of the last five seconds.
    pub p99: Option<Seconds>,
}
