//! Reads a command's progress from its shared-memory link to this program and from its output.

use std::ffi::OsString;
use std::path::Path;

use sweetspot_device::Moment;
use sweetspot_link::{Control, Event as LinkEvent, Reader, Ring};

use crate::WorkloadError;
use crate::counter::ProgressCounter;
use crate::metrics::{MetricsEvent, MetricsReader};
use crate::output::{OutputProgress, OutputReader};
use crate::recognition::RecognisedFormat;

/// Something that a command has reported.
#[derive(Debug)]
pub enum WorkloadEvent {
    /// The command reported completed items.
    Progress(Progress),
    /// Something that the metrics page of a server says.
    Metrics(MetricsEvent),
    /// Any other event of the shared-memory link: phases, values, writers that ended, lost records. Items are always
    /// reported as [`WorkloadEvent::Progress`].
    Link(LinkEvent),
}

/// A report of completed items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The time of the report.
    pub at: Moment,
    /// When work on the items began, if that is known, as it is for a rate.
    pub since: Option<Moment>,
    /// The number of items since the previous report.
    pub items: f64,
    /// Who reported the items: a thread of the program, its output, or its exit.
    pub reporter: Reporter,
}

/// The source of a progress report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reporter {
    /// A thread of the program, over the shared-memory link; it is identified by its ring buffer.
    Link(Ring),
    /// A line of the program's output reported the items. The number is that of the bar or counter.
    Output(u32),
    /// The metrics page of a server reported the items.
    Metrics,
    /// The exit of the command, until which the last rate of this bar or counter applied.
    Exit(u32),
}

/// Reads a command's reports from its shared-memory link and from its output.
pub struct ProgressReader {
    link: Option<Reader>,
    output: Option<OutputReader>,
    metrics: Option<MetricsReader>,
    counter: ProgressCounter,
}

impl ProgressReader {
    /// Creates a reader with a new shared-memory link; the command finds the link through an environment
    /// variable.
    pub fn with_link() -> Result<Self, WorkloadError> {
        let link = Reader::create()?;
        Ok(Self {
            link: Some(link),
            ..Self::without_link()
        })
    }

    /// Creates a reader that searches only the output.
    pub fn without_link() -> Self {
        Self {
            link: None,
            output: None,
            metrics: None,
            counter: ProgressCounter::new(Moment::default()),
        }
    }

    /// The values that this program sends to the command over its shared-memory link, if there is one.
    pub fn control(&self) -> Option<&Control> {
        self.link.as_ref().map(Reader::control)
    }

    /// The folder with the files of the shared-memory link, if there is one.
    pub fn link_folder(&self) -> Option<&Path> {
        self.link.as_ref().map(Reader::folder)
    }

    /// The counter of the items that were completed so far.
    pub fn counter(&self) -> &ProgressCounter {
        &self.counter
    }

    /// The name and value of the environment variable that contains the link's folder, if there is a link.
    pub(crate) fn environment(&self) -> Option<(String, OsString)> {
        let folder = self.link_folder()?.as_os_str().to_owned();
        Some((sweetspot_link::LINK_VARIABLE.to_owned(), folder))
    }

    /// Starts counting; `output` reads the command's output, and `metrics` the page of a server.
    pub(crate) fn start(
        &mut self,
        began: Moment,
        output: Option<OutputReader>,
        metrics: Option<MetricsReader>,
    ) {
        self.counter = match metrics {
            Some(_) => ProgressCounter::of_metrics(began),
            None => ProgressCounter::new(began),
        };
        self.output = output;
        self.metrics = metrics;
    }

    /// The command's new reports since the last call.
    pub(crate) fn poll(&mut self) -> Vec<WorkloadEvent> {
        let mut events = Vec::new();
        self.drain_link(&mut events);
        if let Some(output) = &mut self.output {
            for OutputProgress { at, report, source } in output.poll() {
                let progress = self.counter.take_output_report(at, report, source);
                events.extend(progress.map(WorkloadEvent::Progress));
            }
        }
        let found = self.metrics.as_mut().map(MetricsReader::poll);
        self.count_metrics(found.unwrap_or_default(), &mut events);
        events
    }

    /// Counts what metrics pages report.
    fn count_metrics(&mut self, found: Vec<MetricsEvent>, events: &mut Vec<WorkloadEvent>) {
        for event in found {
            if let MetricsEvent::Report(report) = &event {
                let progress = self.counter.take_metrics_report(report);
                events.extend(progress.map(WorkloadEvent::Progress));
            }
            events.push(WorkloadEvent::Metrics(event));
        }
    }

    /// The remaining reports after the command has exited. Output that is read after the exit counts as printed
    /// at the exit.
    pub(crate) fn finish(
        &mut self,
        exited: Moment,
        at_most: Option<std::time::Duration>,
    ) -> Vec<WorkloadEvent> {
        let mut events = Vec::new();
        // A ring buffer is reported as ended only by a drain that finds it empty.
        for _ in 0..3 {
            self.drain_link(&mut events);
        }
        if let Some(output) = &self.output {
            for OutputProgress { at, report, source } in output.finish(at_most) {
                let at = at.min(exited);
                let progress = self.counter.take_output_report(at, report, source);
                events.extend(progress.map(WorkloadEvent::Progress));
            }
        }
        let found = self.metrics.as_mut().map(MetricsReader::finish);
        self.count_metrics(found.unwrap_or_default(), &mut events);
        let last = self.counter.take_exit(exited);
        events.extend(last.map(WorkloadEvent::Progress));
        events
    }

    /// The format of progress that was recognised in the output; `None` if there is none or the link counts.
    pub fn recognised(&self) -> Option<RecognisedFormat> {
        let output = self.output.as_ref().filter(|_| self.counter.is_by_output());
        output.and_then(OutputReader::recognised)
    }

    /// The end of the command's output; empty if it is not stored.
    pub(crate) fn last_lines(&self) -> String {
        let output = self.output.as_ref();
        output.map(OutputReader::last_lines).unwrap_or_default()
    }

    /// Reads all new events of the shared-memory link.
    fn drain_link(&mut self, events: &mut Vec<WorkloadEvent>) {
        let Some(link) = &mut self.link else { return };
        let drained = link.drain().into_iter();
        events.extend(drained.map(|event| self.counter.take_link_event(event)));
    }
}
