//! `tune` on real GPUs: runs a command on leased GPUs and tunes their settings while it runs.

use std::sync::Arc;

use sweetspot_control::tune::{
    EarlierChoice, JobLength, PointTable, TuneConfig, TuneKnob, TuneRequest, TuneSpace, TunedJob,
    Tuner,
};
use sweetspot_device::{Descriptor, DeviceKind, Knob, MigSlices, MonotonicClock, Settings};
use sweetspot_guard::GuardError;
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, ProgressReader, RunLimits, RunOutcome,
    SignalSource, WorkloadError, run_until_exit,
};

use super::choices::Choice;
use super::meter::EnergyMeter;
use super::point_setter::PointSetter;
use super::tune_loop::{TuneLoop, TuneLoopEnd};
use super::{ChoiceStore, TunedCommand, TunedCommandResult, fingerprint, recall, remember};
use crate::SessionError;
use crate::host::{
    DevicesError, Gpu, descriptors, descriptors_of, host_energy_parts, reopen_for_reading,
    select_working, settable_packages, visibility_variables,
};
use crate::measure::{Machine, MeasureRequest};
use crate::observer::Observer;
use crate::run::shortfall_reason;

/// Leases the GPUs, runs the command, tunes the GPUs' settings meanwhile and restores them.
pub fn tune(
    request: &TuneRequest,
    command: &TunedCommand,
    store: Option<&ChoiceStore>,
    guard: GuardProgram<'_>,
    observer: &mut dyn Observer,
) -> Result<TunedCommandResult, SessionError> {
    if command.read_only {
        return Err(DevicesError::ReadOnly.into());
    }
    let gpus = select_working(command.device.as_deref(), MigSlices::Exclude)?;
    let job_devices = JobDevices::new(gpus, request.knob)?;
    let devices = descriptors(job_devices.set());
    let mut space = TuneSpace::new(&devices, request.knob)?;
    let words = command.command.iter().map(|word| word.to_string_lossy());
    let workload = words.collect::<Vec<_>>().join(" ");
    let is_simulated = Machine::detect(None).simulated;
    let fingerprint = fingerprint(request, &devices, &workload, is_simulated);
    let remembered = match command.fresh {
        true => None,
        false => recall(store, &fingerprint, observer),
    };
    let signals = SignalSource::listen()?;
    let mut note = |text: &str| observer.note(text);
    let mut lease = Lease::take(&devices, guard, &signals, &mut note)?;
    if !job_devices.host.is_empty() {
        observer.note("the energy is that of the GPUs, the processor packages and their memory");
    }
    let settable = settable_space(&space, job_devices.set(), &mut lease, observer);
    let run = settable.and_then(|settable| {
        space = settable;
        if let Some(note) = unavailable_knob_note(&space) {
            observer.note(&note);
        }
        let mut config = tuner_config(request, &devices, &space, remembered);
        config.gpus = job_devices.gpus.len() as u64;
        run_tuned(
            Tuner::new(config),
            command,
            &space,
            &job_devices,
            &mut lease,
            &signals,
            observer,
        )
    });
    let signal = lease.interrupted();
    let mut note = |text: &str| observer.note(text);
    let restored = lease.release(&mut note);
    let run = match (signal, run) {
        (Some(signal), Err(_)) => return Err(WorkloadError::Interrupted(signal).into()),
        (_, run) => run.map_err(|problem| problem.after_release(&restored))?,
    };
    let ended = run.outcome.ended;
    let tuned = run.end.tuner.finish();
    let mut points = PointTable::new(&space, &tuned);
    if !job_devices.host.is_empty() {
        job_devices.spread(&mut points);
    }
    let job = TunedJob {
        workload,
        knob: request.knob,
        scope: request.settings,
        criteria: request.criteria.clone(),
        strategy: request.strategy,
        settings: points.settings,
        settings_of_gpus: points.settings_of_gpus,
        labels: points.labels,
        reference: space.space.reference(),
        time: (run.outcome.exited - run.end.began).max(Seconds::ZERO),
        tuned,
        energy: run.end.energy,
        energy_of_gpus: run.end.energy_of_gpus,
        items: run.items,
        begins: vec![Seconds::ZERO],
        power: run.end.power,
        restored: restored?,
        devices: descriptors_of(job_devices.measured()),
    };
    if signal.is_none() && ended == CommandExit::Code(0) {
        remember(store, &fingerprint, &job, observer);
    }
    Ok(TunedCommandResult {
        job,
        ended: match signal {
            Some(signal) => CommandExit::Signal(signal),
            None => ended,
        },
    })
}

/// The devices of a tuned job.
struct JobDevices {
    gpus: Vec<Gpu>,
    /// The processor packages that are set; empty if GPUs are set.
    packages: Vec<Gpu>,
    /// The parts of the host whose energy counts; empty if GPUs are set.
    host: Vec<Gpu>,
}

impl JobDevices {
    /// Finds the devices that a knob needs. Where the processors are capped, their energy must be known.
    fn new(gpus: Vec<Gpu>, knob: TuneKnob) -> Result<Self, SessionError> {
        let (packages, host) = match knob {
            TuneKnob::CpuPowerCap => (settable_packages()?, host_energy_parts()?),
            _ => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            gpus,
            packages,
            host,
        })
    }

    /// The devices whose settings are tuned.
    fn set(&self) -> &[Gpu] {
        match self.packages.is_empty() {
            true => &self.gpus,
            false => &self.packages,
        }
    }

    /// The devices whose energy counts.
    fn measured(&self) -> impl Iterator<Item = &Gpu> {
        self.gpus.iter().chain(&self.host)
    }

    /// Gives every measured device its settings at each point: a package the cap, all others none.
    fn spread(&self, points: &mut PointTable) {
        let kinds: Vec<DeviceKind> = self
            .measured()
            .map(|device| device.descriptor().kind)
            .collect();
        let of_point = |settings: &Settings| {
            let of_device = |kind: &DeviceKind| match kind {
                DeviceKind::CpuPackage => *settings,
                _ => Settings::default(),
            };
            kinds.iter().map(of_device).collect()
        };
        points.settings_of_gpus = points.settings.iter().map(of_point).collect();
    }
}

/// The search space that can be set, with its reference set: if the tuner chooses the knob and the power cap may not be
/// changed, the space of the core clock. If a device cannot be set at all, the command is not started.
fn settable_space(
    space: &TuneSpace,
    gpus: &[Gpu],
    lease: &mut Lease<'_>,
    observer: &mut dyn Observer,
) -> Result<TuneSpace, SessionError> {
    let reference = space.space.reference();
    let set = PointSetter::new(space, gpus).set(lease, reference, None);
    let refused = match set.map_err(|(_, error)| error) {
        Ok(reduced) => {
            if let Some((index, cap)) = reduced {
                observer.note(&format!(
                    "{}: savings are those against {}, because the reference of {} is not enforced ({})",
                    gpus[index].descriptor().name,
                    cap.enforced,
                    cap.requested,
                    shortfall_reason(&cap)
                ));
            }
            return Ok(space.clone());
        }
        Err(refused @ GuardError::Refused(_)) if space.clocks.is_some() => refused,
        Err(problem) => return Err(problem.into()),
    };
    let clocks = TuneSpace::without_caps(&descriptors(gpus))?;
    let mut setter = PointSetter::new(&clocks, gpus);
    let lowest = clocks.settings.len() - 1;
    // A lock that is set and reset shows whether clocks can be changed; the highest one has the least effect.
    let test = setter.set(lease, lowest.min(1), None);
    match test.and_then(|_| setter.set(lease, clocks.space.reference(), None)) {
        Ok(_) => Ok(clocks),
        Err(_) => Err(refused.into()),
    }
}

/// Says which knob is tuned if the other one cannot be set; `None` if there was no choice or both can be set.
fn unavailable_knob_note(space: &TuneSpace) -> Option<String> {
    let knob = space.unavailable?;
    let tuned = match knob {
        Knob::PowerCap => Knob::CoreClock,
        _ => Knob::PowerCap,
    };
    Some(format!(
        "the {knob} of this GPU cannot be set, so the {tuned} is tuned"
    ))
}

/// The tuner's configuration, which includes the run time and the settings of an earlier run of the same job.
fn tuner_config(
    request: &TuneRequest,
    devices: &[Descriptor],
    space: &TuneSpace,
    remembered: Option<Choice>,
) -> TuneConfig {
    let length = match &remembered {
        Some(choice) => JobLength::Time(Seconds::new(choice.time_s)),
        None => JobLength::Unknown,
    };
    let earlier = remembered.map(|choice| EarlierChoice {
        settings: choice.settings,
        each: choice.each,
        gain: Ratio::new(choice.gain),
        expected_regret: choice.expected_regret.map(Ratio::new),
    });
    request.tuner_config(devices, space, length, earlier)
}

/// The results of a tuned command that has exited.
struct FinishedRun {
    outcome: RunOutcome,
    end: TuneLoopEnd,
    items: Option<f64>,
}

/// Runs the command; the tuner changes the GPUs' settings meanwhile.
fn run_tuned(
    tuner: Tuner,
    command: &TunedCommand,
    space: &TuneSpace,
    devices: &JobDevices,
    lease: &mut Lease<'_>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<FinishedRun, SessionError> {
    let setter = PointSetter::at_reference(space, devices.set());
    let measures_others = !devices.host.is_empty();
    let gpus = &devices.gpus;
    let devices = reopen_for_reading(devices.measured())?;
    let sampler = Sampler::start(devices, MethodChoice::Auto, Arc::new(MonotonicClock))?;
    let mut reader = ProgressReader::with_link()?;
    let meter = EnergyMeter::start(sampler)?;
    let mut tune_loop = TuneLoop::new(tuner, setter, meter, observer);
    tune_loop.measures_others = measures_others;
    let outcome = run_until_exit(
        &command_spec(command, gpus),
        RunLimits::default(),
        Some(lease),
        signals,
        &mut reader,
        &mut tune_loop,
    )?;
    Ok(FinishedRun {
        outcome,
        end: tune_loop.finish(),
        items: reader.counter().items(),
    })
}

/// How the command is started: on the selected GPUs, and with its output where the request wants it.
fn command_spec(command: &TunedCommand, gpus: &[Gpu]) -> CommandSpec {
    let request = MeasureRequest {
        progress: command.progress.clone(),
        metrics: command.metrics.clone(),
        keep_stdout: command.keep_stdout,
        // The command must use the GPUs that are tuned.
        environment: match command.device {
            Some(_) => visibility_variables(gpus).to_vec(),
            None => Vec::new(),
        },
        ..MeasureRequest::new(command.command.clone())
    };
    request.command_spec()
}
