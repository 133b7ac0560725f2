//! `measure`: time and energy of a command, per device and phase, with method and uncertainty.

mod child;
mod evaluate;
mod machine;
mod progress;
mod result;
mod window;

pub use machine::Machine;
pub use progress::{ProgressPattern, UnknownProgress};
pub use result::{DeviceRun, Idle, Measurement, PhaseTable, RunMeasurement, TotalEnergy};
pub use window::{UnknownWindow, Window};

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use sweetspot_device::{Clock, Descriptor, Device, MonotonicClock};
use sweetspot_guard::{adopt_orphans, not_ignored};
use sweetspot_link::Reader;
use sweetspot_measure::math::Span;
use sweetspot_measure::{MethodChoice, Recorded, Sampler};
use sweetspot_quantity::{Seconds, Watts};

use crate::SessionError;
use crate::gpus::{Slices, all_gpus, open_nvml, select};
use child::{ChildRun, Surroundings};

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
    let machine = Machine::here(nvml.driver_version().ok());
    let gpus = select(all_gpus(nvml)?, request.device.as_deref(), Slices::Too)?;
    if let Some(lost) = gpus.iter().find(|gpu| gpu.is_lost()) {
        return Err(SessionError::Lost(lost.descriptor().name.clone()));
    }
    let devices: Vec<Descriptor> = gpus.iter().map(|gpu| gpu.descriptor().clone()).collect();
    let system = |what: &'static str| move |problem| SessionError::System { what, problem };
    let signals = not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT]);
    let signals = Signals::new(signals).map_err(system("signals cannot be caught"))?;
    // What a command leaves behind becomes this process' child, and is noticed.
    adopt_orphans();
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock);
    let boxed = gpus
        .into_iter()
        .map(|gpu| Box::new(gpu) as Box<dyn Device + Send>);
    let sampler = Sampler::start(boxed.collect(), request.method, clock.clone())?;
    let mut around = Surroundings {
        request,
        sampler: &sampler,
        clock: clock.as_ref(),
        signals,
        watch,
    };
    let idle = request.idle.then(|| at_rest(&sampler));
    let runs = all_runs(&mut around);
    let recorded = sampler.stop()?;
    let runs = runs?;
    let measurement = evaluate::evaluate(request, machine, &devices, &recorded, &runs, idle);
    let recording = Recording {
        begins: runs.iter().map(|run| run.span.begin).collect(),
        devices,
        recorded,
    };
    Ok((measurement, recording))
}

fn at_rest(sampler: &Sampler) -> Span {
    let begin = sampler.mark();
    std::thread::sleep(IDLE);
    Span::new(begin, sampler.mark())
}

/// Every run, until one is interrupted or fails.
fn all_runs(around: &mut Surroundings<'_>) -> Result<Vec<ChildRun>, SessionError> {
    let mut runs = Vec::new();
    for number in 0..around.request.warmup + around.request.runs {
        around.prepare()?;
        let mut link = Reader::create()?;
        let run = around.run(&mut link)?;
        let is_over = run.interrupted || run.exit_code() != 0;
        if number >= around.request.warmup {
            runs.push(run);
        } else if is_over {
            around
                .watch
                .tell("the command failed in a run to warm up: what it did then is shown");
            runs.push(run);
        }
        if is_over {
            break;
        }
    }
    Ok(runs)
}
