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
    /// The computer that the command ran on.
    pub machine: Machine,
    /// The GPU whose power was kept below the cap.
    pub device: Descriptor,
    /// What the hold adjusted to stay below the cap.
    pub knob: HoldKnob,
    /// The algorithm that chose the settings.
    pub mode: HoldMode,
    /// What was optimised among the settings below the cap.
    pub goal: HoldGoal,
    /// The batch sizes to choose from.
    pub batches: Vec<u64>,
    /// The bound on the p99 latency, if there was one.
    pub latency_bound: Option<Seconds>,
    /// The wall time of the command.
    pub run_time: Seconds,
    /// Statistics about power, batches and settings from the first batch on.
    pub summary: HoldSummary,
    /// The device's energy from the first batch to the last; `None` if a part could not be measured.
    pub energy: Option<HoldEnergy>,
    /// Items per second after the setting has settled; `None` if it never settled.
    pub settled_items_per_s: Option<f64>,
    /// The p99 latency of items in batches that began after the setting settled, or of all items if it never settled.
    pub latency_p99: Option<Seconds>,
    /// Every setting, including the first, with the time at which it was applied.
    pub settings: Vec<(Seconds, HoldSetting)>,
    /// Every cap, including the first, with the time at which it was given.
    pub caps: Vec<(Seconds, Watts)>,
    /// Power, settings and throughput over equal slices of the run.
    pub over_time: Vec<TimeSlice>,
    /// The messages that were shown to the user, with their times.
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
    /// The estimated energy.
    pub value: Joules,
    /// The 95 % confidence interval.
    pub interval95: (Joules, Joules),
    /// The measurement method.
    pub method: Method,
}

/// Power, settings and throughput in one slice of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSlice {
    /// The slice's end, from the start of the command.
    pub at: Seconds,
    /// Mean power of the slice; `None` if there were no readings.
    pub power: Option<Watts>,
    /// The highest power reading of the slice; `None` if there were no readings.
    pub highest: Option<Watts>,
    /// The cap at the slice's end.
    pub cap: Watts,
    /// The setting at the slice's end.
    pub setting: HoldSetting,
    /// Items per second in this slice.
    pub items_per_s: f64,
}

/// The current state of a hold, for a status line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldStatus {
    /// The time since the start of the command.
    pub elapsed: Seconds,
    /// Mean power over the last second; `None` without readings.
    pub power: Option<Watts>,
    /// The current power cap.
    pub cap: Watts,
    /// The current setting.
    pub setting: HoldSetting,
    /// Items per second over the last two seconds; `None` without batches.
    pub items_per_s: Option<f64>,
    /// The p99 latency over the last five seconds; `None` without batches.
    pub p99: Option<Seconds>,
}
