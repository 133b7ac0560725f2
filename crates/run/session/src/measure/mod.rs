//! `measure`: measures the time and energy of a command for each device and phase, with method and uncertainty.

mod error;
mod evaluate;
mod items;
mod limits;
mod machine;
mod observer_cost;
mod ranks;
mod reports;
mod result;
mod run;
mod samples;
mod serving;
mod slo;
mod whole;

pub use error::MeasureError;
pub use machine::Machine;
pub use observer_cost::{ObserverCost, PowerDifference};
pub use result::{
    DeviceRun, IdleEnergy, Measurement, PhaseSummary, RunMeasurement, SloResult, StopReason,
    TotalEnergy,
};
pub use samples::series;
pub use serving::{ProbeSummary, ServingSummary, ServingWindow};
pub use slo::ClockControl;
pub use sweetspot_measure::{RunWindow, UnknownWindow};
pub use sweetspot_workload::{InvalidPattern, ProgressSource};
pub use whole::HostRun;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sweetspot_control::slo::SloConfig;
use sweetspot_device::{Descriptor, Device, MigSlices, MonotonicClock, SensorKind};
use sweetspot_measure::math::Span;
use sweetspot_measure::{DeviceRecording, MethodChoice, Sampler};
use sweetspot_workload::{
    CommandSpec, Lease, MetricsSource, OnSignal, OutputTarget, RunLimits, SignalSource,
    WorkloadError,
};

use crate::calibrate::{Calibration, reject_other_devices};
use crate::host::{Gpu, all_gpus, descriptors, host_energy_parts, open_host, reject_lost, select};
use crate::node::NodeMeters;
use crate::observer::Observer;
use crate::{DevicesError, SessionError};
use evaluate::evaluate;
pub(crate) use evaluate::evaluate_with_others;
use observer_cost::{CostClock, CostProbe};
pub(crate) use run::{MeasuredRun, RunContext};
use sweetspot_study::EnergyOf;
use whole::Surroundings;

/// A request to measure a command.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The number of measured runs.
    pub runs: u32,
    /// The number of warm-up runs, which come first and are not measured.
    pub warmup: u32,
    /// A shell command that is executed before each run.
    pub prepare: Option<String>,
    /// The part of a run that is measured.
    pub window: RunWindow,
    /// Whether to measure the idle devices first, and to report the energy above their idle power too.
    pub idle: bool,
    /// Where progress is found in the command's output.
    pub progress: ProgressSource,
    /// The metrics page of the server that the command is, or that it uses; progress is then read there.
    pub metrics: Option<MetricsSource>,
    /// The number of a process that runs already and is measured in place of a command.
    pub attach: Option<u32>,
    /// The latency bounds to keep by the core clock of leased GPUs; nothing is set if `None`.
    pub slo: Option<SloConfig>,
    /// The method by which energy is measured.
    pub method: MethodChoice,
    /// Whether standard output is reserved for the result document; the command's output then goes to standard error.
    pub keep_stdout: bool,
    /// Whether the command's output is hidden; its standard input is then empty.
    pub quiet: bool,
    /// Whether the end of the command's output is stored; its standard input is then empty.
    pub keep_output: bool,
    /// The command's working directory; the current one if `None`.
    pub folder: Option<PathBuf>,
    /// Variables to add to the command's environment.
    pub environment: Vec<(String, String)>,
    /// The longest time that a run may take; no limit if `None`.
    pub timeout: Option<Duration>,
    /// Whether the processors and their memory are measured too.
    pub host: bool,
    /// The meters of the whole machine, by name or spec.
    pub meters: Vec<String>,
    /// The calibrations of sensors to apply.
    pub calibrations: Vec<Calibration>,
    /// Whose energy is compared and counted per item.
    pub energy_of: EnergyOf,
}

impl MeasureRequest {
    /// A request for one run of a command, with defaults for everything else.
    pub fn new(command: Vec<OsString>) -> Self {
        Self {
            device: None,
            command,
            runs: 1,
            warmup: 0,
            prepare: None,
            window: RunWindow::Run,
            idle: false,
            progress: ProgressSource::Automatic,
            metrics: None,
            attach: None,
            slo: None,
            method: MethodChoice::Auto,
            keep_stdout: false,
            quiet: false,
            keep_output: false,
            folder: None,
            environment: Vec::new(),
            timeout: None,
            host: false,
            meters: Vec::new(),
            calibrations: Vec::new(),
            energy_of: EnergyOf::JobGpus,
        }
    }

    /// How the command is started: its words, environment, output and working directory.
    pub(crate) fn command_spec(&self) -> CommandSpec {
        let environment = self.environment.iter();
        CommandSpec {
            environment: environment
                .map(|(name, value)| (name.clone(), value.into()))
                .collect(),
            output: match (self.quiet, self.keep_stdout) {
                (true, _) => OutputTarget::Hidden,
                (false, true) => OutputTarget::StandardError,
                (false, false) => OutputTarget::StandardOutput,
            },
            keep_output: self.keep_output,
            no_input: self.quiet || self.keep_output,
            folder: self.folder.clone(),
            progress: self.progress.clone(),
            metrics: self.metrics.clone(),
            attach: self.attach,
            has_status_line: !self.quiet,
            ..CommandSpec::new(self.command.clone())
        }
    }
}

/// How long the idle devices are measured.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// The sensor readings of a measurement, before they are evaluated.
pub struct Recording {
    /// The descriptors of the measured devices.
    pub devices: Vec<Descriptor>,
    /// The readings of each device, in the order of `devices`.
    pub recorded: Vec<DeviceRecording>,
    /// The moment at which each run started.
    pub begins: Vec<sweetspot_device::Moment>,
}

/// Runs and measures the command.
pub fn measure(
    request: &MeasureRequest,
    observer: &mut dyn Observer,
) -> Result<(Measurement, Recording), SessionError> {
    let gpus = all_gpus(open_host()?.as_ref())?;
    let gpus = select(gpus, request.device.as_deref(), MigSlices::Include)?;
    let signals = SignalSource::listen()?;
    // A job may need time to save its state, and there are no settings to restore: only a second signal ends it.
    let limits = RunLimits {
        on_signal: OnSignal::EndAtSecond,
        timeout: request.timeout.filter(|_| request.attach.is_some()),
        ..RunLimits::default()
    };
    measure_on(gpus, request, None, &signals, limits, observer)
}

/// Runs and measures the command on these GPUs; with a lease, the guard starts the command.
pub(crate) fn measure_on(
    gpus: Vec<Gpu>,
    request: &MeasureRequest,
    lease: Option<&mut Lease<'_>>,
    signals: &SignalSource,
    limits: RunLimits,
    observer: &mut dyn Observer,
) -> Result<(Measurement, Recording), SessionError> {
    let machine = Machine::detect(open_host()?.driver_version().ok());
    reject_lost(&gpus)?;
    if request.energy_of == EnergyOf::Node && request.meters.is_empty() {
        return Err(MeasureError::NoMeter.into());
    }
    let devices = descriptors(&gpus);
    let host = match request.host {
        true => host_energy_parts()?,
        false => Vec::new(),
    };
    let host_devices = descriptors(&host);
    reject_other_devices(&request.calibrations, devices.iter().chain(&host_devices))?;
    let mut meters = NodeMeters::open(&request.meters)?;
    if request.method == MethodChoice::Counter
        && let Some(without) = devices
            .iter()
            .find(|device| device.sensor(SensorKind::EnergyCounter).is_none())
    {
        return Err(DevicesError::NotSupported {
            device: without.name.clone(),
            problem: "this GPU has no energy counter: use the measurement method auto or buffer"
                .to_owned(),
        }
        .into());
    }
    let mut probe = match request.idle {
        true => Some(CostProbe::measure_quiet(&gpus, signals)?),
        false => None,
    };
    let read = gpus.into_iter().chain(host);
    let read = read.map(|device| device as Box<dyn Device + Send>);
    let sampler = Sampler::start(read.collect(), request.method, Arc::new(MonotonicClock))?;
    let mut context = RunContext {
        request,
        sampler: &sampler,
        signals,
        limits,
        observer,
        used_gpus: devices.len(),
        devices: devices.iter().map(|device| device.id.clone()).collect(),
        recognised: None,
    };
    let idle = probe
        .as_mut()
        .map(|probe| measure_idle(&context, probe))
        .transpose();
    let cost = CostClock::start();
    let runs = idle.map(|idle| (idle, all_runs(&mut context, lease)));
    let observer = cost.stop(probe.map(CostProbe::finish));
    if let (Some(meters), Ok((_, (runs, _)))) = (&mut meters, &runs)
        && let Some(last) = runs.last()
    {
        meters.wait_until_shown(last.span.end);
    }
    let mut recorded = sampler.stop()?;
    let (idle, (runs, stopped)) = runs?;
    // Runs that were measured before a failure are still part of the result.
    let stopped = match stopped {
        Some(problem) if runs.is_empty() => return Err(problem),
        Some(problem) => Some(match problem.interrupted() {
            Some(signal) => StopReason::Signal(signal),
            None => StopReason::Problem(problem.to_string()),
        }),
        None => None,
    };
    let host_recorded = recorded.split_off(devices.len());
    let mut measurement = evaluate(request, machine, &devices, &recorded, &runs, idle);
    let surroundings = Surroundings {
        host: &host_devices,
        host_recorded: &host_recorded,
        meters: meters.as_mut().map(|meters| meters.traces(None)),
    };
    for run in &mut measurement.runs {
        surroundings.add_to(run, request, &recorded);
    }
    measurement.stopped = stopped;
    measurement.observer = Some(observer);
    let recording = Recording {
        begins: runs.iter().map(|run| run.span.begin).collect(),
        devices,
        recorded,
    };
    Ok((measurement, recording))
}

/// Waits while the sampler reads the idle devices, and returns the time span of the wait.
fn measure_idle(context: &RunContext<'_>, probe: &mut CostProbe) -> Result<Span, SessionError> {
    let begin = context.sampler.mark();
    probe.mark();
    context.wait(IDLE_TIME)?;
    probe.mark();
    Ok(Span::new(begin, context.sampler.mark()))
}

/// Makes all runs, until one fails or a signal arrives. An error means that something failed between two runs.
fn all_runs(
    context: &mut RunContext<'_>,
    mut lease: Option<&mut Lease<'_>>,
) -> (Vec<MeasuredRun>, Option<SessionError>) {
    let mut runs = Vec::new();
    let all = context.request.warmup + context.request.runs;
    for number in 0..all {
        let run = context
            .prepare()
            .and_then(|()| context.run(lease.as_deref_mut()));
        let run = match run {
            Ok(run) => run,
            Err(problem) => return (runs, Some(problem)),
        };
        let interrupted = run.outcome.interrupted.filter(|_| number + 1 < all);
        let has_ended = interrupted.is_some() || run.outcome.exit_code() != 0;
        if has_ended && number < context.request.warmup {
            context
                .observer
                .note("the command failed in a warm-up run: the result is that run");
        }
        if has_ended || number >= context.request.warmup {
            runs.push(run);
        }
        if has_ended {
            let ended = interrupted.map(|signal| WorkloadError::Interrupted(signal).into());
            return (runs, ended);
        }
    }
    (runs, None)
}
