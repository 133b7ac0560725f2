//! The result of a measurement.

use std::collections::BTreeMap;

use sweetspot_control::limit::LoadLimit;
use sweetspot_control::slo::Slo;
use sweetspot_device::Descriptor;
use sweetspot_measure::math::{
    Attribution, AttributionError, CheckedEnergy, PhaseEnergy, PhaseTime,
};
use sweetspot_metrics::QuantileRange;
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::observer_cost::ObserverCost;
use super::serving::ServingSummary;
use super::slo::ClockControl;
use super::whole::HostRun;
use super::{Machine, RunWindow};
use crate::NodeEnergy;
use crate::calibrate::Calibration;
use sweetspot_measure::math::Span;
use sweetspot_study::EnergyOf;

/// The energy of several devices or phases together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TotalEnergy {
    /// The sum of the energies of these devices or phases.
    pub value: Joules,
    /// The 95 % confidence interval of the sum.
    pub interval95: (Joules, Joules),
}

impl TotalEnergy {
    /// Sums energies, each with its 95 % confidence interval, whose errors are independent.
    pub fn sum(parts: &[(Joules, (Joules, Joules))]) -> Self {
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

/// The measurement of one device in one run.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// The descriptor of the device.
    pub device: Descriptor,
    /// The device's energy in the measurement window, or why it is unknown.
    pub energy: Result<CheckedEnergy, String>,
    /// The calibration that was applied to all its energies; `None` if there is none.
    pub calibration: Option<Calibration>,
    /// The mean power before the calibration was applied; `None` without one.
    pub sensor_power: Option<Watts>,
    /// What limited the load on this device, and which knob works.
    pub limit: LoadLimit,
    /// The energy of each phase on this device, or why it is unknown; `None` if the command marked no phases.
    pub phases: Option<Result<Attribution, AttributionError>>,
    /// The time of each phase on this device, which the marks tell even where the energy is unknown; the time outside all
    /// phases is the last. Empty if the command marked no phases in the measurement window.
    pub phase_times: Vec<PhaseTime>,
}

/// The time and energy of a phase, all devices together.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseSummary {
    /// The phase's name; `other` is the time outside all phases.
    pub name: String,
    /// The phase's total time, on the slowest rank.
    pub time: Seconds,
    /// The number of times that the phase ran.
    pub count: usize,
    /// The mean power during the phase, summed over the devices; `None` if the energy is unknown.
    pub power: Option<Watts>,
    /// The energy of all devices in the phase; `None` if the readings do not tell the phases apart.
    pub energy: Option<TotalEnergy>,
}

impl DeviceRun {
    /// The measurement of a device without phases and without a calibration.
    pub(crate) fn new(
        device: Descriptor,
        energy: Result<CheckedEnergy, String>,
        limit: LoadLimit,
    ) -> Self {
        Self {
            device,
            energy,
            calibration: None,
            sensor_power: None,
            limit,
            phases: None,
            phase_times: Vec::new(),
        }
    }

    /// The energy of a phase on this device; `None` if it is unknown, or the device did not have the phase.
    pub fn phase_energy(&self, name: &str) -> Option<&PhaseEnergy> {
        let attribution = self.phases.as_ref()?.as_ref().ok()?;
        let mut all = attribution.phases.iter().chain([&attribution.other]);
        all.find(|phase| phase.name == name)
    }

    /// The time that the device's energy covers, if that is less than the measurement window of length `window`.
    pub fn partial_time(&self, window: Seconds) -> Option<Seconds> {
        let energy = &self.energy.as_ref().ok()?.energy;
        let part = energy.covered.length();
        (part < window).then_some(part)
    }
}

/// The measured time, energy, phases and items of one run.
#[derive(Clone, Debug)]
pub struct RunMeasurement {
    /// The length of the measurement window.
    pub time: Seconds,
    /// The length of the whole run.
    pub run_time: Seconds,
    /// Why the whole run was measured instead of the requested measurement window; `None` if the window was found.
    pub window_problem: Option<String>,
    /// The measured energy of each device.
    pub devices: Vec<DeviceRun>,
    /// The energy of all devices; `None` if a device's energy is unknown or does not cover the whole measurement
    /// window.
    pub energy: Option<TotalEnergy>,
    /// The energy of the processors and their memory; `None` if it was not asked for.
    pub host: Option<HostRun>,
    /// The energy of the whole machine, or why it is unknown; `None` without a meter.
    pub node: Option<Result<NodeEnergy, String>>,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
    /// The measurement window.
    pub window: Span,
    /// The energy above that which the idle devices would have used; `None` if idle power was not measured.
    pub above_idle: Option<TotalEnergy>,
    /// The phases that the command marked in the measurement window.
    pub phases: Vec<PhaseSummary>,
    /// Why the energy of the phases is unknown; `None` if it is known or the command marked no phases.
    pub phase_problem: Option<String>,
    /// Why the reports of the command's ranks are not those of one whole job; `None` if they agree.
    pub disagreement: Option<String>,
    /// The items done in the measurement window; `None` if the command reported no progress.
    pub items: Option<f64>,
    /// What the server did in the measurement window; `None` if no metrics page was read.
    pub serving: Option<ServingSummary>,
    /// The latency bounds that were to be kept, and whether they were.
    pub slos: Vec<SloResult>,
    /// How the core clock was set to keep them.
    pub clocks: Option<ClockControl>,
    /// The last value reported under each name.
    pub values: BTreeMap<String, f64>,
    /// The command's exit code.
    pub exit_code: i32,
    /// The number of the signal that ended the command, if one did.
    pub signal: Option<i32>,
    /// Warnings about problems that affect these values.
    pub warnings: Vec<String>,
}

impl RunMeasurement {
    /// The mean power of all devices; `None` if their energy is unknown.
    pub fn power(&self) -> Option<Watts> {
        self.energy.map(|energy| energy.value / self.time)
    }

    /// The energy that counts: that of the GPUs or of the whole machine; `None` if it is unknown.
    pub fn counted_energy(&self) -> Option<TotalEnergy> {
        match self.energy_of {
            EnergyOf::Node => self.known_node()?.energy.clone().ok(),
            _ => self.energy,
        }
    }

    /// The energy of the whole machine, if it is known for the whole window.
    pub fn known_node(&self) -> Option<&NodeEnergy> {
        let node = self.node.as_ref()?.as_ref().ok()?;
        node.energy.is_ok().then_some(node)
    }

    /// Whether the command succeeded: it exited with code 0.
    pub fn went_well(&self) -> bool {
        self.exit_code == 0
    }

    /// Whether the energy of every device was measured over the whole requested measurement window, the ranks of the job
    /// agree, and the bounds on latency and power were kept.
    pub fn is_met(&self) -> bool {
        let are_kept = self.slos.iter().all(|slo| slo.is_kept() != Some(false));
        let is_controlled = self.clocks.as_ref().is_none_or(|clocks| {
            let power = clocks.power.and_then(|power| power.is_kept());
            !clocks.has_failed && power != Some(false)
        });
        let host_is_met = self.host.as_ref().is_none_or(|host| host.energy.is_some());
        let node_is_met = self.node.is_none() || self.known_node().is_some();
        let is_met = self.energy.is_some() && host_is_met && node_is_met;
        is_met
            && are_kept
            && is_controlled
            && self.window_problem.is_none()
            && self.disagreement.is_none()
    }
}

/// A latency bound, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SloResult {
    /// The bound.
    pub slo: Slo,
    /// The quantile that it bounds, with the range that the server's buckets leave; `None` if it was not measured.
    pub measured: Option<QuantileRange>,
}

impl SloResult {
    /// Whether the bound was kept; `None` if the server's buckets leave that open.
    pub fn is_kept(&self) -> Option<bool> {
        let measured = self.measured?;
        let bound = self.slo.bound.get();
        match (measured.high <= bound, measured.low >= bound) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}

/// The energy that the devices used while idle, measured before the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct IdleEnergy {
    /// How long the idle devices were measured.
    pub time: Seconds,
    /// The energy of all idle devices in this time.
    pub energy: TotalEnergy,
}

/// The result of measuring a command: all runs, the computer and the method.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The computer that the command ran on.
    pub machine: Machine,
    /// The part of each run that is measured.
    pub window: RunWindow,
    /// The requested measurement method, as on the command line.
    pub method: String,
    /// The energy of the idle devices, if it was measured.
    pub idle: Option<IdleEnergy>,
    /// The measured time and energy of each run.
    pub runs: Vec<RunMeasurement>,
    /// Why there are fewer runs than requested; `None` if all runs were made or the last run failed.
    pub stopped: Option<StopReason>,
    /// What measuring itself cost.
    pub observer: Option<ObserverCost>,
}

/// Why there are fewer runs than requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// This program received the signal with this number.
    Signal(i32),
    /// Something failed between two runs; the text says what.
    Problem(String),
}
