//! The energy of a time span from a meter's own counter.

use sweetspot_device::{MeterTrace, Moment};
use sweetspot_quantity::Joules;

use super::alignment::Candidate;
use super::curve::{Curve, Estimate};
use super::samples::meter_behaviour;

/// The steps of a meter's energy counter, in seconds and joules.
pub(super) struct Counter {
    /// The time of each step, the standard deviation of that time, and the energy.
    steps: Vec<(f64, f64, f64)>,
    resolution: f64,
    pub has_jumped: bool,
}

impl Counter {
    pub fn new(trace: &MeterTrace, origin: Moment) -> Self {
        let mut steps: Vec<(f64, f64, f64)> = Vec::new();
        let highest = trace
            .readings
            .iter()
            .filter_map(|reading| reading.power)
            .fold(0.0, |most: f64, power| most.max(power.get()));
        let behaviour = meter_behaviour(trace);
        let period = behaviour.period.unwrap_or(trace.properties.period).get();
        let resolution = behaviour
            .energy_resolution
            .or(trace.properties.energy_resolution);
        let resolution = resolution.map_or(0.0, Joules::get);
        let mut has_jumped = false;
        let mut read_at = f64::NEG_INFINITY;
        for reading in &trace.readings {
            let Some(energy) = reading.energy.map(Joules::get) else {
                continue;
            };
            let (after, at) = ((reading.after - origin).get(), (reading.at - origin).get());
            if let Some(last) = steps.last() {
                // A value that was read late has the energy of the time before it, too, and the step before it came up
                // to a period before it was read.
                let time = at - last.0 + 2.0 * (last.1 + period);
                let most = 2.0 * highest * time + 2.0 * resolution;
                has_jumped |= energy < last.2 || (highest > 0.0 && energy - last.2 > most);
            }
            if steps.last().is_none_or(|last| last.2 != energy) {
                let after = after.max(read_at.min(at));
                steps.push((0.5 * (after + at), (at - after) / 12f64.sqrt(), energy));
            }
            read_at = at;
        }
        Self {
            steps,
            resolution,
            has_jumped,
        }
    }

    /// The energy between two times: the steps within it, and the meter's power from its ends to the first and the last.
    pub fn energy(
        &self,
        curve: &Curve<'_>,
        one: &Candidate,
        begin: f64,
        end: f64,
        resolution: f64,
    ) -> Option<Estimate> {
        if self.has_jumped {
            return None;
        }
        // The first value has no known beginning: only a step has a time.
        let inside =
            |step: &&(f64, f64, f64)| step.0 - one.delay >= begin && step.0 - one.delay <= end;
        let mut steps = self.steps.iter().skip(1).filter(inside);
        let first = steps.next()?;
        let last = steps.next_back()?;
        let (from, to) = (first.0 - one.delay, last.0 - one.delay);
        let head = curve.energy(one, begin, from, 0.0, resolution)?;
        let tail = curve.energy(one, to, end, 0.0, resolution)?;
        let counted = last.2 - first.2;
        let power = counted / (to - from).max(1e-9);
        let timing = power * power * (first.1.powi(2) + last.1.powi(2));
        Some(Estimate::new(
            counted + head.value + tail.value,
            head.variance + tail.variance + timing + self.resolution.powi(2) / 6.0,
        ))
    }
}
