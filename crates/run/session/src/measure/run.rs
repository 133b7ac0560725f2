//! One run of a measured command.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use sweetspot_device::{Clock, DeviceId, Moment, MonotonicClock};
use sweetspot_link::{Event, Mark};
use sweetspot_measure::Sampler;
use sweetspot_measure::math::Span;
use sweetspot_quantity::Watts;
use sweetspot_workload::{
    CommandExit, CommandSpec, Lease, MetricsEvent, NoHandler, OutputTarget, ProgressReader,
    RecognisedFormat, RunHandler, RunInProgress, RunLimits, RunOutcome, SignalSource,
    WorkloadError, WorkloadEvent, run_until_exit,
};

use super::MeasureError;
use super::reports::Reports;
use super::slo::{ClockControl, SloLoop};
use super::{MeasureRequest, RunWindow};
use crate::SessionError;
use crate::observer::{Observer, Status};

/// What a run of a measured command needs: the request, the devices, the sampler and the signals.
pub struct RunContext<'a> {
    pub request: &'a MeasureRequest,
    pub sampler: &'a Sampler,
    pub signals: &'a SignalSource,
    pub limits: RunLimits,
    pub observer: &'a mut dyn Observer,
    /// The number of GPUs, the first ones of the sampler, that the command uses. The observer gets their power.
    pub used_gpus: usize,
    /// The GPUs whose clock is set if latency bounds are kept.
    pub devices: Vec<DeviceId>,
    /// The format of progress that was announced to the user.
    pub recognised: Option<RecognisedFormat>,
}

/// A finished run and the reports that the command made during it.
pub struct MeasuredRun {
    /// The time span from just before the start of the command to its exit.
    pub span: Span,
    /// How the run ended: its exit, its times and its output.
    pub outcome: RunOutcome,
    /// The phases, items and values that the command reported.
    pub reports: Reports,
    /// Whether a line of the output matched the progress pattern.
    pub is_output_matched: bool,
    /// How the core clock was set to keep latency bounds; `None` if none were to be kept.
    pub clocks: Option<ClockControl>,
}

impl RunContext<'_> {
    /// Waits for `time`; a signal ends the wait with an error.
    pub fn wait(&self, time: Duration) -> Result<(), WorkloadError> {
        self.signals.wait_until(Instant::now() + time)
    }

    /// Runs the shell command that prepares a run, with empty standard input: the input is for the measured command.
    pub fn prepare(&self) -> Result<(), SessionError> {
        let Some(prepare) = &self.request.prepare else {
            return Ok(());
        };
        let command = CommandSpec {
            output: OutputTarget::StandardError,
            no_input: true,
            ..CommandSpec::new(["sh", "-c", prepare].map(OsString::from).into())
        };
        let outcome = run_until_exit(
            &command,
            self.limits,
            None,
            self.signals,
            &mut ProgressReader::without_link(),
            &mut NoHandler,
        )?;
        match (outcome.interrupted, outcome.ended) {
            (Some(signal), _) => Err(WorkloadError::Interrupted(signal).into()),
            (None, CommandExit::Code(0)) => Ok(()),
            (None, CommandExit::Code(code)) => {
                Err(MeasureError::Prepare(format!("exit status: {code}")).into())
            }
            (None, CommandExit::Signal(signal)) => {
                Err(MeasureError::Prepare(format!("signal: {signal}")).into())
            }
        }
    }

    /// Runs the command from start to exit.
    pub fn run(&mut self, lease: Option<&mut Lease<'_>>) -> Result<MeasuredRun, SessionError> {
        let mut reader = ProgressReader::with_link()?;
        let mut recorder = RunRecorder {
            window: &self.request.window,
            sampler: self.sampler,
            observer: self.observer,
            used_gpus: self.used_gpus,
            report_count: 0,
            reports: Reports::new(&self.request.window),
            slo: self
                .request
                .slo
                .clone()
                .map(|config| SloLoop::new(config, self.devices.clone(), MonotonicClock.now())),
        };
        let outcome = run_until_exit(
            &self.request.command_spec(),
            self.limits,
            lease,
            self.signals,
            &mut reader,
            &mut recorder,
        );
        recorder.observer.clear();
        let outcome = outcome?;
        if let Some(found) = reader
            .recognised()
            .filter(|found| Some(found) != self.recognised.as_ref())
        {
            let note = format!("items were counted in the command's output: {found}");
            recorder.observer.note(&note);
            self.recognised = Some(found);
        }
        let RunRecorder {
            mut reports, slo, ..
        } = recorder;
        let counter = reader.counter();
        reports.finish(counter);
        Ok(MeasuredRun {
            span: Span::new(outcome.began, outcome.exited),
            reports,
            is_output_matched: counter.is_output_matched(),
            clocks: slo.map(SloLoop::into_result),
            outcome,
        })
    }
}

/// Records a command's reports, and reads the energy counters at the start and end of the measurement window.
struct RunRecorder<'a> {
    window: &'a RunWindow,
    sampler: &'a Sampler,
    observer: &'a mut dyn Observer,
    used_gpus: usize,
    report_count: u64,
    reports: Reports,
    slo: Option<SloLoop>,
}

impl RunHandler for RunRecorder<'_> {
    type Error = SessionError;

    /// Records the command's reports since the last call, and shows the status.
    fn poll(
        &mut self,
        run: &mut RunInProgress<'_, '_>,
        events: Vec<WorkloadEvent>,
    ) -> Result<(), SessionError> {
        let mut is_edge = false;
        if let Some(slo) = &mut self.slo {
            let latest = self.sampler.latest();
            let power = latest.iter().map(|(_, power)| *power).sum();
            if let Some(note) = slo.poll(run, MonotonicClock.now(), power) {
                self.observer.note(&note);
            }
        }
        for event in events {
            match event {
                WorkloadEvent::Progress(progress) => self.reports.add_progress(&progress),
                WorkloadEvent::Metrics(event) => {
                    match (&mut self.slo, &event) {
                        (Some(slo), MetricsEvent::Report(report)) => {
                            for note in slo.take(run, report) {
                                self.observer.note(&note);
                            }
                        }
                        (Some(slo), MetricsEvent::Probe(probe)) => slo.take_probe(probe),
                        _ => {}
                    }
                    if let Some(text) = self.reports.add_metrics(event) {
                        self.observer.note(&text);
                    }
                }
                WorkloadEvent::Link(event) => {
                    is_edge |= is_phase_edge(self.window, &event);
                    self.reports.add_event(&event);
                }
            }
        }
        let counter = run.progress();
        let before = std::mem::replace(&mut self.report_count, counter.reports());
        if is_edge || self.window.has_edge(before, self.report_count) {
            self.sampler.mark();
        }
        let latest = self.sampler.latest();
        let power = latest
            .iter()
            .take(self.used_gpus)
            .map(|(_, power)| *power)
            .sum::<Option<Watts>>();
        self.observer.status(&Status::Measure {
            elapsed: MonotonicClock.now() - run.began(),
            power,
            items: counter.items().unwrap_or(0.0),
        });
        Ok(())
    }

    fn starting(&mut self) -> Moment {
        self.sampler.mark()
    }

    fn exited(&mut self) {
        self.sampler.mark();
    }
}

/// Whether the measurement window is a phase that begins or ends with this event.
fn is_phase_edge(window: &RunWindow, event: &Event) -> bool {
    let (RunWindow::Phase(wanted), Event::Record(record)) = (window, event) else {
        return false;
    };
    match &record.mark {
        Mark::Begin(name) | Mark::End(name) => **name == **wanted,
        _ => false,
    }
}
