//! `hold` on a simulated GPU in virtual time.

use std::sync::Arc;

use sweetspot_control::hold::{CapOn, HoldSummary, PowerReading};
use sweetspot_device::{Device, VirtualClock};
use sweetspot_measure::Method;
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{Arrivals, Mode, SimulatedGpu, Variant, find_gpu};
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome, Sensor};
use sweetspot_virtual_time::{SimulatedServer, SimulationError};
use sweetspot_workload::CommandExit;

use super::history::HoldHistory;
use super::notice::notice_message;
use super::real::hold_config;
use super::request::{HoldRequest, first_cap};
use super::result::{HoldEnergy, HoldResult};
use super::verdict::{Verdict, judge};
use crate::SessionError;
use crate::measure::Machine;

/// A simulated program that serves requests on a simulated GPU.
#[derive(Clone, Debug)]
pub struct SimulatedService {
    /// The name of the GPU, or the path of its profile.
    pub gpu: String,
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
    fn command(&self) -> Vec<String> {
        let words = ["sweetspot", "sim-workload", "--network", &self.network];
        let words = words.into_iter().chain(["--infer", "--serve"]);
        words.map(str::to_owned).collect()
    }
}

/// Keeps the power of a simulated GPU below the cap of a request, whose command is not used.
pub fn hold_simulated(
    request: &HoldRequest,
    service: &SimulatedService,
) -> Result<HoldResult, SessionError> {
    request.check()?;
    let (_, profile) = find_gpu(&service.gpu).map_err(SimulationError::from)?;
    let idle = profile.power.idle;
    let default_cap = profile.cap.default;
    let clock = Arc::new(VirtualClock::default());
    let device = SimulatedGpu::new(0, profile, clock).descriptor().clone();
    let variant = Variant {
        mode: Some(Mode::Infer),
        dataset: service.dataset.clone(),
        ..Variant::default()
    };
    let server = SimulatedServer::new(&service.gpu, &service.network, &variant)?;
    let cap = first_cap(request.cap, None, Some(default_cap))?;
    let config = hold_config(request, &device, cap, Some(idle))?;
    let conditions = Conditions {
        sensor: match config.cap_on {
            CapOn::Mean(_) => Sensor::Buffered,
            CapOn::Reading => Sensor::Instant,
        },
        arrivals: Some(service.arrivals.clone()),
        keep_samples: true,
        ..Conditions::steady(service.time, service.seed)
    };
    let outcome = server.hold(config.clone(), &conditions)?;
    let history = history(&outcome, cap);
    let summary = outcome.summary;
    let settled = summary.settle_time;
    let mut result = HoldResult {
        command: service.command(),
        machine: Machine {
            simulated: true,
            ..Machine::detect(None)
        },
        device,
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
    (summary.items > 0).then_some(HoldEnergy {
        value: summary.energy,
        interval95: (summary.energy, summary.energy),
        method: Method::Counter,
    })
}
