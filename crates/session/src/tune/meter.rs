//! Energy of all GPUs while a command runs, read beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sweetspot_device::Moment;
use sweetspot_measure::math::{Ledger, Span};
use sweetspot_measure::{MethodChoice, Sampler};
use sweetspot_quantity::Joules;

use crate::SessionError;

/// Between two readings: the counter moves ten times a second, and reading it costs milliseconds.
const EVERY: Duration = Duration::from_millis(400);

/// A thread that tells what was drawn since it began.
pub struct Meter {
    begun: Moment,
    readings: Receiver<(Moment, Joules)>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Meter {
    pub fn start(sampler: Sampler) -> Result<Self, SessionError> {
        let begun = sampler.mark();
        let (told, readings) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let flag = ends.clone();
        let thread = std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(move || read(&sampler, begun, &flag, &told))
            .map_err(|problem| SessionError::System {
                what: "no thread to read the devices with",
                problem,
            })?;
        Ok(Self {
            begun,
            readings,
            ends,
            thread,
        })
    }

    pub fn begun(&self) -> Moment {
        self.begun
    }

    /// What is new.
    pub fn came(&self) -> impl Iterator<Item = (Moment, Joules)> + '_ {
        self.readings.try_iter()
    }

    /// Ends it, and says what came last.
    pub fn stop(self) -> Vec<(Moment, Joules)> {
        self.ends.store(true, Ordering::Release);
        let rest = self.readings.iter().collect();
        let _ = self.thread.join();
        rest
    }
}

fn read(sampler: &Sampler, begun: Moment, ends: &AtomicBool, told: &Sender<(Moment, Joules)>) {
    let (mut from, mut total) = (begun, Joules::ZERO);
    loop {
        let is_last = ends.load(Ordering::Acquire);
        if !is_last {
            std::thread::sleep(EVERY);
        }
        let to = sampler.mark();
        let Ok(recorded) = sampler.cut() else { return };
        let span = Span::new(from, to);
        let drawn: Option<Joules> = recorded
            .iter()
            .map(|one| {
                let energy = Ledger::new(&one.trace).energy(&span, MethodChoice::Auto);
                energy.ok().map(|energy| energy.value)
            })
            .sum();
        // What cannot be told now may be told with the next.
        if let Some(drawn) = drawn {
            total += drawn;
            from = to;
            if told.send((to, total)).is_err() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}
