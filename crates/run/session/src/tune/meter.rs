//! Energy of all GPUs while a command runs, read beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sweetspot_device::Moment;
use sweetspot_measure::math::{EnergyEstimator, Span};
use sweetspot_measure::{DeviceRecording, MethodChoice, Sampler};
use sweetspot_quantity::{Joules, Seconds};

use crate::SessionError;

/// Between two readings: the counter moves ten times a second, and reading it costs milliseconds.
const EVERY: Duration = Duration::from_millis(400);

/// A thread that reports the energy since it began.
pub struct EnergyMeter {
    began: Moment,
    readings: Receiver<(Moment, Joules)>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Seconds>,
}

impl EnergyMeter {
    pub fn start(sampler: Sampler) -> Result<Self, SessionError> {
        let began = sampler.mark();
        let (sender, readings) = channel();
        let ends = Arc::new(AtomicBool::new(false));
        let flag = ends.clone();
        let thread = std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(move || read_until_ended(&sampler, began, &flag, &sender))
            .map_err(SessionError::system("no thread to read the devices with"))?;
        Ok(Self {
            began,
            readings,
            ends,
            thread,
        })
    }

    pub fn began(&self) -> Moment {
        self.began
    }

    /// What is new.
    pub fn readings(&self) -> Vec<(Moment, Joules)> {
        self.readings.try_iter().collect()
    }

    /// Ends the meter. Returns the last readings, and for how long at the end nothing is known.
    pub fn stop(self) -> (Vec<(Moment, Joules)>, Seconds) {
        self.ends.store(true, Ordering::Release);
        let rest = self.readings.iter().collect();
        let unknown = self.thread.join().unwrap_or(Seconds::ZERO);
        (rest, unknown)
    }
}

/// Sums up the energy of several devices from parts, each from where the part before is known to.
struct EnergySum {
    known_to: Vec<Moment>,
    total: Joules,
}

impl EnergySum {
    /// Takes what was read up to a moment; says for how long before it something is unknown.
    fn add(&mut self, recorded: &[DeviceRecording], to: Moment) -> Seconds {
        let mut unknown = Seconds::ZERO;
        for (one, known_to) in recorded.iter().zip(&mut self.known_to) {
            let span = Span::new(*known_to, to);
            let energy = EnergyEstimator::new(&one.trace).energy(&span, MethodChoice::Auto);
            if let Ok(energy) = energy {
                self.total += energy.value;
                *known_to = match energy.uncovered(&span).next() {
                    Some(_) => energy.covered.end.clamp(*known_to, to),
                    None => to,
                };
            }
            unknown = unknown.max(to - *known_to);
        }
        unknown
    }
}

fn read_until_ended(
    sampler: &Sampler,
    began: Moment,
    ends: &AtomicBool,
    readings: &Sender<(Moment, Joules)>,
) -> Seconds {
    let mut sum = EnergySum {
        known_to: vec![began; sampler.latest().len()],
        total: Joules::ZERO,
    };
    loop {
        let is_last = ends.load(Ordering::Acquire);
        if !is_last {
            std::thread::sleep(EVERY);
        }
        let to = sampler.mark();
        let Ok(recorded) = sampler.collect() else {
            return to - began;
        };
        let unknown = sum.add(&recorded, to);
        // What is unknown now may be known with the next reading.
        if unknown <= Seconds::ZERO && readings.send((to, sum.total)).is_err() || is_last {
            return unknown;
        }
    }
}
