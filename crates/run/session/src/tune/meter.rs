//! Measures the energy of all GPUs, and what limits them, in a separate thread while a command runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sweetspot_control::limit::EvidenceSpan;
use sweetspot_device::Moment;
use sweetspot_measure::math::{EnergyEstimator, GapReason, Span};
use sweetspot_measure::{DeviceRecording, MethodChoice, Sampler};
use sweetspot_quantity::{Joules, Seconds};

use super::limits::EvidenceReader;
use crate::SessionError;

/// The interval between two readings. An energy counter updates ten times a second, and reading it takes milliseconds.
const READ_INTERVAL: Duration = Duration::from_millis(400);

/// A reading of all GPUs.
pub enum MeterReading {
    /// The energy of each GPU since the start, at a moment.
    Energy(Moment, Vec<Joules>),
    /// The GPU with this index no longer responds.
    Lost(usize),
    /// What the counters tell about a span of time since the start.
    Limits(EvidenceSpan),
}

/// A thread that measures the total energy of all GPUs since its start, and what limits them.
pub struct EnergyMeter {
    began: Moment,
    readings: Receiver<MeterReading>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seconds>,
}

impl EnergyMeter {
    /// Starts the thread, and marks the start of the measurement.
    pub fn start(sampler: Sampler) -> Result<Self, SessionError> {
        let began = sampler.mark();
        let (sender, readings) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(move || read_until_stopped(&sampler, began, &flag, &sender))
            .map_err(SessionError::system(
                "cannot start a thread to read the devices",
            ))?;
        Ok(Self {
            began,
            readings,
            stop,
            thread,
        })
    }

    /// The moment from which the energy is counted.
    pub fn began(&self) -> Moment {
        self.began
    }

    /// The readings since the last call.
    pub fn take_readings(&self) -> Vec<MeterReading> {
        self.readings.try_iter().collect()
    }

    /// Stops the thread. Returns the last readings, and the length of the time before the end in which the
    /// energy is unknown.
    pub fn stop(self) -> (Vec<MeterReading>, Seconds) {
        self.stop.store(true, Ordering::Release);
        let rest = self.readings.iter().collect();
        let unknown = self.thread.join().unwrap_or(Seconds::ZERO);
        (rest, unknown)
    }
}

/// The energy of each of several devices, summed over consecutive time spans.
struct EnergySum {
    /// The moment up to which each device's energy is known.
    known_to: Vec<Moment>,
    totals: Vec<Joules>,
}

impl EnergySum {
    /// Adds the recordings up to the moment `to`. Returns the length of the time before `to` in which a device's energy
    /// is unknown.
    fn add(&mut self, recorded: &[DeviceRecording], to: Moment) -> Seconds {
        let mut unknown = Seconds::ZERO;
        let sums = self.known_to.iter_mut().zip(&mut self.totals);
        for (one, (known_to, total)) in recorded.iter().zip(sums) {
            let span = Span::new(*known_to, to);
            let energy = EnergyEstimator::new(&one.trace).energy(&span, MethodChoice::Auto);
            if let Ok(energy) = energy {
                *total += energy.value;
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

/// The loop of the thread: collects and sends the energy at regular intervals until it is stopped.
fn read_until_stopped(
    sampler: &Sampler,
    began: Moment,
    stop: &AtomicBool,
    readings: &Sender<MeterReading>,
) -> Seconds {
    let count = sampler.latest().len();
    let mut sum = EnergySum {
        known_to: vec![began; count],
        totals: vec![Joules::ZERO; count],
    };
    let mut lost = vec![false; count];
    let mut limits = EvidenceReader::default();
    loop {
        let is_last = stop.load(Ordering::Acquire);
        if !is_last {
            std::thread::sleep(READ_INTERVAL);
        }
        let to = sampler.mark();
        let Ok(recorded) = sampler.collect() else {
            return to - began;
        };
        let unknown = sum.add(&recorded, to);
        // The receiver is gone only if the thread is to stop, too.
        if let Some(span) = limits.next_span(&recorded, began) {
            let _ = readings.send(MeterReading::Limits(span));
        }
        for (index, (one, is_lost)) in recorded.iter().zip(&mut lost).enumerate() {
            let gaps = &one.trace.gaps;
            if !*is_lost && gaps.iter().any(|gap| gap.reason == GapReason::Lost) {
                *is_lost = true;
                let _ = readings.send(MeterReading::Lost(index));
            }
        }
        // Energy that is unknown now may be known with the next reading.
        let energy = MeterReading::Energy(to, sum.totals.clone());
        if unknown <= Seconds::ZERO && readings.send(energy).is_err() || is_last {
            return unknown;
        }
    }
}
