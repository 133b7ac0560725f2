//! Counts a command's progress from its shared-memory link to this program and from its output.
//!
//! These rules apply to every verb:
//! - A program that reports items over its link is counted by its link alone; its output then does not count.
//! - If a total in the output falls, it has restarted from zero, as at each epoch: counting continues from there.
//! - A rate applies to the time from the previous report (or the start) to its own report; the last rate applies until
//!   the exit too.
//! - A matching line without a number is one item.

use std::ffi::OsString;
use std::path::Path;

use sweetspot_device::Moment;
use sweetspot_link::{Control, Event as LinkEvent, Mark, Reader, Record, Ring};

use crate::WorkloadError;
use crate::output::OutputReader;
use crate::pattern::OutputReport;

/// Something that a command has reported.
#[derive(Debug)]
pub enum WorkloadEvent {
    /// The command reported completed items.
    Progress(Progress),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporter {
    /// A thread of the program, over the shared-memory link; it is identified by its ring buffer.
    Link(Ring),
    /// A line of the program's output reported the items.
    Output,
    /// The exit of the command, until which the last rate applied.
    Exit,
}

/// Counts completed items by this module's rules. The caller provides all times.
#[derive(Clone, Debug)]
pub struct ProgressCounter {
    began: Moment,
    link_items: Option<f64>,
    output_items: Option<f64>,
    /// The last total that a line of output reported.
    last_total: f64,
    last_line: Option<Moment>,
    last_rate: Option<f64>,
    reports: u64,
    is_output_matched: bool,
}

impl ProgressCounter {
    /// Creates a counter that starts with the command.
    pub fn new(began: Moment) -> Self {
        Self {
            began,
            link_items: None,
            output_items: None,
            last_total: 0.0,
            last_line: None,
            last_rate: None,
            reports: 0,
            is_output_matched: false,
        }
    }

    /// The items done so far; `None` if nothing was reported.
    pub fn items(&self) -> Option<f64> {
        self.link_items.or(self.output_items)
    }

    /// The number of progress reports so far: over the shared-memory link if the program uses it, or else in the
    /// output.
    pub fn reports(&self) -> u64 {
        self.reports
    }

    /// Whether the program reports items over its shared-memory link; its output then does not count.
    pub fn is_by_link(&self) -> bool {
        self.link_items.is_some()
    }

    /// Whether a line of the output matched the pattern, even if the output does not count.
    pub fn is_output_matched(&self) -> bool {
        self.is_output_matched
    }

    /// Processes an event of the shared-memory link: items are counted, and any other event is passed on unchanged.
    pub fn take_link_event(&mut self, event: LinkEvent) -> WorkloadEvent {
        match event {
            LinkEvent::Record(Record {
                ring,
                at,
                mark: Mark::Items(items),
            }) => {
                let at = Moment::from_nanos(at.nanos());
                WorkloadEvent::Progress(self.take_link_report(at, items, ring))
            }
            other => WorkloadEvent::Link(other),
        }
    }

    /// Counts items that were reported over the shared-memory link.
    fn take_link_report(&mut self, at: Moment, items: u64, ring: Ring) -> Progress {
        if self.link_items.is_none() {
            self.reports = 0;
        }
        self.reports += 1;
        *self.link_items.get_or_insert(0.0) += items as f64;
        Progress {
            at,
            since: None,
            items: items as f64,
            reporter: Reporter::Link(ring),
        }
    }

    /// Counts a progress report in the output. Returns `None` if the output does not count, because the
    /// program uses the shared-memory link.
    pub fn take_output_report(&mut self, at: Moment, report: OutputReport) -> Option<Progress> {
        self.is_output_matched = true;
        if self.is_by_link() {
            return None;
        }
        let before = self.last_line.replace(at).unwrap_or(self.began).min(at);
        self.last_rate = None;
        let mut since = None;
        let items = match report {
            OutputReport::Total(total) => {
                let has_restarted = total < self.last_total;
                let before = if has_restarted { 0.0 } else { self.last_total };
                self.last_total = total;
                total - before
            }
            OutputReport::Added(items) => items,
            OutputReport::Line => 1.0,
            OutputReport::Rate(rate) => {
                self.last_rate = Some(rate);
                since = Some(before);
                rate * (at - before).get()
            }
        };
        self.reports += 1;
        Some(self.add_output_items(at, since, items, Reporter::Output))
    }

    /// Counts the items that were done at the last reported rate until the exit.
    pub fn take_exit(&mut self, at: Moment) -> Option<Progress> {
        let rate = self.last_rate.take().filter(|_| !self.is_by_link())?;
        let since = self.last_line?.min(at);
        let items = rate * (at - since).get();
        Some(self.add_output_items(at, Some(since), items, Reporter::Exit))
    }

    /// Counts items that the output reports.
    fn add_output_items(
        &mut self,
        at: Moment,
        since: Option<Moment>,
        items: f64,
        reporter: Reporter,
    ) -> Progress {
        *self.output_items.get_or_insert(0.0) += items;
        Progress {
            at,
            since,
            items,
            reporter,
        }
    }
}

/// Reads a command's reports from its shared-memory link and from its output.
pub struct ProgressReader {
    link: Option<Reader>,
    output: Option<OutputReader>,
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

    /// Starts counting; `output` reads the command's output.
    pub(crate) fn start(&mut self, began: Moment, output: OutputReader) {
        self.counter = ProgressCounter::new(began);
        self.output = Some(output);
    }

    /// The command's new reports since the last call.
    pub(crate) fn poll(&mut self) -> Vec<WorkloadEvent> {
        let mut events = Vec::new();
        self.drain_link(&mut events);
        if let Some(output) = &self.output {
            for (at, report) in output.poll() {
                let progress = self.counter.take_output_report(at, report);
                events.extend(progress.map(WorkloadEvent::Progress));
            }
        }
        events
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
            for (at, report) in output.finish(at_most) {
                let progress = self.counter.take_output_report(at.min(exited), report);
                events.extend(progress.map(WorkloadEvent::Progress));
            }
        }
        let last = self.counter.take_exit(exited);
        events.extend(last.map(WorkloadEvent::Progress));
        events
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    fn ring() -> Ring {
        Ring {
            number: 0,
            pid: 1,
            tid: 1,
            rank: None,
        }
    }

    fn counted(reports: &[(f64, OutputReport)], exit: f64) -> ProgressCounter {
        let mut counter = ProgressCounter::new(at(10.0));
        for (time, report) in reports {
            counter.take_output_report(at(*time), *report);
        }
        counter.take_exit(at(exit));
        counter
    }

    #[test]
    fn a_total_that_falls_has_restarted() {
        let epochs = (0..3).flat_map(|_| (1..=40).map(f64::from));
        let reports: Vec<_> = epochs
            .map(|step| (11.0, OutputReport::Total(step)))
            .collect();
        assert_eq!(counted(&reports, 12.0).items(), Some(120.0));
    }

    #[test]
    fn a_rate_holds_since_the_previous_report_and_the_last_one_until_the_exit() {
        let rate = OutputReport::Rate;
        let reports = [(12.0, rate(100.0)), (13.0, rate(50.0))];
        assert_eq!(counted(&reports, 15.0).items(), Some(200.0 + 50.0 + 100.0));
        assert_eq!(counted(&[(12.5, rate(8.0))], 20.0).items(), Some(80.0));
        assert_eq!(counted(&[], 20.0).items(), None);
    }

    #[test]
    fn a_line_without_a_number_is_one_item() {
        let lines = [(11.0, OutputReport::Line); 4];
        assert_eq!(counted(&lines, 12.0).items(), Some(4.0));
    }

    #[test]
    fn the_output_does_not_count_once_the_link_reports() {
        let mut counter = ProgressCounter::new(at(0.0));
        let printed = OutputReport::Total(1.0);
        assert!(counter.take_output_report(at(1.0), printed).is_some());
        counter.take_link_report(at(2.0), 100, ring());
        assert_eq!((counter.items(), counter.reports()), (Some(100.0), 1));
        let printed = OutputReport::Total(2.0);
        assert_eq!(counter.take_output_report(at(3.0), printed), None);
        counter.take_link_report(at(4.0), 100, ring());
        assert_eq!((counter.items(), counter.reports()), (Some(200.0), 2));
        assert_eq!(counter.take_exit(at(5.0)), None);
    }

    proptest! {
        /// The count is the sum of the progress that was returned, and never falls.
        #[test]
        fn the_count_is_the_sum_of_all_progress(
            reports in prop::collection::vec((0.0..100.0f64, 0..4u8, 0.0..1e6f64), 0..50),
        ) {
            let mut counter = ProgressCounter::new(at(1.0));
            let mut sum = 0.0;
            for (time, kind, number) in reports {
                let report = match kind {
                    0 => OutputReport::Total(number),
                    1 => OutputReport::Added(number),
                    2 => OutputReport::Rate(number),
                    _ => OutputReport::Line,
                };
                let progress = counter.take_output_report(at(time), report).unwrap();
                prop_assert!(progress.items >= 0.0);
                sum += progress.items;
            }
            sum += counter.take_exit(at(100.0)).map_or(0.0, |last| last.items);
            prop_assert!((counter.items().unwrap_or(0.0) - sum).abs() <= 1e-9 * sum.max(1.0));
        }
    }
}
