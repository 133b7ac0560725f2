//! The loop of a tuned command: passes every event to the tuner, and applies the actions that the tuner returns.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sweetspot_control::tune::{TuneAction, TuneEvent, TuneWindow, Tuner, TuningState};
use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_guard::GuardError;
use sweetspot_link::Tuning as LinkTuning;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_workload::{
    MetricsEvent, Progress, RecognisedFormat, RunHandler, RunInProgress, WorkloadEvent,
};

use super::meter::{EnergyMeter, MeterReading};
use super::phases::PhaseTracker;
use super::point_setter::PointSetter;
use super::ranks::RankJoin;
use crate::observer::{Observer, Status, TuneStatus};
use crate::{DevicesError, SessionError};

/// The interval between checks for caps that another program has changed.
const CAP_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The interval between reports of the state.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// The mean power between two energy readings, and the time of the second; `None` if no time has passed.
fn mean_power(
    energy: &mut Option<(Moment, Joules)>,
    began: Moment,
    at: Moment,
    total: Joules,
) -> Option<(Seconds, Watts)> {
    let last = energy.replace((at, total));
    let (last_at, last_total) = last.unwrap_or((began, Joules::ZERO));
    (at > last_at).then(|| (at - began, (total - last_total) / (at - last_at)))
}

/// A tuned command in progress.
pub struct TuneLoop<'a> {
    tuner: Tuner,
    setter: PointSetter<'a>,
    meter: EnergyMeter,
    observer: &'a mut dyn Observer,
    began: Moment,
    /// The items of all ranks. Their number never falls, even if counting changes from the output to the shared-memory
    /// link.
    ranks: RankJoin,
    phases: PhaseTracker,
    /// The format of progress that was recognised in the output.
    recognised: Option<RecognisedFormat>,
    /// The last energy reading: its moment, and the energy since the start.
    energy: Option<(Moment, Joules)>,
    /// The energy of each GPU at that reading.
    energy_of_gpus: Vec<Joules>,
    power: Vec<(Seconds, Watts)>,
    /// Whether another program has changed a cap of the leased devices.
    is_changed_externally: bool,
    has_exited: bool,
    failure: Option<GuardError>,
    /// A new state that has not been sent to the workload yet.
    new_state: Option<TuningState>,
    next_cap_check: Instant,
    /// Whether the measured devices are others than those that are set.
    pub measures_others: bool,
    /// When the state is shown next.
    next_status: Instant,
}

/// The tuner and its measurements after the command has exited.
pub struct TuneLoopEnd {
    pub tuner: Tuner,
    pub began: Moment,
    pub energy: Option<Joules>,
    /// The energy of each GPU, as far as it is known.
    pub energy_of_gpus: Vec<Option<Joules>>,
    /// The mean power between neighbouring energy readings, with the time of the later one.
    pub power: Vec<(Seconds, Watts)>,
}

impl<'a> TuneLoop<'a> {
    /// Creates the loop; nothing is set yet.
    pub fn new(
        tuner: Tuner,
        setter: PointSetter<'a>,
        meter: EnergyMeter,
        observer: &'a mut dyn Observer,
    ) -> Self {
        Self {
            began: meter.began(),
            tuner,
            setter,
            meter,
            observer,
            ranks: RankJoin::default(),
            phases: PhaseTracker::default(),
            recognised: None,
            energy: None,
            energy_of_gpus: Vec::new(),
            power: Vec::new(),
            is_changed_externally: false,
            has_exited: false,
            failure: None,
            new_state: None,
            next_cap_check: Instant::now() + CAP_CHECK_INTERVAL,
            measures_others: false,
            next_status: Instant::now(),
        }
    }

    /// Passes the last readings to the tuner after the command has exited; nothing is set any more.
    pub fn finish(self) -> TuneLoopEnd {
        let Self {
            mut tuner,
            meter,
            observer,
            began,
            mut energy,
            mut energy_of_gpus,
            mut power,
            ..
        } = self;
        let mut step = |event| {
            for action in tuner.step(MonotonicClock.now() - began, event) {
                if let TuneAction::Notify(notice) = action {
                    observer.note(&notice.to_string());
                }
            }
        };
        let (last, unknown) = meter.stop();
        for reading in last {
            if let MeterReading::Energy(at, totals) = reading {
                let total = totals.iter().copied().sum();
                energy_of_gpus = totals;
                power.extend(mean_power(&mut energy, began, at, total));
                let at = at - began;
                step(TuneEvent::Energy { at, total });
            }
        }
        step(TuneEvent::Ended);
        if unknown > Seconds::ZERO {
            observer.note(&format!(
                "no power readings for {unknown:.1} of the job: its energy is unknown"
            ));
            energy = None;
        }
        let known = energy.map(|_| ());
        TuneLoopEnd {
            tuner,
            began,
            energy_of_gpus: energy_of_gpus
                .into_iter()
                .map(|total| known.map(|()| total))
                .collect(),
            energy: energy.map(|(_, total)| total),
            power,
        }
    }
}

impl RunHandler for TuneLoop<'_> {
    type Error = SessionError;

    /// Passes the command's reports and the energy readings since the last call to the tuner.
    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), SessionError> {
        // After a signal the devices are restored, and the command has a grace period to exit.
        if run.interrupted().is_some() && !self.has_exited {
            return Ok(());
        }
        for reading in self.meter.take_readings() {
            match reading {
                MeterReading::Energy(at, totals) => {
                    let total = totals.iter().copied().sum();
                    self.energy_of_gpus.clone_from(&totals);
                    let power = mean_power(&mut self.energy, self.began, at, total);
                    self.power.extend(power);
                    let at = at - self.began;
                    if totals.len() > 1 {
                        self.step(run, TuneEvent::EnergyOfEach { at, totals });
                    }
                    self.step(run, TuneEvent::Energy { at, total });
                }
                MeterReading::Lost(index) => self.lose_gpu(run, index),
                // What limits a GPU says nothing about the processors.
                MeterReading::Limits(_) if self.measures_others => {}
                MeterReading::Limits(span) => self.step(run, TuneEvent::Limits(span)),
            }
        }
        self.note_recognised(run);
        self.take_reports(run, events);
        if Instant::now() >= self.next_cap_check && !self.has_exited {
            self.next_cap_check = Instant::now() + CAP_CHECK_INTERVAL;
            self.check_external_changes(run)?;
        }
        self.step(run, TuneEvent::Tick);
        self.show_status();
        if let (Some(state), Some(control)) = (self.new_state.take(), run.control()) {
            control.set_tuning(link_state(state));
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
    /// Shows the state of the job, about once a second.
    fn show_status(&mut self) {
        if Instant::now() < self.next_status {
            return;
        }
        self.next_status = Instant::now() + STATUS_INTERVAL;
        let windows = self.tuner.windows();
        let last = windows.last();
        let label = |point: usize| self.setter.space.labels.get(point).cloned();
        let tried = windows.iter().filter_map(|window| {
            let energy = window.energy_per_item()?.get();
            Some((label(window.point)?, energy))
        });
        let status = TuneStatus {
            elapsed: MonotonicClock.now() - self.began,
            power: self.power.last().map(|(_, power)| *power),
            items_per_s: last.and_then(|window| window.items_per_second),
            energy_per_item: last.and_then(TuneWindow::energy_per_item),
            saved: self.tuner.energy_saved(),
            tried: tried.collect(),
            setting: last
                .and_then(|window| label(window.point))
                .unwrap_or_default(),
        };
        self.observer.status(&Status::Tune(&status));
    }

    /// Tells the user where progress was found in the output.
    fn note_recognised(&mut self, run: &RunInProgress<'_, '_>) {
        let found = run.recognised();
        if let Some(found) = found.filter(|found| Some(found) != self.recognised.as_ref()) {
            let note = format!("progress was found in the command's output: {found}");
            self.observer.note(&note);
            self.recognised = Some(found);
        }
    }

    /// Tells the user what the reader of the metrics page found.
    fn note_metrics(&mut self, event: MetricsEvent) {
        match event {
            MetricsEvent::Recognised(server) => {
                self.observer
                    .note(&format!("reading the metrics of {server}"));
            }
            MetricsEvent::Notice(text) => self.observer.note(&text),
            MetricsEvent::Report(_) | MetricsEvent::Probe(_) => {}
        }
    }

    /// Passes the command's reports of items and phases to the tuner.
    fn take_reports(&mut self, run: &mut RunInProgress<'_, '_>, events: Vec<WorkloadEvent>) {
        let mut reports: Vec<Progress> = Vec::new();
        for event in events {
            match event {
                WorkloadEvent::Progress(progress) => reports.push(progress),
                WorkloadEvent::Metrics(event) => self.note_metrics(event),
                WorkloadEvent::Link(event) => {
                    self.phases.take(&event);
                    self.ranks.take(&event, MonotonicClock.now());
                }
            }
        }
        // The events are grouped by writer, but the tuner expects them in order of time.
        reports.sort_by_key(|progress| progress.at);
        for progress in reports {
            let event = TuneEvent::Progress {
                at: progress.at - self.began,
                total: self.ranks.add(&progress),
            };
            self.step(run, event);
        }
        if let Some(problem) = self.ranks.disagreement() {
            self.observer.note(&problem);
        }
        if !self.has_exited
            && let Some(lost) = self.ranks.lost_rank(MonotonicClock.now())
        {
            self.step(run, TuneEvent::Lost(lost));
        }
        if let Some(phase) = self.phases.take_change() {
            self.step(run, TuneEvent::Phase(phase));
        }
    }

    /// Reports a GPU that no longer responds: it is not set any more, and the others get their reference settings.
    fn lose_gpu(&mut self, run: &mut RunInProgress<'_, '_>, index: usize) {
        if self.measures_others {
            let lost = format!("measured device {index} is lost: it no longer answers");
            self.step(run, TuneEvent::Lost(lost));
        } else if index < self.setter.gpus.len() && !self.setter.lost.contains(&index) {
            self.setter.lost.push(index);
            self.step(run, TuneEvent::Lost(self.lost_gpu(index)));
        }
    }

    /// Says that the GPU with this index no longer responds.
    fn lost_gpu(&self, index: usize) -> String {
        let name = self.setter.gpus[index].descriptor().name.clone();
        format!("GPU {index}: {}", DevicesError::Lost(name))
    }

    /// Passes an event to the tuner and carries out its actions.
    fn step(&mut self, run: &mut RunInProgress<'_, '_>, event: TuneEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let now = MonotonicClock.now() - self.began;
            for action in self.tuner.step(now, event) {
                match action {
                    TuneAction::Set(point) => events.extend(self.set(run, point)),
                    TuneAction::Notify(notice) => self.observer.note(&notice.to_string()),
                    TuneAction::ReportState(state) => self.new_state = Some(state),
                }
            }
        }
    }

    /// Applies a point of the search space to the GPUs, unless the command is ending or another program has
    /// changed device settings.
    fn set(&mut self, run: &mut RunInProgress<'_, '_>, point: usize) -> Option<TuneEvent> {
        if run.interrupted().is_some() || self.is_changed_externally || self.has_exited {
            return None;
        }
        let each = self.tuner.settings_of_each(point).map(<[_]>::to_vec);
        let set = self.setter.set(run.lease()?, point, each);
        match set {
            Ok(_) => Some(TuneEvent::Applied(point)),
            // A signal may have arrived since the check above.
            Err((_, GuardError::Refused(_))) if run.interrupted().is_some() => None,
            // The power readings may show it only later.
            Err((gpu, GuardError::Refused(reason))) if reason.is_device_lost() => {
                self.setter.lost.push(gpu);
                Some(TuneEvent::Lost(self.lost_gpu(gpu)))
            }
            Err((_, GuardError::Refused(reason))) => Some(TuneEvent::Rejected {
                point,
                reason: reason.to_string(),
            }),
            Err((_, error)) => {
                self.failure = Some(error);
                None
            }
        }
    }

    /// If another program has changed a cap, stops changing device settings.
    fn check_external_changes(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
    ) -> Result<(), SessionError> {
        if self.is_changed_externally {
            return Ok(());
        }
        let Some(lease) = run.lease() else {
            return Ok(());
        };
        let mut changed = None;
        for gpu in self.setter.gpus {
            changed = changed.or(lease.lost_settings(&gpu.descriptor().id)?);
        }
        if let Some(changed) = changed {
            self.is_changed_externally = true;
            self.step(run, TuneEvent::ChangedExternally(changed.to_string()));
        }
        Ok(())
    }
}

/// Converts the tuning state to the one that the workload reads over the shared-memory link.
fn link_state(state: TuningState) -> LinkTuning {
    match state {
        TuningState::Off => LinkTuning::Off,
        TuningState::Exploring => LinkTuning::Exploring,
        TuningState::Settled => LinkTuning::Settled,
    }
}
