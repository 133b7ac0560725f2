//! The result of a hold, and its status while it runs.

use sweetspot_control::hold::{CapOn, HoldGoal, HoldMode, HoldSetting, HoldSummary, UnusedPower};
use sweetspot_control::tune::SettingsScope;
use sweetspot_device::{Descriptor, Settings};
use sweetspot_measure::Method;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_workload::CommandExit;

use super::request::HoldKnob;
use super::verdict::Verdict;
use crate::measure::Machine;

/// The result of a run of `hold`. Times count from the start of the command.
#[derive(Clone, Debug)]
pub struct HoldResult {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The computer that the command ran on.
    pub machine: Machine,
    /// The GPUs whose power, summed up, was kept below the cap.
    pub gpus: Vec<HeldGpu>,
    /// Whether several GPUs could get power caps of their own.
    pub scope: SettingsScope,
    /// The power cap of each of several GPUs, with the time of each change; empty if caps were not set.
    pub caps_of_gpus: Vec<(Seconds, Vec<Watts>)>,
    /// What was lost while the command ran: a GPU that no longer responds, or a rank that ended early.
    pub lost: Vec<String>,
    /// The settings that `hold` adjusted to stay below the cap.
    pub knob: HoldKnob,
    /// What the cap bound.
    pub cap_on: CapOn,
    /// The control algorithm that chose the settings.
    pub mode: HoldMode,
    /// The goal that was optimised among the settings below the cap.
    pub goal: HoldGoal,
    /// The batch sizes that `hold` could use.
    pub batches: Vec<u64>,
    /// The bound on the p99 latency, if there was one.
    pub latency_bound: Option<Seconds>,
    /// The wall time of the command.
    pub run_time: Seconds,
    /// Statistics of power, batches and settings, from the first batch on.
    pub summary: HoldSummary,
    /// The energy of all GPUs from the first batch to the last; `None` if a part could not be measured.
    pub energy: Option<HoldEnergy>,
    /// The power that was left below the cap after the setting settled, and what would use it; `None` if it is little or
    /// if the setting never settled.
    pub unused: Option<UnusedPower>,
    /// Items per second after the setting has settled; `None` if it never settled.
    pub settled_items_per_s: Option<f64>,
    /// The p99 latency of items in batches that began after the setting settled, or of all items if it never settled.
    pub latency_p99: Option<Seconds>,
    /// Every setting, including the first, with the time at which it was applied.
    pub settings: Vec<(Seconds, HoldSetting)>,
    /// Every cap, including the first, with the time at which it was given.
    pub caps: Vec<(Seconds, Watts)>,
    /// Power, settings and throughput over equal time slices of the run.
    pub over_time: Vec<TimeSlice>,
    /// The messages that were shown to the user, with their times.
    pub notices: Vec<(Seconds, String)>,
    /// Whether the cap and the latency bound were met.
    pub verdict: Verdict,
    /// How the command ended, or the signal that ended `hold` itself.
    pub ended: CommandExit,
    /// Whether the earlier settings of every device were restored.
    pub restored: bool,
}

/// A GPU of a hold.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldGpu {
    /// The GPU and its properties.
    pub device: Descriptor,
    /// The GPU's energy from the first batch to the last; `None` if a part could not be measured.
    pub energy: Option<HoldEnergy>,
    /// The last settings that `hold` gave the GPU; `None` if it set nothing.
    pub settings: Option<Settings>,
}

/// The energy of the GPUs during `hold`, and the method by which it was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldEnergy {
    /// The estimated energy.
    pub value: Joules,
    /// The 95 % confidence interval of the energy.
    pub interval95: (Joules, Joules),
    /// The method by which the energy was measured.
    pub method: Method,
}

/// Power, settings and throughput in one time slice of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeSlice {
    /// The end of the time slice, from the start of the command.
    pub at: Seconds,
    /// The mean power in the time slice; `None` if there were no readings.
    pub power: Option<Watts>,
    /// The highest power reading in the time slice; `None` if there were no readings.
    pub highest: Option<Watts>,
    /// The power cap at the end of the time slice.
    pub cap: Watts,
    /// The setting at the end of the time slice.
    pub setting: HoldSetting,
    /// Items per second in the time slice.
    pub items_per_s: f64,
}

/// The current state of a running `hold`, for the status line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HoldStatus {
    /// The time since the start of the command.
    pub elapsed: Seconds,
    /// Mean power over the last second; `None` without readings.
    pub power: Option<Watts>,
    /// The current power cap.
    pub cap: Watts,
    /// The current batch size, clock and device cap.
    pub setting: HoldSetting,
    /// Items per second over the last two seconds; `None` without batches.
    pub items_per_s: Option<f64>,
    /// The p99 latency over the last five seconds; `None` without batches.
    pub p99: Option<Seconds>,
}
