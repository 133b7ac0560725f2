//! The values of a meter, without the repetitions that polling causes, and how the meter behaves.

use sweetspot_device::{MeterReading, MeterTrace, Moment};
use sweetspot_quantity::{Joules, Seconds, Watts};

use crate::math::{Span, UpdateSchedule, update_period};

/// The smallest and largest step of a meter's values that is recognised, as powers of ten.
const STEPS: std::ops::RangeInclusive<i32> = -6..=7;

/// One update of a meter's power, with times in seconds after an origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sample {
    /// When the value appeared.
    pub at: f64,
    /// The standard deviation of that time.
    pub blur: f64,
    /// The power in watts.
    pub power: f64,
    /// The averaging time, where it is known from the values themselves.
    pub window: Option<f64>,
}

/// How a meter was seen to behave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterBehaviour {
    /// The time between two updates; `None` if its value changed too rarely.
    pub period: Option<Seconds>,
    /// The smallest step of its power; `None` if it shows none.
    pub resolution: Option<Watts>,
    /// The smallest step of its energy counter; `None` if it has none.
    pub energy_resolution: Option<Joules>,
}

/// Observes the update period and the resolution of a meter.
pub fn meter_behaviour(trace: &MeterTrace) -> MeterBehaviour {
    let period = update_period(&change_spans(trace));
    let powers = trace.readings.iter().filter_map(|reading| reading.power);
    let energies = trace.readings.iter().filter_map(|reading| reading.energy);
    MeterBehaviour {
        period,
        resolution: decimal_step(powers.map(Watts::get)).map(Watts::new),
        energy_resolution: decimal_step(energies.map(|energy| energy.get() / 3600.0))
            .map(|step| Joules::new(step * 3600.0)),
    }
}

/// The largest power of ten of which all values are multiples; `None` without values.
pub(super) fn decimal_step(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    if values.iter().all(|value| *value == 0.0) {
        return None;
    }
    let is_step = |step: f64| {
        values.iter().all(|value| {
            let count = value / step;
            (count - count.round()).abs() <= (1e-6 * count.abs()).max(1e-9)
        })
    };
    STEPS
        .rev()
        .map(|power| 10f64.powi(power))
        .find(|step| is_step(*step))
}

/// The readings at which the meter showed something new.
fn changes(readings: &[MeterReading]) -> Vec<&MeterReading> {
    let mut shown: Option<&MeterReading> = None;
    let mut changes = Vec::new();
    for reading in readings {
        let is_new = shown
            .is_none_or(|shown| (shown.power, shown.energy) != (reading.power, reading.energy));
        if is_new {
            changes.push(reading);
        }
        shown = Some(reading);
    }
    changes
}

/// The time span in which each change of a meter's values was seen.
fn change_spans(trace: &MeterTrace) -> Vec<Span> {
    let changes = changes(&trace.readings).into_iter().skip(1);
    changes
        .map(|reading| Span::new(reading.after, reading.at))
        .collect()
}

/// The updates of a meter's power. A value that stays is an update in each period, because a steady load shows no other.
pub(super) fn samples(trace: &MeterTrace, origin: Moment) -> Vec<Sample> {
    let has_power = trace.readings.iter().any(|reading| reading.power.is_some());
    if !has_power {
        return from_counter(trace, origin);
    }
    let period = meter_behaviour(trace)
        .period
        .unwrap_or(trace.properties.period)
        .get();
    // Readings that come once in an update need no search for repetitions.
    let in_step = trace
        .readings
        .windows(2)
        .filter(|pair| (pair[1].at - pair[0].at).get() < 0.6 * period)
        .count()
        * 10
        < trace.readings.len();
    // Updates are regular: a schedule tells their times better than polls do.
    let schedule = match in_step {
        true => None,
        false => UpdateSchedule::fit(&change_spans(trace), Seconds::new(period)),
    };
    let mut samples: Vec<Sample> = Vec::new();
    let mut shown = None;
    for reading in &trace.readings {
        let Some(power) = reading.power.map(Watts::get) else {
            shown = None;
            continue;
        };
        let (at, blur) = time_of_update(reading, schedule.as_ref(), origin);
        let since = samples
            .last()
            .map_or(f64::INFINITY, |last: &Sample| at - last.at);
        if in_step || shown != Some(power) || since >= 0.98 * period {
            samples.push(Sample {
                at,
                blur: blur.min(period),
                power,
                window: None,
            });
        }
        shown = Some(power);
    }
    samples
}

/// When the value of a reading appeared, in seconds after the origin, and the standard deviation of that time.
fn time_of_update(
    reading: &MeterReading,
    schedule: Option<&UpdateSchedule>,
    origin: Moment,
) -> (f64, f64) {
    let seen = Span::new(reading.after, reading.at);
    let scheduled = schedule.and_then(|schedule| {
        let next = schedule.next_after(seen.begin);
        (next <= seen.end).then(|| (next, schedule.uncertainty(next).get()))
    });
    let (at, blur) =
        scheduled.unwrap_or_else(|| (seen.middle(), seen.length().get() / 12f64.sqrt()));
    ((at - origin).get(), blur.max(0.0))
}

/// Power from the steps of an energy counter, for a meter that shows no power.
fn from_counter(trace: &MeterTrace, origin: Moment) -> Vec<Sample> {
    let changes: Vec<(f64, f64, f64)> = changes(&trace.readings)
        .into_iter()
        .filter_map(|reading| {
            let at = 0.5 * ((reading.at - origin).get() + (reading.after - origin).get());
            let blur = (reading.at - reading.after).get() / 12f64.sqrt();
            Some((at, blur, reading.energy?.get()))
        })
        .collect();
    let steps = changes.windows(2).filter_map(|pair| {
        let (span, energy) = (pair[1].0 - pair[0].0, pair[1].2 - pair[0].2);
        (span > 0.0 && energy >= 0.0).then_some(Sample {
            at: pair[1].0,
            blur: pair[1].1,
            power: energy / span,
            window: Some(span),
        })
    });
    steps.collect()
}
