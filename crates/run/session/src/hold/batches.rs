//! Turns a serving program's reports about its batches into events for the [`Holder`](sweetspot_control::hold::Holder).

use std::collections::{HashMap, HashSet};

use sweetspot_control::hold::{CompletedBatch, HoldEvent};
use sweetspot_device::Moment;
use sweetspot_link::{Event as LinkEvent, Mark, Ring, value};
use sweetspot_quantity::Seconds;
use sweetspot_workload::{Reporter, WorkloadEvent};

use super::rank_batches::RankBatches;

/// The latest reports of one thread of the workload.
#[derive(Default)]
struct WorkloadThread {
    /// The batch size that was last sent to this thread.
    requested: Option<u64>,
    time: Option<Seconds>,
    latency: Option<Seconds>,
    /// When this thread last reported items.
    last_items: Option<Moment>,
    queue: Option<u64>,
    arrivals: Option<f64>,
    /// Whether a reported value of the current batch was out of range.
    has_invalid_report: bool,
}

/// The longest batch time or latency, in seconds, that is accepted as valid.
const MAX_SECONDS: f64 = 1e6;
/// The largest number of items in a report that is accepted as valid.
const MAX_ITEMS: u64 = 1 << 40;
/// After this many batches in a row with fewer items than requested, and without a reported queue, the program
/// is taken to ignore the batch size.
const MAX_SHORT_BATCHES: u32 = 50;

/// Assembles batches from the reports of a program's threads.
#[derive(Default)]
pub struct BatchReader {
    threads: HashMap<u32, WorkloadThread>,
    /// The batch size last sent to any thread: one thread may ask for the size and another do the work.
    requested: Option<u64>,
    /// The number of reports that were lost because the shared-memory link to the workload was full.
    pub lost: u64,
    /// New messages for the user about lost or invalid reports.
    pub problems: Vec<String>,
    /// The names of the problems that the user has been warned about.
    reported: HashSet<Box<str>>,
    short_batches: ShortBatches,
    reports_queue: bool,
    ranks: RankBatches,
}

/// Batches in a row that had fewer items than requested.
#[derive(Default)]
struct ShortBatches {
    count: u32,
    /// The number of items in the largest of these batches.
    most_items: u64,
}

impl BatchReader {
    /// Converts the program's reports into events for the control algorithm, in order of time.
    pub fn take(&mut self, reports: Vec<WorkloadEvent>) -> Vec<(Moment, HoldEvent)> {
        let mut events = Vec::new();
        for report in reports {
            match report {
                WorkloadEvent::Progress(progress) => {
                    if let Reporter::Link(ring) = progress.reporter {
                        self.take_items(&ring, progress.at, progress.items, &mut events);
                    }
                }
                WorkloadEvent::Link(LinkEvent::Record(record)) => {
                    let at = Moment::from_nanos(record.at.nanos());
                    if let Mark::Value { name, value } = record.mark {
                        self.take_value(record.ring.number, at, &name, value, &mut events);
                    }
                }
                WorkloadEvent::Link(LinkEvent::Lost { count, .. }) => self.lost += count,
                WorkloadEvent::Link(LinkEvent::Ended(ring)) => {
                    self.threads.remove(&ring.number);
                    events.extend(self.ranks.end(&ring).into_iter().map(completed));
                }
                WorkloadEvent::Link(LinkEvent::Fault(problem)) => {
                    self.problems.push(problem.to_string());
                }
                WorkloadEvent::Link(_) | WorkloadEvent::Metrics(_) => {}
            }
        }
        if let Some((problem, batches)) = self.ranks.check_step() {
            self.problems.push(problem);
            events.extend(batches.into_iter().map(completed));
        }
        events.sort_by_key(|(at, _)| *at);
        events
    }

    /// Processes a report of completed items: makes a batch from it and from the thread's earlier reports.
    fn take_items(
        &mut self,
        ring: &Ring,
        at: Moment,
        items: f64,
        events: &mut Vec<(Moment, HoldEvent)>,
    ) {
        let thread = self.threads.entry(ring.number).or_default();
        if items > MAX_ITEMS as f64 {
            thread.has_invalid_report = false;
            (thread.time, thread.latency) = (None, None);
            self.ignore("items", items);
            return;
        }
        let items = items as u64;
        let since = thread.last_items.replace(at).map(|before| at - before);
        // If a program reports no batch time, the time since its last report is used.
        let latency = thread.latency.take();
        let duration = thread.time.take().or(since);
        if std::mem::take(&mut thread.has_invalid_report) || items == 0 {
            return;
        }
        // Batches of a program that never asks for a batch size say nothing about any setting.
        let requested = thread.requested.or(self.requested);
        let (Some(duration), Some(requested)) = (duration, requested) else {
            return;
        };
        let done = CompletedBatch {
            // A program with more items than requested ignores the batch size.
            size: requested.max(items),
            items,
            duration,
            latency,
        };
        events.extend(self.ranks.push(ring, at, done).into_iter().map(completed));
        self.count_short_batches(requested, items);
    }

    /// Processes a reported value, such as a batch time, a latency or a queue length.
    fn take_value(
        &mut self,
        ring: u32,
        at: Moment,
        name: &str,
        real: f64,
        events: &mut Vec<(Moment, HoldEvent)>,
    ) {
        let thread = self.threads.entry(ring).or_default();
        if !is_in_range(name, real) {
            thread.has_invalid_report |= matches!(name, value::BATCH_TIME | value::LATENCY);
            self.ignore(name, real);
            return;
        }
        match name {
            value::BATCH_SIZE => {
                thread.requested = Some(real as u64);
                self.requested = thread.requested;
                events.push((at, HoldEvent::BatchSizeRequested));
            }
            value::BATCH_TIME => thread.time = Some(Seconds::new(real)),
            value::LATENCY => {
                let longest = thread.latency.map_or(0.0, Seconds::get).max(real);
                thread.latency = Some(Seconds::new(longest));
            }
            value::OUT_OF_MEMORY if real >= 1.0 => {
                events.push((at, HoldEvent::OutOfMemory { size: real as u64 }));
            }
            value::QUEUE_LENGTH => thread.queue = Some(real as u64),
            value::ARRIVALS => thread.arrivals = Some(real),
            _ => return,
        }
        if matches!(name, value::QUEUE_LENGTH | value::ARRIVALS) {
            self.reports_queue = true;
            events.push((at, self.queue()));
        }
    }

    /// Warns the user, once for each name, that the value reported under this name is ignored.
    fn ignore(&mut self, name: &str, real: f64) {
        if self.reported.insert(name.into()) {
            self.problems.push(format!(
                "the program reported {real:e} as its {name}, which is out of range: such reports are ignored"
            ));
        }
    }

    /// Warns once about a program that never fills its batches and reports no queue that would explain it.
    fn count_short_batches(&mut self, requested: u64, items: u64) {
        if self.reports_queue || items >= requested {
            self.short_batches = ShortBatches::default();
            return;
        }
        self.short_batches.count += 1;
        self.short_batches.most_items = self.short_batches.most_items.max(items);
        let most_items = self.short_batches.most_items;
        if self.short_batches.count == MAX_SHORT_BATCHES && self.reported.insert("short".into()) {
            self.problems.push(format!(
                "the last {MAX_SHORT_BATCHES} batches had at most {most_items} of the requested {requested} items: use what sweetspot.batch_size() returns for each batch, or call sweetspot.queue(length=0) when no more requests are waiting"
            ));
        }
    }

    /// The queue length and arrival rate, summed over all threads.
    fn queue(&self) -> HoldEvent {
        let arrivals = self.threads.values().filter_map(|one| one.arrivals);
        let known = self.threads.values().any(|one| one.arrivals.is_some());
        HoldEvent::Queue {
            length: self.threads.values().filter_map(|one| one.queue).sum(),
            arrivals_per_s: known.then(|| arrivals.sum()),
        }
    }
}

/// The event of a completed batch.
fn completed((at, batch): (Moment, CompletedBatch)) -> (Moment, HoldEvent) {
    (at, HoldEvent::BatchCompleted(batch))
}

/// Whether a reported value is within the valid range for its name; always true for names that `hold` does
/// not use.
fn is_in_range(name: &str, real: f64) -> bool {
    let most = match name {
        value::BATCH_TIME | value::LATENCY => MAX_SECONDS,
        value::BATCH_SIZE | value::QUEUE_LENGTH | value::OUT_OF_MEMORY | value::ARRIVALS => {
            MAX_ITEMS as f64
        }
        _ => return true,
    };
    (0.0..=most).contains(&real)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sweetspot_link::{Reader, Writer};
    use sweetspot_workload::ProgressCounter;

    use super::*;

    fn events(batches: &mut BatchReader, reader: &mut Reader) -> Vec<HoldEvent> {
        let mut counter = ProgressCounter::new(Moment::default());
        let reports = reader.drain().into_iter();
        let reports = reports.map(|event| counter.take_link_event(event));
        let all = batches.take(reports.collect());
        all.into_iter().map(|(_, event)| event).collect()
    }

    #[test]
    fn a_batch_has_its_size_its_duration_and_its_longest_latency() {
        let mut reader = Reader::create().unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        let mut batches = BatchReader::default();
        writer.batch(8, Duration::from_millis(5));
        // The program has not asked for a batch size yet.
        assert_eq!(events(&mut batches, &mut reader), []);
        reader
            .control()
            .set_batch_size(std::num::NonZeroU64::new(16));
        writer.batch_size();
        for latency in [9, 20, 4] {
            writer.latency(Duration::from_millis(latency));
        }
        writer.batch(8, Duration::from_millis(5));
        writer.queue(3);
        writer.arrivals(20.0);
        writer.out_of_memory(64);
        writer.value("accuracy", 0.5);
        writer.value(value::QUEUE_LENGTH, f64::NAN);
        let done = CompletedBatch {
            size: 16,
            items: 8,
            duration: Seconds::new(0.005),
            latency: Some(Seconds::new(0.02)),
        };
        let queue = |arrivals_per_s| HoldEvent::Queue {
            length: 3,
            arrivals_per_s,
        };
        let expected = [
            HoldEvent::BatchSizeRequested,
            HoldEvent::BatchCompleted(done),
            queue(None),
            queue(Some(20.0)),
            HoldEvent::OutOfMemory { size: 64 },
        ];
        assert_eq!(events(&mut batches, &mut reader), expected);
        assert_eq!(batches.problems.len(), 1, "{:?}", batches.problems);
        // More items than requested are a larger batch.
        writer.batch(64, Duration::from_millis(5));
        let events = events(&mut batches, &mut reader);
        assert!(matches!(
            events[..],
            [HoldEvent::BatchCompleted(CompletedBatch { size: 64, .. })]
        ));
    }

    /// A program that has asked for its batch size and received 16.
    fn given_16() -> (BatchReader, Reader, Writer) {
        let reader = Reader::create().unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        reader
            .control()
            .set_batch_size(std::num::NonZeroU64::new(16));
        writer.batch_size();
        (BatchReader::default(), reader, writer)
    }

    #[test]
    fn reports_out_of_range_are_ignored_with_one_warning_each() {
        let (mut batches, mut reader, writer) = given_16();
        for time in [1e300, f64::NAN, f64::INFINITY, -1.0] {
            writer.value(value::BATCH_TIME, time);
            writer.progress(16);
        }
        writer.value(value::LATENCY, 1e300);
        writer.batch(16, Duration::from_millis(5));
        writer.value(value::BATCH_TIME, 0.005);
        writer.progress(1 << 63);
        writer.value("accuracy", f64::NAN);
        assert_eq!(
            events(&mut batches, &mut reader),
            [HoldEvent::BatchSizeRequested]
        );
        let named: Vec<&str> = batches.problems.iter().map(String::as_str).collect();
        assert_eq!(named.len(), 3, "{named:?}");
        assert!(named[0].contains("1e300 as its batch_s"), "{named:?}");
        assert!(named[1].contains("latency_s"), "{named:?}");
        assert!(named[2].contains("as its items"), "{named:?}");
        writer.batch(16, Duration::from_millis(5));
        assert_eq!(events(&mut batches, &mut reader).len(), 1);
    }

    #[test]
    fn batches_that_are_never_full_cause_one_warning_without_a_queue() {
        for queue in [false, true] {
            let (mut batches, mut reader, writer) = given_16();
            for _ in 0..3 * MAX_SHORT_BATCHES {
                if queue {
                    writer.queue(0);
                }
                writer.batch(2, Duration::from_millis(5));
            }
            events(&mut batches, &mut reader);
            let warnings = batches.problems.iter();
            let warnings = warnings.filter(|one| one.contains("at most 2 of the requested 16"));
            assert_eq!(
                warnings.count(),
                usize::from(!queue),
                "{:?}",
                batches.problems
            );
        }
    }
}
