//! `sweep`: every configuration of the chosen axes, repeated.

use std::num::NonZeroUsize;
use std::sync::Arc;

use sweetspot_device::{Device, Domain, Settings, VirtualClock};
use sweetspot_quantity::{Megahertz, Quantity, Watts};
use sweetspot_sim::SimulatedGpu;
use sweetspot_study::{Configuration, Plan, Point, Status, Study, WorkloadInfo, parse_axis};

use crate::SessionError;
use crate::virtual_time::{Bench, BenchGpu, Setup, run_plan};

/// What is to be swept.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// The simulated GPUs and the workload.
    pub setup: Setup,
    /// Items in a batch, where the user says.
    pub batch: Option<u64>,
    /// The axes, as written.
    pub axes: Axes,
    /// Runs of each configuration.
    pub repeat: u32,
    /// Of everything random.
    pub seed: u64,
    /// How many runs are computed at a time; no result depends on it.
    pub threads: NonZeroUsize,
}

/// The axes of a sweep, as written; a knob that is not named stays at its default.
#[derive(Clone, Debug, Default)]
pub struct Axes {
    /// Power caps; all of them where no axis is named at all.
    pub power_cap: Option<String>,
    /// Core clocks.
    pub core_clock: Option<String>,
    /// Memory clocks.
    pub memory_clock: Option<String>,
    /// Numbers of GPUs; all there are where nothing is said.
    pub gpus: Option<String>,
}

impl SweepRequest {
    /// The study as its paper ran it: every cap, five runs each.
    pub fn new(gpu: &str, network: &str) -> Self {
        Self {
            setup: Setup {
                gpus: Some(gpu.to_owned()),
                network: network.to_owned(),
                ..Setup::default()
            },
            batch: None,
            axes: Axes::default(),
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
    let bench = Bench::new(&request.setup)?;
    let batch = request.batch.unwrap_or(bench.workload.profile.batch);
    let (configurations, reference) = configurations(&bench, &request.axes, batch)?;
    let count = configurations.len().saturating_mul(request.repeat as usize);
    if count > MOST_RUNS {
        return Err(SessionError::TooManyRuns {
            count,
            limit: MOST_RUNS,
        });
    }
    for configuration in &configurations {
        bench.jobs(batch, configuration.gpus as usize, None)?;
    }
    let gpu = &bench.gpus[0];
    let plan = Plan::new(
        configurations,
        reference,
        request.repeat,
        request.seed,
        format!("{} {}", gpu.profile.name, bench.workload.profile.network),
    );
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
        energy_of: bench.energy_of,
        method: "simulator".to_owned(),
        device: descriptor(&bench),
        workload: workload_info(&bench, batch),
        device_name: device_name(&bench),
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

/// Every combination of the axes, and the reference: the default settings on as many GPUs as there are on
/// the axis at most.
fn configurations(
    bench: &Bench,
    axes: &Axes,
    batch: u64,
) -> Result<(Vec<Configuration>, Configuration), SessionError> {
    let gpu = &bench.gpus[0];
    let profile = &gpu.profile;
    let kinds = device_name(bench);
    let mixed = bench.gpus.iter().any(|other| other.name != gpu.name);
    let one_kind = |flag, axis: &Option<String>| match axis {
        Some(_) if mixed => Err(SessionError::Mixed {
            flag,
            gpus: kinds.clone(),
        }),
        _ => Ok(()),
    };
    one_kind("--power-cap", &axes.power_cap)?;
    one_kind("--core-clock", &axes.core_clock)?;
    one_kind("--memory-clock", &axes.memory_clock)?;
    let no_axis = axes.core_clock.is_none() && axes.memory_clock.is_none() && axes.gpus.is_none();
    let caps = match &axes.power_cap {
        None if no_axis && !mixed => Some("all"),
        cap => cap.as_deref(),
    };
    let caps = axis("--power-cap", caps, &profile.cap.domain(), USUAL_STEP, gpu)?;
    let levels = Domain::Levels(profile.core.levels());
    let core = axis(
        "--core-clock",
        axes.core_clock.as_deref(),
        &levels,
        profile.core.step,
        gpu,
    )?;
    let levels = Domain::Levels(profile.memory.clocks.clone());
    let memory = axes.memory_clock.as_deref();
    let memory = axis(
        "--memory-clock",
        memory,
        &levels,
        profile.memory.default,
        gpu,
    )?;
    let counts = counts(axes.gpus.as_deref(), bench.gpus.len())?;
    let default_cap = (!mixed).then_some(profile.cap.default);
    let most = counts.iter().copied().max().unwrap_or(1);
    let of = |power_cap, core_clock, memory_clock, gpus| Configuration {
        settings: Settings {
            power_cap,
            core_clock,
            memory_clock,
        },
        batch,
        gpus,
    };
    let mut all = Vec::new();
    for gpus in counts {
        for memory in &memory {
            for core in &core {
                for cap in &caps {
                    all.push(of(cap.or(default_cap), *core, *memory, gpus));
                }
            }
        }
    }
    // A clock that is on an axis is locked in the reference too, so that it is one of the points.
    let default_of = |axis: &[Option<Megahertz>], default| axis[0].map(|_| default);
    let reference = of(
        default_cap,
        default_of(&core, profile.core.default),
        default_of(&memory, profile.memory.default),
        most,
    );
    Ok((all, reference))
}

/// The values of an axis, or the default alone where it is not named.
fn axis<Q: Quantity + std::fmt::Display>(
    flag: &'static str,
    text: Option<&str>,
    domain: &Domain<Q>,
    step: Q,
    gpu: &BenchGpu,
) -> Result<Vec<Option<Q>>, SessionError> {
    let Some(text) = text else {
        return Ok(vec![None]);
    };
    let values = parse_axis(text, domain, step, &gpu.name)
        .map_err(|problem| SessionError::Axis { flag, problem })?;
    Ok(values.into_iter().map(Some).collect())
}

/// `1,2,4,8`, or all there are.
fn counts(axis: Option<&str>, there: usize) -> Result<Vec<u64>, SessionError> {
    let Some(axis) = axis else {
        return Ok(vec![there as u64]);
    };
    let bad = |problem: String| SessionError::Count {
        axis: axis.to_owned(),
        problem,
    };
    let mut counts = Vec::new();
    for text in axis.split(',').map(str::trim) {
        let count = text.parse().ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| bad(format!("`{text}` is not a number of GPUs")))?;
        if count > there as u64 {
            return Err(bad(format!(
                "there are {there}: write --simulate NAME:{count}"
            )));
        }
        if counts.contains(&count) {
            return Err(bad(format!("{count} is there twice")));
        }
        counts.push(count);
    }
    Ok(counts)
}

/// `quadro_rtx_6000:8`, as the user would write it.
fn device_name(bench: &Bench) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for gpu in &bench.gpus {
        match kinds.last_mut() {
            Some((name, count)) if *name == gpu.name => *count += 1,
            _ => kinds.push((&gpu.name, 1)),
        }
    }
    let named = kinds.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{name}:{count}"),
    });
    named.collect::<Vec<_>>().join(",")
}

fn workload_info(bench: &Bench, batch: u64) -> WorkloadInfo {
    let profile = &bench.workload.profile;
    WorkloadInfo {
        name: bench.workload.name.clone(),
        network: profile.network.clone(),
        mode: profile.mode.to_string(),
        conv_algorithm: profile
            .conv_algorithms
            .first()
            .map(|form| form.name.clone()),
        dataset: profile.datasets.first().map(|form| form.name.clone()),
        batch,
        items: bench.items,
        scaled_from: bench.gpus[0].work.scaled_from.clone(),
    }
}

fn descriptor(bench: &Bench) -> sweetspot_device::Descriptor {
    let clock = Arc::new(VirtualClock::default());
    SimulatedGpu::new(0, bench.gpus[0].profile.clone(), clock)
        .descriptor()
        .clone()
}
