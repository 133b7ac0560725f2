//! A job that is tuned in real time: a command on leased GPUs, whose settings change while it runs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sweetspot_control::tune::{
    EarlierChoice, JobLength, TuneAction, TuneEvent, TuneRequest, TuneSpace, TunedJob, Tuner,
    TuningState,
};
use sweetspot_device::{Clock, MigSlices, Moment, MonotonicClock};
use sweetspot_guard::GuardError;
use sweetspot_link::Tuning as LinkTuning;
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};
use sweetspot_workload::{
    CommandExit, CommandSpec, GuardProgram, Lease, Progress, ProgressReader, RunHandler,
    RunInProgress, RunLimits, RunOutcome, SignalSource, WorkloadError, WorkloadEvent,
    run_until_exit,
};

use super::meter::EnergyMeter;
use super::phases::PhaseTracker;
use super::{ChoiceStore, TunedCommand, TunedCommandResult, fingerprint, recall, remember};
use crate::SessionError;
use crate::host::{
    DevicesError, Gpu, descriptors, guard_folder, reopen_for_reading, select_answering, visible,
};
use crate::measure::{Machine, MeasureRequest};
use crate::observer::Observer;

/// How often somebody else's changes are looked for.
const CHECK_EVERY: Duration = Duration::from_secs(1);

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
    let gpus = select_answering(command.device.as_deref(), MigSlices::Exclude)?;
    let devices = descriptors(&gpus);
    let space = TuneSpace::new(&devices, request.knob)?;
    let words = command.command.iter().map(|word| word.to_string_lossy());
    let workload = words.collect::<Vec<_>>().join(" ");
    let is_simulated = Machine::here(None).simulated;
    let print = fingerprint(request, &devices, &workload, is_simulated);
    let remembered = match command.fresh {
        true => None,
        false => recall(store, &print, observer),
    };
    let length = match &remembered {
        Some(choice) => JobLength::Time(Seconds::new(choice.time_s)),
        None => JobLength::Unknown,
    };
    let earlier = remembered.map(|choice| EarlierChoice {
        settings: choice.settings,
        gain: Ratio::new(choice.gain),
        expected_regret: choice.expected_regret.map(Ratio::new),
    });
    let config = request.tuner_config(&devices, &space, length, earlier);
    let signals = SignalSource::listen()?;
    let mut note = |text: &str| observer.note(text);
    let mut lease = Lease::take(&devices, &guard_folder(), guard, &signals, &mut note)?;
    let done = run_tuned(
        Tuner::new(config),
        command,
        &space,
        &gpus,
        &mut lease,
        &signals,
        observer,
    );
    let signal = lease.interrupted();
    let mut note = |text: &str| observer.note(text);
    let restored = lease.release(&mut note);
    let done = match (signal, done) {
        (Some(signal), Err(_)) => return Err(WorkloadError::Interrupted(signal).into()),
        (_, done) => done.map_err(|problem| problem.after_release(&restored))?,
    };
    let ended = done.outcome.ended;
    let tuned = TunedJob {
        workload,
        knob: request.knob,
        question: request.question.clone(),
        strategy: request.strategy,
        settings: space.settings.clone(),
        labels: space.labels.clone(),
        reference: space.space.reference(),
        tuned: done.tuner.finish(),
        time: done.time,
        energy: done.energy,
        items: done.items,
        begins: vec![Seconds::ZERO],
        power: done.power,
        restored: restored?,
        devices,
    };
    if signal.is_none() && ended == CommandExit::Code(0) {
        remember(store, &print, &tuned, observer);
    }
    Ok(TunedCommandResult {
        job: tuned,
        ended: match signal {
            Some(signal) => CommandExit::Signal(signal),
            None => ended,
        },
    })
}

/// A job that was run to its end.
struct Done {
    tuner: Tuner,
    outcome: RunOutcome,
    time: Seconds,
    energy: Option<Joules>,
    items: Option<f64>,
    power: Vec<(Seconds, Watts)>,
}

fn run_tuned(
    tuner: Tuner,
    command: &TunedCommand,
    space: &TuneSpace,
    gpus: &[Gpu],
    lease: &mut Lease<'_>,
    signals: &SignalSource,
    observer: &mut dyn Observer,
) -> Result<Done, SessionError> {
    let mut setter = PlaceSetter {
        space,
        gpus,
        point: None,
    };
    // Where a device cannot be set at all, nothing is started.
    setter.set(lease, space.space.reference())?;
    let devices = reopen_for_reading(gpus)?;
    let sampler = Sampler::start(devices, MethodChoice::Auto, Arc::new(MonotonicClock))?;
    let mut reader = ProgressReader::with_link()?;
    let meter = EnergyMeter::start(sampler)?;
    let mut handler = TuneLoop {
        began: meter.began(),
        tuner,
        setter,
        meter,
        observer,
        items: 0.0,
        phases: PhaseTracker::default(),
        energy: None,
        power: Vec::new(),
        is_contested: false,
        has_exited: false,
        failure: None,
        tuning: None,
        check_at: Instant::now() + CHECK_EVERY,
    };
    let outcome = run_until_exit(
        &command_spec(command, gpus),
        RunLimits::default(),
        Some(lease),
        signals,
        &mut reader,
        &mut handler,
    )?;
    let TuneLoop {
        mut tuner,
        meter,
        observer,
        began,
        mut energy,
        mut power,
        ..
    } = handler;
    // The command is over: nothing is set any more.
    let mut step = |event| {
        for action in tuner.step(MonotonicClock.now() - began, event) {
            if let TuneAction::Notify(notice) = action {
                observer.note(&notice.to_string());
            }
        }
    };
    let (last, unknown) = meter.stop();
    for (at, total) in last {
        power.extend(mean_power(&mut energy, began, at, total));
        let at = at - began;
        step(TuneEvent::Energy { at, total });
    }
    step(TuneEvent::Ended);
    if unknown > Seconds::ZERO {
        observer.note(&format!(
            "no power readings for the last {unknown:.1} of the job: its energy is unknown"
        ));
        energy = None;
    }
    Ok(Done {
        tuner,
        time: (outcome.exited - began).max(Seconds::ZERO),
        outcome,
        energy: energy.map(|(_, total)| total),
        items: reader.counter().items(),
        power,
    })
}

fn command_spec(command: &TunedCommand, gpus: &[Gpu]) -> CommandSpec {
    let request = MeasureRequest {
        progress: command.progress.clone(),
        keep_stdout: command.keep_stdout,
        // The command is to work on those GPUs that are tuned.
        environment: match command.device {
            Some(_) => visible(gpus).to_vec(),
            None => Vec::new(),
        },
        ..MeasureRequest::of(command.command.clone())
    };
    request.command_spec()
}

/// The mean power since the last total of energy, with the time of its end.
fn mean_power(
    energy: &mut Option<(Moment, Joules)>,
    began: Moment,
    at: Moment,
    total: Joules,
) -> Option<(Seconds, Watts)> {
    let (before, was) = energy.replace((at, total)).unwrap_or((began, Joules::ZERO));
    (at > before).then(|| (at - began, (total - was) / (at - before)))
}

/// Gives a tuner what happens and does what it asks for.
struct TuneLoop<'a> {
    tuner: Tuner,
    setter: PlaceSetter<'a>,
    meter: EnergyMeter,
    observer: &'a mut dyn Observer,
    began: Moment,
    /// Items so far. They never fall, whichever of link and output counts.
    items: f64,
    phases: PhaseTracker,
    energy: Option<(Moment, Joules)>,
    power: Vec<(Seconds, Watts)>,
    /// Whether somebody else sets the same devices.
    is_contested: bool,
    has_exited: bool,
    failure: Option<GuardError>,
    /// What the workload is to be told.
    tuning: Option<TuningState>,
    check_at: Instant,
}

impl RunHandler for TuneLoop<'_> {
    type Error = SessionError;

    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), SessionError> {
        // After a signal the devices are back, and the command has a while to end.
        if run.interrupted().is_some() && !self.has_exited {
            return Ok(());
        }
        for (at, total) in self.meter.readings() {
            let power = mean_power(&mut self.energy, self.began, at, total);
            self.power.extend(power);
            let at = at - self.began;
            self.step(run, TuneEvent::Energy { at, total });
        }
        self.take_reports(run, events);
        if Instant::now() >= self.check_at && !self.has_exited {
            self.check_at = Instant::now() + CHECK_EVERY;
            self.look_for_others(run)?;
        }
        self.step(run, TuneEvent::Tick);
        if let (Some(tuning), Some(control)) = (self.tuning.take(), run.control()) {
            control.set_tuning(word(tuning));
        }
        match self.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok(()),
        }
    }

    fn exited(&mut self) {
        self.has_exited = true;
    }
}

impl TuneLoop<'_> {
    fn take_reports(&mut self, run: &mut RunInProgress<'_, '_>, events: Vec<WorkloadEvent>) {
        let mut reports: Vec<Progress> = Vec::new();
        for event in events {
            match event {
                WorkloadEvent::Progress(progress) => reports.push(progress),
                WorkloadEvent::Link(event) => self.phases.take(&event),
            }
        }
        // Writers come one after the other; time does not go back.
        reports.sort_by_key(|progress| progress.at);
        for progress in reports {
            self.items += progress.items;
            let event = TuneEvent::Progress {
                at: progress.at - self.began,
                total: self.items,
            };
            self.step(run, event);
        }
        if let Some(phase) = self.phases.change() {
            self.step(run, TuneEvent::Phase(phase));
        }
    }

    fn step(&mut self, run: &mut RunInProgress<'_, '_>, event: TuneEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = MonotonicClock.now() - self.began;
            for action in self.tuner.step(now, event) {
                match action {
                    TuneAction::Set(point) => events.extend(self.set(run, point)),
                    TuneAction::Notify(notice) => self.observer.note(&notice.to_string()),
                    TuneAction::ReportState(tuning) => self.tuning = Some(tuning),
                }
            }
        }
    }

    /// Does nothing where it is too late to set anything.
    fn set(&mut self, run: &mut RunInProgress<'_, '_>, point: usize) -> Option<TuneEvent> {
        if run.interrupted().is_some() || self.is_contested || self.has_exited {
            return None;
        }
        let set = self.setter.set(run.lease()?, point);
        match set {
            Ok(()) => Some(TuneEvent::Applied(point)),
            // Between the look above and the answer a signal may have come.
            Err(GuardError::Refused(_)) if run.interrupted().is_some() => None,
            Err(GuardError::Refused(why)) => Some(TuneEvent::Rejected {
                point,
                reason: why.to_string(),
            }),
            Err(error) => {
                self.failure = Some(error);
                None
            }
        }
    }

    /// Stops setting anything where somebody else has changed a cap.
    fn look_for_others(&mut self, run: &mut RunInProgress<'_, '_>) -> Result<(), SessionError> {
        if self.is_contested {
            return Ok(());
        }
        let Some(lease) = run.lease() else {
            return Ok(());
        };
        let mut changed = None;
        for gpu in self.setter.gpus {
            changed = changed.or(lease.changed_by_others(&gpu.descriptor().id)?);
        }
        if let Some(changed) = changed {
            self.is_contested = true;
            self.step(run, TuneEvent::ChangedExternally(changed.to_string()));
        }
        Ok(())
    }
}

/// Sets one point of the search space on every GPU.
struct PlaceSetter<'a> {
    space: &'a TuneSpace,
    gpus: &'a [Gpu],
    /// The point that is set.
    point: Option<usize>,
}

impl PlaceSetter<'_> {
    /// Sets the same point on every GPU, or on none.
    fn set(&mut self, lease: &mut Lease<'_>, point: usize) -> Result<(), GuardError> {
        for index in 0..self.gpus.len() {
            let Err(error) = self.set_one(lease, index, point) else {
                continue;
            };
            if let Some(before) = self.point {
                for index in 0..=index {
                    let _ = self.set_one(lease, index, before);
                }
            }
            return Err(error);
        }
        self.point = Some(point);
        Ok(())
    }

    fn set_one(&self, lease: &mut Lease<'_>, index: usize, point: usize) -> Result<(), GuardError> {
        let device = &self.gpus[index].descriptor().id;
        lease.set(device, &self.space.settings[point]).map(drop)
    }
}

/// What the workload is told.
fn word(tuning: TuningState) -> LinkTuning {
    match tuning {
        TuningState::Off => LinkTuning::Off,
        TuningState::Exploring => LinkTuning::Exploring,
        TuningState::Settled => LinkTuning::Settled,
    }
}
