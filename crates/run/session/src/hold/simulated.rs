//! `hold` on simulated GPUs in virtual time.

use sweetspot_control::hold::{CapOn, CapRange, HoldSummary, PowerReading};
use sweetspot_device::{Descriptor, Settings};
use sweetspot_measure::Method;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_sim::{Arrivals, Mode, Variant};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{CapsOfGpus, Conditions, HoldOutcome, Sensor};
use sweetspot_workload::CommandExit;

use super::automatic::cap_range;
use super::group::GroupLimits;
use super::history::HoldHistory;
use super::notice::notice_message;
use super::real::hold_config;
use super::request::{HoldRequest, first_cap};
use super::result::{HeldGpu, HoldEnergy, HoldResult};
use super::verdict::{Verdict, judge};
use crate::SessionError;
use crate::measure::Machine;

/// A simulated program that serves requests on simulated GPUs, which divide each batch among them.
#[derive(Clone, Debug)]
pub struct SimulatedService {
    /// The GPUs, such as `v100:2`: names or paths of profiles.
    pub gpus: String,
    /// The workload: a network, `NETWORK@STUDY`, or the path of a profile or of an ONNX file.
    pub network: String,
    /// The data set, for workloads that distinguish them.
    pub dataset: Option<String>,
    /// How long the program runs.
    pub time: Seconds,
    /// When requests arrive.
    pub arrivals: Arrivals,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl SimulatedService {
    /// The command that would be run on a simulated host.
    fn command(&self, gpus: usize) -> Vec<String> {
        let words = ["sweetspot", "sim-workload", "--network", &self.network];
        let words = words.into_iter().chain(["--infer", "--serve"]);
        let mut words: Vec<String> = words.map(str::to_owned).collect();
        if gpus > 1 {
            words.extend(["--ranks".to_owned(), gpus.to_string()]);
        }
        words
    }
}

/// Keeps the power of simulated GPUs below the cap of a request, whose command is not used.
pub fn hold_simulated(
    request: &HoldRequest,
    service: &SimulatedService,
) -> Result<HoldResult, SessionError> {
    request.check()?;
    let variant = Variant {
        mode: Some(Mode::Infer),
        dataset: service.dataset.clone(),
        ..Variant::default()
    };
    let server = SimulatedServer::new(&service.gpus, &service.network, &variant)?;
    let devices = server.descriptors();
    let known = known_limits(&server, &devices);
    let highest: Watts = server.cap_ranges().iter().map(|range| range.highest).sum();
    let cap = first_cap(request.cap, None, Some(highest))?;
    let config = hold_config(request, &devices, cap, &known)?;
    let conditions = Conditions {
        sensor: match config.cap_on {
            CapOn::Mean(_) => Sensor::Buffered,
            CapOn::Reading => Sensor::Instant,
        },
        arrivals: Some(service.arrivals.clone()),
        keep_samples: true,
        caps_of_gpus: CapsOfGpus::Divided(request.scope),
        ..Conditions::steady(service.time, service.seed)
    };
    let outcome = server.hold(config.clone(), &conditions)?;
    let history = history(&outcome, cap);
    let summary = outcome.summary;
    let settled = summary.settle_time;
    let mut result = HoldResult {
        command: service.command(devices.len()),
        machine: Machine {
            simulated: true,
            ..Machine::detect(None)
        },
        gpus: held_gpus(devices, &outcome, summary.items > 0),
        scope: request.scope,
        caps_of_gpus: outcome.caps_of_gpus,
        lost: Vec::new(),
        knob: request.knob,
        cap_on: config.cap_on,
        mode: config.mode,
        goal: config.goal,
        batches: config.batches,
        latency_bound: config.latency_p99,
        run_time: service.time,
        energy: energy(&summary),
        unused: outcome.unused,
        settled_items_per_s: settled
            .and_then(|settled| history.rate_between(settled, service.time)),
        latency_p99: history.p99_since(settled.unwrap_or(Seconds::ZERO)),
        over_time: history.slices(),
        settings: history.settings,
        caps: history.caps,
        notices: history.notices,
        summary,
        verdict: Verdict::Unknown(String::new()),
        ended: CommandExit::Code(0),
        restored: true,
    };
    result.verdict = judge(&result);
    Ok(result)
}

/// What is known about the simulated GPUs before the hold starts. As on real GPUs, one GPU alone may get its highest cap, and
/// several get no more than they had.
fn known_limits(server: &SimulatedServer, devices: &[Descriptor]) -> GroupLimits {
    let caps = match devices {
        [device] => cap_range(device).map(|(lowest, highest)| vec![CapRange { lowest, highest }]),
        _ => Some(server.cap_ranges()),
    };
    GroupLimits {
        caps,
        idle: server.idle_powers().into_iter().map(Some).collect(),
    }
}

/// The simulated GPUs with their energy and their last settings.
fn held_gpus(devices: Vec<Descriptor>, outcome: &HoldOutcome, has_items: bool) -> Vec<HeldGpu> {
    let caps = outcome.caps_of_gpus.last().map(|(_, caps)| caps);
    let gpus = devices.into_iter().zip(&outcome.energy_of_gpus).enumerate();
    gpus.map(|(index, (device, energy))| HeldGpu {
        device,
        energy: has_items.then_some(exact(*energy)),
        settings: Some(Settings {
            power_cap: caps.map(|caps| caps[index]).or(outcome.last.power_cap),
            core_clock: outcome.last.core_clock,
            memory_clock: None,
        }),
    })
    .collect()
}

/// The history of a simulated run: events of each kind in the order of their times.
fn history(outcome: &HoldOutcome, cap: Watts) -> HoldHistory {
    let mut history = HoldHistory::new(cap, outcome.first);
    let mut changes = outcome.changes.iter().peekable();
    let mut from = Seconds::ZERO;
    for sample in &outcome.samples {
        while let Some((at, _, setting)) = changes.next_if(|(at, ..)| *at <= sample.at) {
            history.record_setting(*at, *setting);
        }
        history.record_power(&PowerReading {
            from,
            to: sample.at,
            power: sample.power,
        });
        from = sample.at;
    }
    let mut before = Seconds::ZERO;
    for (at, latency, items) in &outcome.latencies {
        history.record_batch(*at, *items, *at - before, *latency);
        before = *at;
    }
    let notices = outcome.notices.iter();
    history.notices = notices
        .map(|(at, notice)| (*at, notice_message(notice)))
        .collect();
    history
}

/// The energy of a simulated run, which is known exactly; `None` without any.
fn energy(summary: &HoldSummary) -> Option<HoldEnergy> {
    (summary.items > 0).then_some(exact(summary.energy))
}

/// An energy that is known exactly.
fn exact(energy: Joules) -> HoldEnergy {
    HoldEnergy {
        value: energy,
        interval95: (energy, energy),
        method: Method::Counter,
    }
}
