//! `sweep`: every configuration of the chosen axes, repeated.

use std::num::NonZeroUsize;
use std::sync::Arc;

use sweetspot_device::{Device, Settings, VirtualClock};
use sweetspot_quantity::Watts;
use sweetspot_sim::{Mode, SimulatedGpu, Variation};
use sweetspot_study::{
    Configuration, EnergyOf, Plan, Point, Status, Study, WorkloadInfo, parse_axis,
};

use crate::SessionError;
use crate::virtual_time::{Bench, run_plan};

/// What is to be swept.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// Name or path of the simulated GPU's profile.
    pub gpu: String,
    /// Name or path of the workload.
    pub network: String,
    /// Which of the network's workloads, where the user says.
    pub mode: Option<Mode>,
    /// Items in a batch, where the user says.
    pub batch: Option<u64>,
    /// Items in a run, where the user says.
    pub items: Option<u64>,
    /// The axis of power caps, as written.
    pub power_cap: String,
    /// Runs of each configuration.
    pub repeat: u32,
    /// Of everything random.
    pub seed: u64,
    /// How many runs are computed at a time; no result depends on it.
    pub threads: NonZeroUsize,
}

impl SweepRequest {
    /// The study as its paper ran it: every cap, five runs each.
    pub fn new(gpu: &str, network: &str) -> Self {
        Self {
            gpu: gpu.to_owned(),
            network: network.to_owned(),
            mode: None,
            batch: None,
            items: None,
            power_cap: "all".to_owned(),
            repeat: 5,
            seed: 1,
            threads: NonZeroUsize::MIN,
        }
    }
}

/// More runs than this in one study are a slip of the pen.
const MOST_RUNS: usize = 1_000_000;

/// The papers' step.
const USUAL_STEP: Watts = Watts::new(5.0);

/// Runs the study.
pub fn sweep(request: &SweepRequest) -> Result<Study, SessionError> {
    let bench = Bench::new(&request.gpu, &request.network, request.mode, request.items)?;
    let caps = parse_axis(
        &request.power_cap,
        &bench.gpu.cap.domain(),
        USUAL_STEP,
        &bench.gpu_name,
    )
    .map_err(SessionError::PowerCap)?;
    let batch = request.batch.unwrap_or(bench.workload.profile.batch);
    let items = bench.job(batch, Variation::NONE)?.items;
    let at_cap = |cap| Configuration {
        settings: Settings {
            power_cap: Some(cap),
            ..Settings::default()
        },
        batch,
        gpus: 1,
    };
    let plan = Plan::new(
        caps.into_iter().map(at_cap).collect(),
        at_cap(bench.gpu.cap.default),
        request.repeat,
        request.seed,
        format!("{} {}", bench.gpu.name, bench.workload.profile.network),
    );
    let count = plan.configurations.len() * request.repeat as usize;
    if count > MOST_RUNS {
        return Err(SessionError::TooManyRuns {
            count,
            limit: MOST_RUNS,
        });
    }
    let runs = run_plan(&bench, &plan, request.threads)?;
    let mut points: Vec<Point> = plan
        .configurations
        .iter()
        .copied()
        .map(Point::new)
        .collect();
    for (planned, end) in runs {
        points[planned.configuration].add(end);
    }
    let reference = points[plan.reference].clone();
    points.truncate(plan.on_axes);
    let study = Study {
        energy_of: EnergyOf::JobGpus,
        method: "simulator".to_owned(),
        device: descriptor(&bench),
        workload: WorkloadInfo {
            name: bench.workload.name.clone(),
            network: bench.workload.profile.network.clone(),
            mode: bench.workload.profile.mode.to_string(),
            batch,
            items,
            scaled_from: bench.work.scaled_from.clone(),
        },
        device_name: bench.gpu_name,
        seed: request.seed,
        repeat: request.repeat,
        points,
        reference,
    };
    if let Status::Failed(reason) = &study.reference.status {
        return Err(SessionError::NothingRan {
            study: study.name(),
            reason: reason.clone(),
        });
    }
    Ok(study)
}

fn descriptor(bench: &Bench) -> sweetspot_device::Descriptor {
    let clock = Arc::new(VirtualClock::default());
    SimulatedGpu::new(0, bench.gpu.clone(), clock)
        .descriptor()
        .clone()
}
