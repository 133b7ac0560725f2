//! `measure`: time and energy of a command, per device and phase, with method and uncertainty.

mod child;
mod evaluate;
mod machine;
mod process;
mod progress;
mod result;
mod samples;
mod window;

pub use machine::Machine;
pub(crate) use progress::Said;
pub use progress::{ProgressPattern, UnknownProgress};
pub use result::{DeviceRun, Idle, Measurement, PhaseTable, RunMeasurement, Stopped, TotalEnergy};
pub use samples::series;
pub use window::{UnknownWindow, Window};

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sweetspot_backend_nvml::NvmlGpu;
use sweetspot_device::{Clock, Descriptor, Device, MonotonicClock, SensorKind};
use sweetspot_guard::{adopt_orphans, not_ignored};
use sweetspot_link::Reader;
use sweetspot_measure::math::Span;
use sweetspot_measure::{MethodChoice, Recorded, Sampler};
use sweetspot_quantity::{Seconds, Watts};

use crate::SessionError;
use crate::gpus::{Slices, all_gpus, open_nvml, select};
pub(crate) use child::{Attention, ChildRun, Surroundings, Tail, rest};
use evaluate::evaluate;
pub(crate) use evaluate::evaluate_beside;
pub(crate) use process::{Launch, Outlets, Output, OwnChildren, Starter};

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
    pub window: Window,
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
    /// Where the command runs, if not here.
    pub folder: Option<String>,
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
            window: Window::Run,
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
}

/// What happens while a command runs, for a line on a terminal.
pub trait Watch {
    /// The present state; called some ten times a second.
    fn tick(&mut self, elapsed: Seconds, power: Option<Watts>, items: u64);
    /// The command is over, or about to print.
    fn clear(&mut self);
    /// Something to know at once.
    fn tell(&mut self, note: &str);
}

/// Nobody looks.
impl Watch for () {
    fn tick(&mut self, _: Seconds, _: Option<Watts>, _: u64) {}
    fn clear(&mut self) {}
    fn tell(&mut self, _: &str) {}
}

/// How long the devices are watched at rest.
const IDLE: Duration = Duration::from_secs(5);

/// What was recorded, before anything is computed from it.
pub struct Recording {
    /// The devices.
    pub devices: Vec<Descriptor>,
    /// What was read of them.
    pub recorded: Vec<Recorded>,
    /// When each run began.
    pub begins: Vec<sweetspot_device::Moment>,
}

/// Runs and measures the command.
pub fn measure(
    request: &MeasureRequest,
    watch: &mut dyn Watch,
) -> Result<(Measurement, Recording), SessionError> {
    let nvml = open_nvml()?;
    let gpus = select(all_gpus(nvml)?, request.device.as_deref(), Slices::Too)?;
    let system = |what: &'static str| move |problem| SessionError::System { what, problem };
    let signals = not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
    let signals = Signals::new(signals).map_err(system("signals cannot be caught"))?;
    // What a command leaves behind becomes this process' child, and is noticed.
    adopt_orphans();
    let attention = Attention::Caught(signals);
    measure_on(gpus, request, &mut OwnChildren, attention, watch)
}

/// The same on these GPUs, with whoever starts the command.
pub(crate) fn measure_on(
    gpus: Vec<NvmlGpu>,
    request: &MeasureRequest,
    starter: &mut dyn Starter,
    attention: Attention,
    watch: &mut dyn Watch,
) -> Result<(Measurement, Recording), SessionError> {
    let machine = Machine::here(open_nvml()?.driver_version().ok());
    if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
        return Err(SessionError::Lost(lost.descriptor().name.clone()));
    }
    let devices: Vec<Descriptor> = gpus.iter().map(|gpu| gpu.descriptor().clone()).collect();
    if request.method == MethodChoice::Counter
        && let Some(without) = devices
            .iter()
            .find(|device| device.sensor(SensorKind::EnergyCounter).is_none())
    {
        return Err(SessionError::Setting {
            device: without.name.clone(),
            problem: "it has no energy counter: use --method auto or buffer".to_owned(),
        });
    }
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let boxed = gpus
        .into_iter()
        .map(|gpu| Box::new(gpu) as Box<dyn Device + Send>);
    let sampler = Sampler::start(boxed.collect(), request.method, clock.clone())?;
    let mut around = Surroundings {
        request,
        sampler: &sampler,
        clock: clock.as_ref(),
        attention,
        watch,
    };
    let idle = request.idle.then(|| at_rest(&mut around)).transpose();
    let runs = idle.map(|idle| (idle, all_runs(&mut around, starter)));
    let recorded = sampler.stop()?;
    let (idle, (runs, stopped)) = runs?;
    // What was measured before something went wrong is told.
    let stopped = match stopped {
        Some(problem) if runs.is_empty() => return Err(problem),
        Some(SessionError::Interrupted(signal)) => Some(Stopped::Signal(signal)),
        Some(problem) => Some(Stopped::Problem(problem.to_string())),
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

fn at_rest(around: &mut Surroundings<'_>) -> Result<Span, SessionError> {
    let begin = around.sampler.mark();
    around.rest(IDLE)?;
    Ok(Span::new(begin, around.sampler.mark()))
}

/// Every run, until one is interrupted or fails; and what came between them that ended it.
fn all_runs(
    around: &mut Surroundings<'_>,
    starter: &mut dyn Starter,
) -> (Vec<ChildRun>, Option<SessionError>) {
    let mut runs = Vec::new();
    let all = around.request.warmup + around.request.runs;
    for number in 0..all {
        let run = match one_run(around, starter) {
            Ok(run) => run,
            Err(problem) => return (runs, Some(problem)),
        };
        let interrupted = run.interrupted.filter(|_| number + 1 < all);
        let is_over = interrupted.is_some() || run.exit_code() != 0;
        if is_over && number < around.request.warmup {
            around
                .watch
                .tell("the command ended early in a run to warm up: what it did then is shown");
        }
        if is_over || number >= around.request.warmup {
            runs.push(run);
        }
        if is_over {
            return (runs, interrupted.map(SessionError::Interrupted));
        }
    }
    (runs, None)
}

fn one_run(
    around: &mut Surroundings<'_>,
    starter: &mut dyn Starter,
) -> Result<ChildRun, SessionError> {
    around.prepare()?;
    let mut link = Reader::create()?;
    around.run(starter, &mut link)
}
