//! What a serving program reports of its batches, as events of a controller.

use std::collections::{HashMap, HashSet};

use sweetspot_control::hold::{CompletedBatch, HoldEvent};
use sweetspot_device::Moment;
use sweetspot_link::{Event as LinkEvent, Mark, value};
use sweetspot_quantity::Seconds;
use sweetspot_workload::{Reporter, WorkloadEvent};

/// What one thread of the workload has reported.
#[derive(Default)]
struct WorkloadThread {
    /// The size it asked for last.
    asked: Option<u64>,
    time: Option<Seconds>,
    latency: Option<Seconds>,
    /// When it told of items last.
    told: Option<Moment>,
    queue: Option<u64>,
    arrivals: Option<f64>,
    /// What it told of the batch under way was no number that can be.
    has_invalid_report: bool,
}

/// No batch takes longer, and none has more items: whoever says so has miscounted.
const LONGEST: f64 = 1e6;
const MOST_ITEMS: u64 = 1 << 40;
/// Batches in a row with fewer items than asked for, where nobody tells of a queue, which are no accident.
const SHORT_FOR: u32 = 50;

/// Makes batches of what the threads of a program report.
#[derive(Default)]
pub struct BatchReader {
    threads: HashMap<u32, WorkloadThread>,
    /// The size that anybody asked for last: another thread may do the work.
    asked: Option<u64>,
    /// Records that did not fit into the link.
    pub lost: u64,
    /// What is wrong with the link, or with what was said on it, in words.
    pub faults: Vec<String>,
    /// The reports that were left out and named.
    named: HashSet<Box<str>>,
    /// Batches in a row that had fewer items than asked for, and the most that one had.
    short: (u32, u64),
    is_queue_told: bool,
}

impl BatchReader {
    /// What the program reported, in order of time.
    pub fn take(&mut self, reports: Vec<WorkloadEvent>) -> Vec<(Moment, HoldEvent)> {
        let mut events = Vec::new();
        for report in reports {
            match report {
                WorkloadEvent::Progress(progress) => {
                    if let Reporter::Link(ring) = progress.reporter {
                        self.take_items(ring.number, progress.at, progress.items, &mut events);
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
                }
                WorkloadEvent::Link(LinkEvent::Fault(problem)) => {
                    self.faults.push(problem.to_string());
                }
                WorkloadEvent::Link(_) => {}
            }
        }
        events.sort_by_key(|(at, _)| *at);
        events
    }

    fn take_items(
        &mut self,
        ring: u32,
        at: Moment,
        items: f64,
        events: &mut Vec<(Moment, HoldEvent)>,
    ) {
        let thread = self.threads.entry(ring).or_default();
        if items > MOST_ITEMS as f64 {
            thread.has_invalid_report = false;
            (thread.time, thread.latency) = (None, None);
            self.leave_out("items", items);
            return;
        }
        let items = items as u64;
        let since = thread.told.replace(at).map(|before| at - before);
        // A program that reports no times works from one report to the next.
        let latency = thread.latency.take();
        let duration = thread.time.take().or(since);
        if std::mem::take(&mut thread.has_invalid_report) || items == 0 {
            return;
        }
        // A program that never asks is told so; what it does says nothing of any setting.
        let (Some(duration), Some(asked)) = (duration, thread.asked.or(self.asked)) else {
            return;
        };
        let done = CompletedBatch {
            // A program that takes more than it asked for does not heed the answer.
            size: asked.max(items),
            items,
            duration,
            latency,
        };
        events.push((at, HoldEvent::BatchCompleted(done)));
        self.compare(asked, items);
    }

    fn take_value(
        &mut self,
        ring: u32,
        at: Moment,
        name: &str,
        real: f64,
        events: &mut Vec<(Moment, HoldEvent)>,
    ) {
        let thread = self.threads.entry(ring).or_default();
        if !can_be(name, real) {
            thread.has_invalid_report |= matches!(name, value::BATCH_TIME | value::LATENCY);
            self.leave_out(name, real);
            return;
        }
        match name {
            value::BATCH_SIZE => {
                thread.asked = Some(real as u64);
                self.asked = thread.asked;
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
            self.is_queue_told = true;
            events.push((at, self.queue()));
        }
    }

    /// Said once by name.
    fn leave_out(&mut self, name: &str, real: f64) {
        if self.named.insert(name.into()) {
            self.faults.push(format!(
                "the program reported {real:e} as its {name}, which cannot be: such reports are left out"
            ));
        }
    }

    /// Where nobody tells of a queue, batches that are never full are the program's own choice.
    fn compare(&mut self, asked: u64, items: u64) {
        if self.is_queue_told || items >= asked {
            self.short = (0, 0);
            return;
        }
        self.short = (self.short.0 + 1, self.short.1.max(items));
        if self.short.0 == SHORT_FOR && self.named.insert("short".into()) {
            self.faults.push(format!(
                "the program was asked for batches of {asked} and did none of more than {} in {SHORT_FOR}: use what sweetspot.batch_size() returns for each batch, or tell sweetspot.queue(length=0) where no more requests wait",
                self.short.1
            ));
        }
    }

    /// Of all threads together.
    fn queue(&self) -> HoldEvent {
        let arrivals = self.threads.values().filter_map(|one| one.arrivals);
        let known = self.threads.values().any(|one| one.arrivals.is_some());
        HoldEvent::Queue {
            length: self.threads.values().filter_map(|one| one.queue).sum(),
            arrivals_per_s: known.then(|| arrivals.sum()),
        }
    }
}

/// Whether a report is a number that can be; values of other names are nobody's here.
fn can_be(name: &str, real: f64) -> bool {
    let most = match name {
        value::BATCH_TIME | value::LATENCY => LONGEST,
        value::BATCH_SIZE | value::QUEUE_LENGTH | value::OUT_OF_MEMORY | value::ARRIVALS => {
            MOST_ITEMS as f64
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
    fn a_batch_has_its_size_its_time_and_its_slowest_request() {
        let mut reader = Reader::create().unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        let mut batches = BatchReader::default();
        writer.batch(8, Duration::from_millis(5));
        // Nobody asked so far.
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
        assert_eq!(batches.faults.len(), 1, "{:?}", batches.faults);
        // More than was asked for: it takes what it likes.
        writer.batch(64, Duration::from_millis(5));
        let told = events(&mut batches, &mut reader);
        assert!(matches!(
            told[..],
            [HoldEvent::BatchCompleted(CompletedBatch { size: 64, .. })]
        ));
    }

    /// A program that has asked for its batch size and was told 16.
    fn asked_for_16() -> (BatchReader, Reader, Writer) {
        let reader = Reader::create().unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        reader
            .control()
            .set_batch_size(std::num::NonZeroU64::new(16));
        writer.batch_size();
        (BatchReader::default(), reader, writer)
    }

    #[test]
    fn reports_that_cannot_be_are_left_out_and_named_once() {
        let (mut batches, mut reader, writer) = asked_for_16();
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
        let named: Vec<&str> = batches.faults.iter().map(String::as_str).collect();
        assert_eq!(named.len(), 3, "{named:?}");
        assert!(named[0].contains("1e300 as its batch_s"), "{named:?}");
        assert!(named[1].contains("latency_s"), "{named:?}");
        assert!(named[2].contains("as its items"), "{named:?}");
        writer.batch(16, Duration::from_millis(5));
        assert_eq!(events(&mut batches, &mut reader).len(), 1);
    }

    #[test]
    fn batches_that_are_never_full_are_told_of_once_unless_a_queue_is_told() {
        for queue in [false, true] {
            let (mut batches, mut reader, writer) = asked_for_16();
            for _ in 0..3 * SHORT_FOR {
                if queue {
                    writer.queue(0);
                }
                writer.batch(2, Duration::from_millis(5));
            }
            events(&mut batches, &mut reader);
            let told = batches.faults.iter();
            let told = told.filter(|one| one.contains("none of more than 2"));
            assert_eq!(told.count(), usize::from(!queue), "{:?}", batches.faults);
        }
    }
}
