//! The reads of a device: what the sampler's threads do, and where the results go.

use sweetspot_device::{
    Amount, Clock, Device, DrainedSamples, Moment, ReadError, Reading, SensorKind,
};
use sweetspot_quantity::Joules;

use super::auxiliary::AuxiliaryReadings;
use super::limit_readings::LimitReadings;
use super::recorder::{Recorder, Task};
use crate::math::Span;

/// The result of a read, by kind of sensor.
pub(super) enum Outcome {
    Counter(Span, Result<Joules, ReadError>),
    Drained(Moment, Result<DrainedSamples, ReadError>),
    Polled(SensorKind, Moment, Result<Reading, ReadError>),
    Auxiliary(AuxiliaryReadings),
    Limits(LimitReadings),
}

/// Performs a read and stores its result in the recorder. The clock may be real or, in tests, virtual.
pub fn perform_task(
    recorder: &mut Recorder,
    task: Task,
    device: &mut dyn Device,
    clock: &dyn Clock,
) {
    record(recorder, read(task, device, clock));
}

/// Performs a read. It may block for as long as the driver takes.
pub(super) fn read(task: Task, device: &mut dyn Device, clock: &dyn Clock) -> Outcome {
    match task {
        Task::Counter => {
            let begin = clock.now();
            let result = device.read(SensorKind::EnergyCounter);
            let call = Span::new(begin, clock.now());
            let energy = result.and_then(|reading| match reading.amount {
                Amount::Energy(energy) => Ok(energy),
                _ => Err(ReadError::Unsupported(SensorKind::EnergyCounter)),
            });
            Outcome::Counter(call, energy)
        }
        Task::Drain => {
            let result = device.drain();
            Outcome::Drained(clock.now(), result)
        }
        Task::Poll(sensor) => {
            let result = device.read(sensor);
            Outcome::Polled(sensor, clock.now(), result)
        }
        Task::Auxiliary => Outcome::Auxiliary(AuxiliaryReadings::read(device, clock.now())),
        Task::Limits => Outcome::Limits(LimitReadings::read(device, clock.now())),
    }
}

/// Stores the result of a read in the recorder.
pub(super) fn record(recorder: &mut Recorder, outcome: Outcome) {
    match outcome {
        Outcome::Counter(call, energy) => recorder.record_counter(call, energy),
        Outcome::Drained(at, result) => recorder.record_drain(at, result),
        Outcome::Polled(sensor, at, result) => recorder.record_poll(sensor, at, result),
        Outcome::Auxiliary(row) => recorder.record_auxiliary(row),
        Outcome::Limits(row) => recorder.record_limits(row),
    }
}
