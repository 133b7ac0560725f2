//! Counts a command's completed items.
//!
//! These rules apply to every verb:
//! - A program that reports items over its link is counted by its link alone; its output then does not count.
//! - If the metrics page of a server is read, it alone counts.
//! - If a total in the output falls, it has restarted from zero, as at each epoch: counting continues from there.
//! - A rate applies to the time from the previous report (or the start) to its own report; the last rate applies until
//!   the exit too.
//! - A matching line without a number is one item.
//! - If several bars or counters were recognised one after the other, only the one that reported for the longest time
//!   counts: their items are not the same.

use std::collections::BTreeMap;

use sweetspot_device::Moment;
use sweetspot_link::{Event as LinkEvent, Mark, Record, Ring};

use crate::metrics::ServingReport;
use crate::pattern::OutputReport;
use crate::progress::{Progress, Reporter, WorkloadEvent};

/// Counts completed items by this module's rules. The caller provides all times.
#[derive(Clone, Debug)]
pub struct ProgressCounter {
    began: Moment,
    link_items: Option<f64>,
    link_reports: u64,
    /// The items and the number of reports of a metrics page; `None` if none is read.
    metrics: Option<(Option<f64>, u64)>,
    /// What each bar or counter in the output has reported.
    sources: BTreeMap<u32, SourceCount>,
    /// The last total that a line of output reported.
    last_total: f64,
    last_line: Option<Moment>,
    /// The last rate, and the source that reported it.
    last_rate: Option<(f64, u32)>,
    is_output_matched: bool,
}

/// What one bar or counter in the output has reported.
#[derive(Clone, Copy, Debug)]
struct SourceCount {
    items: f64,
    reports: u64,
    first: Moment,
    last: Moment,
}

impl ProgressCounter {
    /// Creates a counter that starts with the command.
    pub fn new(began: Moment) -> Self {
        Self {
            began,
            link_items: None,
            link_reports: 0,
            metrics: None,
            sources: BTreeMap::new(),
            last_total: 0.0,
            last_line: None,
            last_rate: None,
            is_output_matched: false,
        }
    }

    /// Creates a counter of what the metrics page of a server reports; nothing else counts.
    pub fn of_metrics(began: Moment) -> Self {
        Self {
            metrics: Some((None, 0)),
            ..Self::new(began)
        }
    }

    /// The items done so far; `None` if nothing was reported.
    pub fn items(&self) -> Option<f64> {
        if let Some((items, _)) = self.metrics {
            return items;
        }
        let output = || self.output_source().map(|(_, count)| count.items);
        self.link_items.or_else(output)
    }

    /// The bar or counter in the output that counts: the one that has reported for the longest time.
    fn output_source(&self) -> Option<(u32, &SourceCount)> {
        let sources = self.sources.iter();
        let longest = sources.max_by_key(|(_, count)| count.last.nanos() - count.first.nanos());
        longest.map(|(source, count)| (*source, count))
    }

    /// Whether the reports of a source count, after all that has been reported so far.
    pub fn counts(&self, reporter: Reporter) -> bool {
        match reporter {
            Reporter::Metrics => self.metrics.is_some(),
            Reporter::Link(_) => self.metrics.is_none(),
            Reporter::Output(source) | Reporter::Exit(source) => {
                let counted = self.output_source().map(|(counted, _)| counted);
                self.is_by_output() && counted == Some(source)
            }
        }
    }

    /// The number of progress reports so far: over the shared-memory link if the program uses it, or else in the
    /// output.
    pub fn reports(&self) -> u64 {
        if let Some((_, reports)) = self.metrics {
            return reports;
        }
        match (self.is_by_link(), self.output_source()) {
            (false, Some((_, count))) => count.reports,
            _ => self.link_reports,
        }
    }

    /// Whether the program reports items over its shared-memory link; its output then does not count.
    pub fn is_by_link(&self) -> bool {
        self.link_items.is_some()
    }

    /// Whether the command's output counts, if there is progress in it.
    pub(crate) fn is_by_output(&self) -> bool {
        self.metrics.is_none() && !self.is_by_link()
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
        self.link_reports += 1;
        *self.link_items.get_or_insert(0.0) += items as f64;
        Progress {
            at,
            since: None,
            items: items as f64,
            reporter: Reporter::Link(ring),
        }
    }

    /// Counts what a server did between two metrics pages; `None` if its page does not count items.
    pub fn take_metrics_report(&mut self, report: &ServingReport) -> Option<Progress> {
        let new = report.change.items()?;
        let (items, reports) = self.metrics.get_or_insert((None, 0));
        *items.get_or_insert(0.0) += new;
        *reports += 1;
        Some(Progress {
            at: report.at,
            since: Some(report.since),
            items: new,
            reporter: Reporter::Metrics,
        })
    }

    /// Counts a progress report of a bar or counter in the output. Returns `None` if the output does not count, because
    /// the program uses the shared-memory link.
    pub fn take_output_report(
        &mut self,
        at: Moment,
        report: OutputReport,
        source: u32,
    ) -> Option<Progress> {
        self.is_output_matched = true;
        if !self.is_by_output() {
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
                self.last_rate = Some((rate, source));
                since = Some(before);
                rate * (at - before).get()
            }
        };
        let progress = self.add_output_items(at, since, items, Reporter::Output(source));
        if let Some(count) = self.sources.get_mut(&source) {
            count.reports += 1;
        }
        Some(progress)
    }

    /// Counts the items that were done at the last reported rate until the exit.
    pub fn take_exit(&mut self, at: Moment) -> Option<Progress> {
        let (rate, source) = self.last_rate.take().filter(|_| self.is_by_output())?;
        let since = self.last_line?.min(at);
        let items = rate * (at - since).get();
        Some(self.add_output_items(at, Some(since), items, Reporter::Exit(source)))
    }

    /// Counts items that the output reports.
    fn add_output_items(
        &mut self,
        at: Moment,
        since: Option<Moment>,
        items: f64,
        reporter: Reporter,
    ) -> Progress {
        if let Reporter::Output(source) | Reporter::Exit(source) = reporter {
            let new = SourceCount {
                items: 0.0,
                reports: 0,
                first: at,
                last: at,
            };
            let count = self.sources.entry(source).or_insert(new);
            count.items += items;
            count.last = count.last.max(at);
        }
        Progress {
            at,
            since,
            items,
            reporter,
        }
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
            counter.take_output_report(at(*time), *report, 0);
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
        assert!(counter.take_output_report(at(1.0), printed, 0).is_some());
        counter.take_link_report(at(2.0), 100, ring());
        assert_eq!((counter.items(), counter.reports()), (Some(100.0), 1));
        let printed = OutputReport::Total(2.0);
        assert_eq!(counter.take_output_report(at(3.0), printed, 0), None);
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
                let progress = counter.take_output_report(at(time), report, 0).unwrap();
                prop_assert!(progress.items >= 0.0);
                sum += progress.items;
            }
            sum += counter.take_exit(at(100.0)).map_or(0.0, |last| last.items);
            prop_assert!((counter.items().unwrap_or(0.0) - sum).abs() <= 1e-9 * sum.max(1.0));
        }
    }
}
