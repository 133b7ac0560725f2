//! Counts the items of progress reports in bounded memory.

use std::collections::BTreeMap;

use sweetspot_device::Moment;
use sweetspot_measure::math::Span;

/// The maximum number of stored reports; if there are more, neighbours are joined.
const MAX_REPORTS: usize = 1 << 16;
/// The maximum number of different sizes of reports that are counted.
const MAX_SIZES: usize = 1 << 10;

/// Items that were completed in a span of time; the span is a single moment if the items were reported at that moment.
#[derive(Clone, Copy, Debug)]
struct CompletedItems {
    span: Span,
    items: f64,
    /// Whether the measurement window begins or ends with this report, so that it cannot be joined with the next one.
    is_edge: bool,
}

/// The items of progress reports over time.
#[derive(Clone, Debug, Default)]
pub struct ItemSeries {
    reports: Vec<CompletedItems>,
}

impl ItemSeries {
    /// Adds a report of items that were completed since `since`, or else at this moment.
    pub fn add(&mut self, at: Moment, since: Option<Moment>, items: f64, is_edge: bool) {
        let begin = since.filter(|since| *since < at).unwrap_or(at);
        self.reports.push(CompletedItems {
            span: Span::new(begin, at),
            items,
            is_edge,
        });
        if self.reports.len() > MAX_REPORTS {
            self.join_neighbours();
        }
    }

    /// Joins each pair of neighbouring reports.
    fn join_neighbours(&mut self) {
        let mut joined: Vec<CompletedItems> = Vec::with_capacity(MAX_REPORTS);
        let mut is_first = true;
        for next in std::mem::take(&mut self.reports) {
            match joined.last_mut() {
                Some(last) if !is_first && !last.is_edge => {
                    let begin = last.span.begin.min(next.span.begin);
                    last.span = Span::new(begin, last.span.end.max(next.span.end));
                    last.items += next.items;
                    last.is_edge = next.is_edge;
                    is_first = true;
                }
                _ => {
                    joined.push(next);
                    is_first = false;
                }
            }
        }
        self.reports = joined;
    }

    /// The number of items completed in a window; `None` if there are no reports.
    pub fn within(&self, window: &Span) -> Option<f64> {
        let share = |span: &Span| match span.begin < span.end {
            true => {
                let part = span.overlap(window);
                part.map_or(0.0, |part| (part.length() / span.length()).get())
            }
            // A report at the start of the measurement window is about the time before it.
            false => f64::from(u8::from(window.begin < span.end && span.end <= window.end)),
        };
        let items = self.reports.iter().map(|one| one.items * share(&one.span));
        (!self.reports.is_empty()).then(|| items.sum())
    }
}

/// How often reports of each size were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportSizes {
    counts: BTreeMap<u64, u64>,
    total: f64,
}

impl ReportSizes {
    /// Counts a report of this many items. If there are too many different sizes, it counts as the nearest smaller one.
    pub fn add(&mut self, items: f64) {
        self.total += items;
        let mut size = items.max(0.0) as u64;
        if self.counts.len() >= MAX_SIZES && !self.counts.contains_key(&size) {
            let near = self.counts.range(..size).next_back();
            let near = near.or_else(|| self.counts.first_key_value());
            size = near.map_or(size, |(known, _)| *known);
        }
        *self.counts.entry(size).or_default() += 1;
    }

    /// The items of all reports; `None` without reports.
    pub fn total(&self) -> Option<f64> {
        (!self.counts.is_empty()).then_some(self.total)
    }

    /// The median size of a report.
    pub fn median(&self) -> Option<f64> {
        let all: u64 = self.counts.values().sum();
        let mut before = 0;
        let median = self.counts.iter().find(|(_, count)| {
            before += **count;
            before > all / 2
        });
        median.map(|(size, _)| *size as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_million_reports_are_counted_in_bounded_memory() {
        let mut series = ItemSeries::default();
        for millis in 1..=1_000_000 {
            series.add(at(millis), None, 2.0, millis == 300_000);
        }
        assert!(series.reports.len() <= MAX_REPORTS);
        let within = |begin, end| series.within(&Span::new(at(begin), at(end)));
        assert_eq!(within(0, 1_000_000), Some(2e6));
        // A window from a report that was known to be an edge has exactly the later items.
        assert_eq!(within(300_000, 1_000_000), Some(1.4e6));
        let part = within(123_456, 654_321).unwrap();
        assert!((part / 1_061_730.0 - 1.0).abs() < 1e-4, "{part}");
        assert_eq!(ItemSeries::default().within(&Span::new(at(0), at(1))), None);
    }

    #[test]
    fn a_rate_counts_by_its_share_of_the_window() {
        let mut series = ItemSeries::default();
        series.add(at(2_000), Some(at(1_000)), 100.0, false);
        let half = series.within(&Span::new(at(1_500), at(3_000)));
        assert_eq!(half, Some(50.0));
    }

    #[test]
    fn the_usual_size_is_the_median() {
        let mut sizes = ReportSizes::default();
        assert_eq!((sizes.median(), sizes.total()), (None, None));
        for size in [64.0, 64.0, 64.0, 32.0] {
            sizes.add(size);
        }
        assert_eq!((sizes.median(), sizes.total()), (Some(64.0), Some(224.0)));
        for size in 0..100_000 {
            sizes.add(f64::from(size));
        }
        assert!(sizes.counts.len() <= MAX_SIZES);
    }
}
