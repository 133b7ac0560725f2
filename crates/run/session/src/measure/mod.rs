//! `measure`: time and energy of a command, per device and phase, with method and uncertainty.

mod error;
mod evaluate;
mod machine;
mod reports;
mod result;
mod run;
mod samples;

pub use error::MeasureError;
pub use machine::Machine;
pub use result::{DeviceRun, Idle, Measurement, PhaseTable, RunMeasurement, Stopped, TotalEnergy};
pub use samples::series;
pub use sweetspot_measure::{RunWindow, UnknownWindow};
pub use sweetspot_workload::{InvalidPattern, ProgressPattern};

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sweetspot_device::{Descriptor, Device, MigSlices, MonotonicClock, SensorKind};
use sweetspot_measure::math::Span;
use sweetspot_measure::{DeviceRecording, MethodChoice, Sampler};
use sweetspot_workload::{
    CommandSpec, Lease, OnSignal, OutputTarget, RunLimits, SignalSource, WorkloadError,
};

use crate::host::{Gpu, all_gpus, descriptors, open_host, reject_lost, select};
use crate::observer::Observer;
use crate::{DevicesError, SessionError};
use evaluate::evaluate;
pub(crate) use evaluate::evaluate_beside;
pub(crate) use run::{MeasuredRun, RunContext};

/// A command to measure.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// Which GPUs, where the user says.
    pub device: Option<String>,
    /// The command.
    pub command: Vec<OsString>,
    /// Runs that are measured.
    pub runs: u32,
    /// Runs before them that are not.
    pub warmup: u32,
    /// A command for the shell before each run.
    pub prepare: Option<String>,
    /// The part of a run that counts.
    pub window: RunWindow,
    /// Whether to measure the idle devices first, and subtract.
    pub idle: bool,
    /// How progress shows in the command's output.
    pub progress: Option<ProgressPattern>,
    /// How energy is come to.
    pub method: MethodChoice,
    /// Whether standard output is taken by a document, so that the command's own goes to standard error.
    pub keep_stdout: bool,
    /// Whether nothing of the command's output is shown, and it reads nothing.
    pub quiet: bool,
    /// Whether the end of its output is kept, and it reads nothing.
    pub keep_output: bool,
    /// The folder the command runs in, where that is another one.
    pub folder: Option<PathBuf>,
    /// Variables to add to the command's environment.
    pub environment: Vec<(String, String)>,
    /// The longest that a run may take.
    pub timeout: Option<Duration>,
}

impl MeasureRequest {
    /// One run of a command, as plainly as can be.
    pub fn of(command: Vec<OsString>) -> Self {
        Self {
            device: None,
            command,
            runs: 1,
            warmup: 0,
            prepare: None,
            window: RunWindow::Run,
            idle: false,
            progress: None,
            method: MethodChoice::Auto,
            keep_stdout: false,
            quiet: false,
            keep_output: false,
            folder: None,
            environment: Vec::new(),
            timeout: None,
        }
    }

    /// The command as it is started.
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
            ..CommandSpec::new(self.command.clone())
        }
    }
}

/// How long the devices are watched at rest.
const IDLE: Duration = Duration::from_secs(5);

/// What was recorded, before anything is computed from it.
pub struct Recording {
    /// The devices.
    pub devices: Vec<Descriptor>,
    /// What was read of them.
    pub recorded: Vec<DeviceRecording>,
    /// When each run began.
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
    // A training may take its time to save what it has done: nothing here has to be put back.
    let limits = RunLimits {
        on_signal: OnSignal::EndAtSecond,
        ..RunLimits::default()
    };
    measure_on(gpus, request, None, &signals, limits, observer)
}

/// Runs and measures the command on these GPUs, which may be leased.
pub(crate) fn measure_on(
    gpus: Vec<Gpu>,
    request: &MeasureRequest,
    lease: Option<&mut Lease<'_>>,
    signals: &SignalSource,
    limits: RunLimits,
    observer: &mut dyn Observer,
) -> Result<(Measurement, Recording), SessionError> {
    let machine = Machine::here(open_host()?.driver_version().ok());
    reject_lost(&gpus)?;
    let devices = descriptors(&gpus);
    if request.method == MethodChoice::Counter
        && let Some(without) = devices
            .iter()
            .find(|device| device.sensor(SensorKind::EnergyCounter).is_none())
    {
        return Err(DevicesError::NotSupported {
            device: without.name.clone(),
            problem: "it has no energy counter: use the method auto or buffer".to_owned(),
        }
        .into());
    }
    let read = gpus.into_iter().map(|gpu| gpu as Box<dyn Device + Send>);
    let sampler = Sampler::start(read.collect(), request.method, Arc::new(MonotonicClock))?;
    let mut context = RunContext {
        request,
        sampler: &sampler,
        signals,
        limits,
        observer,
    };
    let idle = request.idle.then(|| watch_idle(&context)).transpose();
    let runs = idle.map(|idle| (idle, all_runs(&mut context, lease)));
    let recorded = sampler.stop()?;
    let (idle, (runs, stopped)) = runs?;
    // What was measured before something went wrong is shown.
    let stopped = match stopped {
        Some(problem) if runs.is_empty() => return Err(problem),
        Some(problem) => Some(match problem.interrupted() {
            Some(signal) => Stopped::Signal(signal),
            None => Stopped::Problem(problem.to_string()),
        }),
        None => None,
    };
    let mut measurement = evaluate(request, machine, &devices, &recorded, &runs, idle);
    measurement.stopped = stopped;
    let recording = Recording {
        begins: runs.iter().map(|run| run.span.begin).collect(),
        devices,
        recorded,
    };
    Ok((measurement, recording))
}

fn watch_idle(context: &RunContext<'_>) -> Result<Span, SessionError> {
    let begin = context.sampler.mark();
    context.wait(IDLE)?;
    Ok(Span::new(begin, context.sampler.mark()))
}

/// Makes every run, until one is interrupted or fails; and says what came between them that ended it.
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
        let is_over = interrupted.is_some() || run.outcome.exit_code() != 0;
        if is_over && number < context.request.warmup {
            context
                .observer
                .note("the command ended early in a run to warm up: what it did then is shown");
        }
        if is_over || number >= context.request.warmup {
            runs.push(run);
        }
        if is_over {
            let ended = interrupted.map(|signal| WorkloadError::Interrupted(signal).into());
            return (runs, ended);
        }
    }
    (runs, None)
}
