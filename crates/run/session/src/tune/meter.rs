//! Measures the energy of all GPUs, and what limits them, in a separate thread while a command runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use sweetspot_control::limit::EvidenceSpan;
use sweetspot_device::{Clock, Moment, MonotonicClock};
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

    /// Stops the thread. Returns the last readings, and the length of the time since the start in which the energy is
    /// unknown.
    pub fn stop(self) -> (Vec<MeterReading>, Seconds) {
        self.stop.store(true, Ordering::Release);
        let rest = self.readings.iter().collect();
        // A thread that panicked knows nothing.
        let whole = || MonotonicClock.now() - self.began;
        let unknown = self.thread.join().unwrap_or_else(|_| whole());
        (rest, unknown)
    }
}

/// The energy of each of several devices, summed over consecutive time spans.
struct EnergySum {
    /// The moment up to which each device's energy is known.
    known_to: Vec<Moment>,
    totals: Vec<Joules>,
    /// The time of each device before `known_to` without readings.
    unread: Vec<Seconds>,
}

/// The time in which the energy of a device is unknown.
struct UnknownTime {
    /// The time up to now since the last readings, which the next readings may cover.
    at_the_end: Seconds,
    /// All of the time since the start.
    in_all: Seconds,
}

impl EnergySum {
    /// Creates the sum of `count` devices.
    fn new(count: usize, began: Moment) -> Self {
        Self {
            known_to: vec![began; count],
            totals: vec![Joules::ZERO; count],
            unread: vec![Seconds::ZERO; count],
        }
    }

    /// Adds the recordings up to the moment `to`. Returns the time in which the energy of a device is unknown. A time
    /// without readings before new ones counts with the power of these, because the tuner needs a sum that goes on.
    fn add(&mut self, recorded: &[DeviceRecording], to: Moment) -> UnknownTime {
        let mut unknown = UnknownTime {
            at_the_end: Seconds::ZERO,
            in_all: Seconds::ZERO,
        };
        let known_to = self.known_to.iter_mut();
        let sums = known_to.zip(self.totals.iter_mut().zip(&mut self.unread));
        for (one, (known_to, (total, unread))) in recorded.iter().zip(sums) {
            let span = Span::new(*known_to, to);
            let energy = EnergyEstimator::new(&one.trace).energy(&span, MethodChoice::Auto);
            if let Ok(energy) = energy {
                *total += energy.value;
                *known_to = to;
                for part in energy.uncovered(&span) {
                    if part.begin == span.begin {
                        *unread += part.length();
                        *total += energy.power() * part.length();
                    } else {
                        *known_to = part.begin;
                    }
                }
            }
            let at_the_end = to - *known_to;
            unknown.at_the_end = unknown.at_the_end.max(at_the_end);
            unknown.in_all = unknown.in_all.max(*unread + at_the_end);
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
    let mut sum = EnergySum::new(count, began);
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
        if unknown.at_the_end <= Seconds::ZERO && readings.send(energy).is_err() || is_last {
            return unknown.in_all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sweetspot_device::DeviceId;
    use sweetspot_measure::math::{PowerSample, Trace};
    use sweetspot_quantity::Watts;

    fn at(seconds: f64) -> Moment {
        Moment::from_nanos((seconds * 1e9) as u64)
    }

    /// Readings of 100 W between two moments, in seconds.
    fn recording(begin: f64, end: f64) -> Vec<DeviceRecording> {
        let count = ((end - begin) / 0.02) as usize;
        let sample = |number: usize| PowerSample {
            at: at(begin + 0.02 * number as f64),
            power: Watts::new(100.0 + (number % 3) as f64),
        };
        vec![DeviceRecording {
            device: DeviceId::new("GPU-a"),
            trace: Trace {
                buffer: (0..=count).map(sample).collect(),
                ..Trace::default()
            },
            auxiliary: Vec::new(),
            limits: Vec::new(),
        }]
    }

    #[test]
    fn a_time_without_readings_counts_as_unknown_also_after_they_resume() {
        let mut sum = EnergySum::new(1, at(10.0));
        let unknown = sum.add(&recording(9.0, 12.2), at(12.0));
        assert_eq!(unknown.in_all, Seconds::ZERO);
        // The readings of the last seconds before the gap are not stored any more when they resume.
        let unknown = sum.add(&recording(18.0, 20.2), at(20.0));
        assert_eq!(unknown.at_the_end, Seconds::ZERO);
        assert!(
            (unknown.in_all.get() - 6.0).abs() < 0.2,
            "{}",
            unknown.in_all
        );
        assert!(
            (sum.totals[0].get() - 1_010.0).abs() < 20.0,
            "{}",
            sum.totals[0]
        );
        let unknown = sum.add(&recording(18.0, 22.0), at(25.0));
        assert!(
            (unknown.in_all.get() - 9.0).abs() < 0.2,
            "{}",
            unknown.in_all
        );
    }
}
