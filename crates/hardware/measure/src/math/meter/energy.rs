//! The energy that one channel of a meter measured in a time span.

use sweetspot_device::{MeterGap, MeterTrace};
use sweetspot_quantity::{Joules, Seconds};

use super::alignment::{Alignment, Candidates, KnownTimes, MAX_DOUBT, candidates, summarise};
use super::counter::Counter;
use super::curve::{Curve, Estimate, average, overlap};
use super::fast_power::FastPower;
use super::samples::{decimal_step, meter_behaviour, samples};
use crate::math::Span;

/// Without a fast sensor, a measurement is at least this many times as long as the longest averaging time.
const BLIND_WINDOWS: f64 = 3.0;

/// How the energy of a meter was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterMethod {
    /// The sum of the meter's values of power.
    Samples,
    /// The difference of the meter's own energy counter, with values of power at the ends.
    Counter,
}

impl std::fmt::Display for MeterMethod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Samples => "meter samples",
            Self::Counter => "meter counter",
        })
    }
}

/// The energy by the other method, for comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeterCheck {
    /// The method of this energy.
    pub method: MeterMethod,
    /// The energy by this method.
    pub value: Joules,
    /// The 95 % confidence interval of this energy.
    pub interval95: (Joules, Joules),
}

/// The energy that one channel of a meter measured.
#[derive(Clone, Debug, PartialEq)]
pub struct MeterEnergy {
    /// The name of the channel.
    pub name: String,
    /// The model of the meter, or which part of the machine it measures.
    pub model: String,
    /// The best estimate of the energy.
    pub value: Joules,
    /// The 95 % confidence interval, with the meter's accuracy, its delay and its averaging.
    pub interval95: (Joules, Joules),
    /// The method by which the value was computed.
    pub method: MeterMethod,
    /// The energy by the other method, if the meter has a counter too.
    pub check: Option<MeterCheck>,
    /// The meter's delay, where fast sensors showed it.
    pub alignment: Option<Alignment>,
    /// The part of the time span that the readings cover.
    pub covered: Span,
    /// The times without readings within the span.
    pub gaps: Vec<MeterGap>,
    /// Remarks about the reliability of the value.
    pub notes: Vec<String>,
}

/// The reason why a meter's energy is unknown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MeterEnergyError {
    /// The meter has too few readings.
    #[error("the meter {name} has no readings for the {window} that were to be measured{reason}")]
    NoReadings {
        /// The name of the meter.
        name: String,
        /// The length of the time span.
        window: String,
        /// Why, if it is known, with a colon before it.
        reason: String,
    },
    /// The time span is too short for the time over which the meter may average its values.
    #[error(
        "each value of the meter {name} {averages} {window:.0}, and a measurement of {length:.1} is too short for that: measure for {needed:.0} or longer, or use a faster meter{known}"
    )]
    TooShort {
        /// The name of the meter.
        name: String,
        /// Whether the averaging time is known or possible, as a verb.
        averages: &'static str,
        /// The averaging time.
        window: Seconds,
        /// The length of the time span.
        length: Seconds,
        /// The length that is enough.
        needed: Seconds,
        /// What to write if the averaging time is known to the user.
        known: &'static str,
    },
}

/// Computes the energy of a time span from the readings of a meter before, in and after it. `fast` is the power of
/// devices that are part of what the meter measures.
pub fn meter_energy(
    trace: &MeterTrace,
    fast: Option<&FastPower>,
    span: &Span,
) -> Result<MeterEnergy, MeterEnergyError> {
    let origin = span.begin;
    let length = span.length().get();
    let period = meter_behaviour(trace)
        .period
        .unwrap_or(trace.properties.period)
        .get();
    let known = KnownTimes::new(trace, period);
    let curve = Curve {
        samples: samples(trace, origin),
        fast: fast.map(|fast| fast.view(origin)),
        known,
    };
    let found = candidates(&curve.samples, curve.fast, &known, length);
    let gaps: Vec<MeterGap> = trace
        .gaps
        .iter()
        .filter(|gap| gap.from < span.end && gap.to > span.begin)
        .cloned()
        .collect();
    let (begin, end) =
        curve
            .covered(&found.all, length)
            .ok_or_else(|| MeterEnergyError::NoReadings {
                name: trace.name.clone(),
                window: format!("{:.1}", span.length()),
                reason: gaps
                    .first()
                    .or(trace.gaps.last())
                    .map_or(String::new(), |gap| format!(": {}", gap.reason)),
            })?;
    if is_too_short(&known, &found, curve.fast.is_some(), length) {
        return Err(too_short(trace, &known, fast.is_some(), span));
    }
    let all = found.all;
    let seconds = |time: f64| origin + Seconds::new(time);
    let missing: f64 = gaps
        .iter()
        .map(|gap| {
            overlap(
                (gap.from - origin).get(),
                (gap.to - origin).get(),
                begin,
                end,
            )
        })
        .sum();
    let resolution = decimal_step(curve.samples.iter().map(|sample| sample.power))
        .unwrap_or(0.0)
        .min(10.0);
    let of_samples = average(&all, |one| {
        curve.energy(one, begin, end, missing, resolution)
    });
    let counter = Counter::new(trace, origin);
    let mut notes = Vec::new();
    if counter.has_jumped {
        notes.push(format!(
            "the energy counter of {} jumped or was reset: only its power is used",
            trace.name
        ));
    }
    let of_counter = average(&all, |one| {
        counter.energy(&curve, one, begin, end, resolution)
    });
    let accuracy = trace.properties.accuracy.get();
    let offset = trace.properties.accuracy_offset.get() * (end - begin);
    let with_accuracy = |estimate: Estimate| {
        // The largest error is given; all errors up to it are equally likely.
        let gain = (accuracy * estimate.value + offset) / 3f64.sqrt();
        let (low, high) = estimate.interval(gain);
        (Joules::new(low), Joules::new(high))
    };
    let both = [
        (MeterMethod::Samples, of_samples),
        (MeterMethod::Counter, of_counter),
    ];
    let mut known: Vec<(MeterMethod, Estimate)> = both
        .into_iter()
        .filter_map(|(method, one)| Some((method, one?)))
        .collect();
    known.sort_by(|a, b| a.1.variance.total_cmp(&b.1.variance));
    let Some((method, best)) = known.first().copied() else {
        return Err(MeterEnergyError::NoReadings {
            name: trace.name.clone(),
            window: format!("{:.1}", span.length()),
            reason: String::new(),
        });
    };
    let check = known.get(1).map(|(method, other)| MeterCheck {
        method: *method,
        value: Joules::new(other.value),
        interval95: with_accuracy(*other),
    });
    if let Some((_, other)) = known.get(1)
        && (other.value - best.value).abs() > 3.0 * (other.variance + best.variance).sqrt()
    {
        notes.push(format!(
            "the counter and the samples of {} differ by more than both uncertainties",
            trace.name
        ));
    }
    Ok(MeterEnergy {
        name: trace.name.clone(),
        model: trace.model.clone(),
        value: Joules::new(best.value),
        interval95: with_accuracy(best),
        method,
        check,
        alignment: summarise(&all).filter(|_| fast.is_some()),
        covered: Span::new(seconds(begin).max(span.begin), seconds(end).min(span.end)),
        gaps,
        notes,
    })
}

/// Whether a meter may average over a time that is too long for the length of a measurement.
fn is_too_short(known: &KnownTimes, found: &Candidates, has_fast: bool, length: f64) -> bool {
    let longest = known.longest_window();
    match has_fast {
        true => found.doubt > MAX_DOUBT,
        false => known.is_long(longest) && length < BLIND_WINDOWS * longest,
    }
}

/// The error that a measurement is too short for a meter's averaging.
fn too_short(
    trace: &MeterTrace,
    known: &KnownTimes,
    has_fast: bool,
    span: &Span,
) -> MeterEnergyError {
    let longest = known.longest_window();
    let (averages, hint) = match known.window {
        Some(_) => ("is a mean over", ""),
        None => (
            "may be a mean over up to",
            ", or write window = \"TIME\" in meters.toml if you know over which time it averages",
        ),
    };
    let needed = match has_fast {
        true => known.enough(),
        false => BLIND_WINDOWS * longest,
    };
    MeterEnergyError::TooShort {
        name: trace.name.clone(),
        averages,
        window: Seconds::new(longest),
        length: span.length(),
        needed: Seconds::new(needed.ceil()),
        known: hint,
    }
}
