//! What a serving program says on its link, as events of a controller.

use std::collections::HashMap;

use sweetspot_control::hold::{BatchDone, Event};
use sweetspot_device::Moment;
use sweetspot_link::{Event as Said, Mark, value};
use sweetspot_quantity::Seconds;

/// What is known of each thread that speaks.
#[derive(Default)]
struct Speaker {
    /// The size it asked for last.
    asked: Option<u64>,
    time: Option<Seconds>,
    latency: Option<Seconds>,
    /// When it told of items last.
    told: Option<Moment>,
    queue: Option<u64>,
    arrivals: Option<f64>,
}

/// Listens to a link.
#[derive(Default)]
pub struct Heard {
    speakers: HashMap<u32, Speaker>,
    /// The size that anybody asked for last: another thread may do the work.
    asked: Option<u64>,
    /// Records that did not fit into the link.
    pub lost: u64,
    /// What is wrong with the link, in words.
    pub faults: Vec<String>,
}

impl Heard {
    /// What the link brought, in order of time.
    pub fn take(&mut self, said: Vec<Said>) -> Vec<(Moment, Event)> {
        let mut events = Vec::new();
        for one in said {
            match one {
                Said::Record(record) => {
                    let at = Moment::from_nanos(record.at.nanos());
                    self.record(record.ring.number, at, record.mark, &mut events);
                }
                Said::Lost { count, .. } => self.lost += count,
                Said::Ended(ring) => {
                    self.speakers.remove(&ring.number);
                }
                Said::Fault(problem) => self.faults.push(problem.to_string()),
                _ => {}
            }
        }
        events.sort_by_key(|(at, _)| *at);
        events
    }

    fn record(&mut self, ring: u32, at: Moment, mark: Mark, events: &mut Vec<(Moment, Event)>) {
        let speaker = self.speakers.entry(ring).or_default();
        match mark {
            Mark::Items(items) => {
                let since = speaker.told.replace(at).map(|before| at - before);
                // A program that tells no times works from one report to the next.
                let (Some(duration), true) = (speaker.time.take().or(since), items > 0) else {
                    return;
                };
                let latency = speaker.latency.take();
                // A program that never asks is told so; what it does says nothing of any setting.
                let Some(asked) = speaker.asked.or(self.asked) else {
                    return;
                };
                let done = BatchDone {
                    // A program that takes more than it asked for does not heed the answer.
                    size: asked.max(items),
                    items,
                    duration,
                    latency,
                };
                events.push((at, Event::Batch(done)));
            }
            Mark::Value { name, value: real } if real.is_finite() && real >= 0.0 => {
                match &*name {
                    value::BATCH_SIZE => {
                        speaker.asked = Some(real as u64);
                        self.asked = speaker.asked;
                        events.push((at, Event::Asked));
                    }
                    value::BATCH_TIME => speaker.time = Some(Seconds::new(real)),
                    value::LATENCY => {
                        let longest = speaker.latency.map_or(0.0, Seconds::get).max(real);
                        speaker.latency = Some(Seconds::new(longest));
                    }
                    value::OUT_OF_MEMORY if real >= 1.0 => {
                        events.push((at, Event::OutOfMemory { size: real as u64 }));
                    }
                    value::QUEUE_LENGTH => speaker.queue = Some(real as u64),
                    value::ARRIVALS => speaker.arrivals = Some(real),
                    _ => return,
                }
                if matches!(&*name, value::QUEUE_LENGTH | value::ARRIVALS) {
                    events.push((at, self.queue()));
                }
            }
            _ => {}
        }
    }

    /// Of all threads together.
    fn queue(&self) -> Event {
        let arrivals = self.speakers.values().filter_map(|one| one.arrivals);
        let known = self.speakers.values().any(|one| one.arrivals.is_some());
        Event::Queue {
            length: self.speakers.values().filter_map(|one| one.queue).sum(),
            arrivals_per_s: known.then(|| arrivals.sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sweetspot_link::{Reader, Writer};

    use super::*;

    fn events(heard: &mut Heard, reader: &mut Reader) -> Vec<Event> {
        let all = heard.take(reader.drain());
        all.into_iter().map(|(_, event)| event).collect()
    }

    #[test]
    fn a_batch_has_its_size_its_time_and_its_slowest_request() {
        let mut reader = Reader::create().unwrap();
        let writer = Writer::open(reader.folder()).unwrap();
        let mut heard = Heard::default();
        writer.batch(8, Duration::from_millis(5));
        // Nobody asked so far.
        assert_eq!(events(&mut heard, &mut reader), []);
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
        let done = BatchDone {
            size: 16,
            items: 8,
            duration: Seconds::new(0.005),
            latency: Some(Seconds::new(0.02)),
        };
        let queue = |arrivals_per_s| Event::Queue {
            length: 3,
            arrivals_per_s,
        };
        let expected = [
            Event::Asked,
            Event::Batch(done),
            queue(None),
            queue(Some(20.0)),
            Event::OutOfMemory { size: 64 },
        ];
        assert_eq!(events(&mut heard, &mut reader), expected);
        // More than was asked for: it takes what it likes.
        writer.batch(64, Duration::from_millis(5));
        let told = events(&mut heard, &mut reader);
        assert!(matches!(
            told[..],
            [Event::Batch(BatchDone { size: 64, .. })]
        ));
    }
}
