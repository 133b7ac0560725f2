//! The delay and the averaging time of a meter, from the power of fast sensors.

use sweetspot_device::MeterTrace;
use sweetspot_quantity::Seconds;

use super::fast_power::FastView;
use super::samples::Sample;

/// The number of delays that are compared.
const DELAYS: usize = 81;
/// The averaging times that are compared if the meter's is unknown, in update periods.
const WINDOWS: [f64; 9] = [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.5, 2.0];
/// Each longer averaging time that is compared is this many times the one before.
const WINDOW_RATIO: f64 = 1.25;
/// The number of averaging times between two neighbours that are compared where one explains the values best.
const REFINED_WINDOWS: i32 = 8;
/// Errors of neighbouring values are not independent: at most this share of them counts in a comparison.
const INDEPENDENT_SHARE: f64 = 0.5;
/// The least number of values for a comparison.
const MIN_SAMPLES: usize = 6;
/// A long averaging time is distinguished from a longer one only in a measurement, and in a comparison, of this many times its
/// length.
const EDGE: f64 = 1.5;
/// The largest probability of averaging times that are longer than a measurement can tell.
pub(super) const MAX_DOUBT: f64 = 0.02;
/// The shortest run in which the averaging time of a meter can be found at all, in longest averaging times.
const SHORTEST: f64 = 0.25;
/// The least correlation at which a fit rules out averaging times that are too long for a measurement.
const MIN_CORRELATION: f64 = 0.97;
/// The range of the fast power's share in the meter's: a supply loses some of it, and one of several supplies gives
/// only a part.
const GAINS: (f64, f64) = (0.0, 2.0);

/// What is known about a meter's times before its values are compared, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownTimes {
    pub period: f64,
    /// The averaging time, if it is known.
    pub window: Option<f64>,
    /// The longest averaging time, if it is unknown.
    pub max_window: f64,
    pub max_delay: f64,
}

impl KnownTimes {
    /// What is known about a meter whose values were seen to change with this period.
    pub fn new(trace: &MeterTrace, period: f64) -> Self {
        let known = &trace.properties;
        // Power from the steps of a counter is a mean from step to step.
        let is_counter = trace.readings.iter().all(|one| one.power.is_none());
        Self {
            period,
            window: match is_counter {
                true => Some(period),
                false => known.window.map(Seconds::get),
            },
            max_window: known.max_window.get(),
            max_delay: known.max_delay.get(),
        }
    }

    /// The longest averaging time that the meter may have.
    pub fn longest_window(&self) -> f64 {
        let usual = WINDOWS[WINDOWS.len() - 1] * self.period;
        self.window.unwrap_or(usual.max(self.max_window))
    }

    /// The length of a measurement that is enough for any averaging time, in seconds.
    pub fn enough(&self) -> f64 {
        let longest = self.longest_window();
        (longest + self.max_delay).max(EDGE * longest).ceil()
    }

    /// Whether an averaging time is longer than that of a meter which averages between its updates.
    pub fn is_long(&self, window: f64) -> bool {
        window > 1.01 * WINDOWS[WINDOWS.len() - 1] * self.period
    }

    /// The averaging times that are compared first.
    fn windows(&self) -> Vec<f64> {
        if let Some(window) = self.window {
            return vec![window];
        }
        let longest = self.longest_window();
        let mut windows: Vec<f64> = WINDOWS.iter().map(|part| part * self.period).collect();
        while let Some(next) = windows.last().map(|last| last * WINDOW_RATIO)
            && next < longest
        {
            windows.push(next);
        }
        if self.is_long(longest) {
            windows.push(longest);
        }
        windows
    }
}

/// How a meter's values relate to the power of the fast sensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alignment {
    /// The time from the end of the averaging until a value appears.
    pub delay: Seconds,
    /// The standard deviation of the delay.
    pub delay_deviation: Seconds,
    /// The averaging time.
    pub window: Seconds,
    /// The correlation of the meter's values with the fast power at this delay.
    pub correlation: f64,
}

/// One possible delay and averaging time, and how well it explains the values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub delay: f64,
    pub window: f64,
    /// The share of the fast power in the meter's.
    pub gain: f64,
    /// The variance of the gain.
    pub gain_variance: f64,
    /// The probability of this candidate.
    pub weight: f64,
    correlation: f64,
    /// The negative logarithm of how much better the fast power explains the values than nothing does.
    cost: f64,
    /// Whether there were enough values to compare.
    is_tested: bool,
}

/// The possible delays and averaging times of a meter.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    /// The likely ones that could be compared; all of them if none could.
    pub all: Vec<Candidate>,
    /// The probability of long averaging times that could not be compared, or hardly.
    pub doubt: f64,
}

/// Rates all possible delays and averaging times for a measurement of `length` seconds. Without a fast sensor all are
/// equally likely, and no power is shared.
pub(super) fn candidates(
    samples: &[Sample],
    fast: Option<FastView<'_>>,
    known: &KnownTimes,
    length: f64,
) -> Candidates {
    let mut rated: Vec<Candidate> = Vec::new();
    let may_be_long = known.is_long(known.longest_window());
    let rate = |rated: &mut Vec<Candidate>, window: f64| {
        for index in 0..DELAYS {
            let delay = known.max_delay * index as f64 / (DELAYS - 1) as f64;
            rated.push(fit(samples, fast, delay, window, may_be_long));
        }
    };
    for window in known.windows() {
        rate(&mut rated, window);
    }
    // The steps of the long averaging times are too coarse for the one that fits.
    let best = rated.iter().min_by(|a, b| a.cost.total_cmp(&b.cost));
    if let Some(best) = best.map(|best| best.window)
        && known.window.is_none()
        && known.is_long(best * WINDOW_RATIO)
        && fast.is_some()
    {
        for step in 1 - REFINED_WINDOWS..REFINED_WINDOWS {
            let window = best * WINDOW_RATIO.powf(f64::from(step) / f64::from(REFINED_WINDOWS));
            if step != 0 && window <= known.longest_window() {
                rate(&mut rated, window);
            }
        }
    }
    weigh(rated, known, length)
}

/// Gives each candidate its probability.
fn weigh(mut rated: Vec<Candidate>, known: &KnownTimes, length: f64) -> Candidates {
    let least = rated
        .iter()
        .map(|one| one.cost)
        .fold(f64::INFINITY, f64::min);
    let total: f64 = rated.iter().map(|one| (least - one.cost).exp()).sum();
    for one in &mut rated {
        one.weight = (least - one.cost).exp() / total;
    }
    let tested = rated.iter().filter(|one| one.is_tested);
    let longest_tested = tested.map(|one| one.window).fold(0.0, f64::max);
    let is_complete = longest_tested >= 0.999 * known.longest_window();
    let is_doubtful = |one: &Candidate| {
        let reach = one.window * EDGE;
        let is_at_edge = reach > length || !is_complete && reach > longest_tested;
        known.is_long(one.window) && (!one.is_tested || is_at_edge)
    };
    let doubt = rated.iter().filter(|one| is_doubtful(one));
    let doubt: f64 = doubt.map(|one| one.weight).sum();
    // A run that is too short for the longest averaging time tells the times only if one of them fits well.
    let best = rated.iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
    let fits_well = best.is_some_and(|best| best.correlation >= MIN_CORRELATION);
    let longest = known.longest_window();
    let is_unclear = length < SHORTEST * longest || length < EDGE * longest && !fits_well;
    let doubt = match known.is_long(longest) && is_unclear {
        true => 1.0,
        false => doubt,
    };
    let has_tested = rated.iter().any(|one| one.is_tested);
    rated.retain(|one| one.weight > 1e-6 && (one.is_tested || !has_tested));
    Candidates { all: rated, doubt }
}

/// The times of a value, the fast power over them and the value, if the fast power is known over them.
fn pairs<'a>(
    samples: &'a [Sample],
    fast: FastView<'a>,
    delay: f64,
    window: f64,
) -> impl Iterator<Item = (f64, f64)> + 'a {
    samples.iter().filter_map(move |sample| {
        let end = sample.at - delay;
        let begin = end - sample.window.unwrap_or(window);
        fast.covers(begin, end)
            .then(|| (fast.mean(begin, end), sample.power))
    })
}

/// The share of errors that counts. Errors that follow each other are those of a wrong averaging time or of other devices:
/// they count as few values (the effective number of values of a first-order autoregressive process). `squares` is the
/// sum of their squares.
fn independent_share(errors: impl Iterator<Item = f64>, squares: f64) -> f64 {
    let (mut last, mut products) = (0.0, 0.0);
    for error in errors {
        products += last * error;
        last = error;
    }
    let similarity = (products / squares).clamp(0.0, 0.99);
    ((1.0 - similarity) / (1.0 + similarity)).min(INDEPENDENT_SHARE)
}

/// Fits the meter's values by the fast power at one delay and averaging time.
fn fit(
    samples: &[Sample],
    fast: Option<FastView<'_>>,
    delay: f64,
    window: f64,
    may_be_long: bool,
) -> Candidate {
    let mut candidate = Candidate {
        delay,
        window,
        gain: 0.0,
        gain_variance: 0.0,
        weight: 1.0,
        correlation: 0.0,
        cost: 0.0,
        is_tested: false,
    };
    let Some(fast) = fast else {
        return candidate;
    };
    let mut count = 0.0;
    let (mut x1, mut y1, mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (x, y) in pairs(samples, fast, delay, window) {
        count += 1.0;
        x1 += x;
        y1 += y;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    if count < MIN_SAMPLES as f64 {
        return candidate;
    }
    candidate.is_tested = true;
    let (sxx, syy, sxy) = (
        xx - x1 * x1 / count,
        yy - y1 * y1 / count,
        xy - x1 * y1 / count,
    );
    // Numbers that differ by rounding alone do not tell a delay.
    if sxx <= 1e-9 * xx || syy <= 1e-9 * yy {
        return candidate;
    }
    let gain = (sxy / sxx).clamp(GAINS.0, GAINS.1);
    let rest = (syy - 2.0 * gain * sxy + gain * gain * sxx).max(1e-9 * yy);
    let share = match may_be_long {
        true => {
            let mean = (x1 / count, y1 / count);
            let errors =
                pairs(samples, fast, delay, window).map(|(x, y)| y - mean.1 - gain * (x - mean.0));
            independent_share(errors, rest)
        }
        false => INDEPENDENT_SHARE,
    };
    let independent = (share * count).max(1.0);
    candidate.gain = gain;
    candidate.gain_variance = rest / independent / sxx;
    candidate.correlation = sxy / (sxx * syy).sqrt();
    // With long averaging times the numbers of values differ much: each is compared with no relation at all.
    let scale = if may_be_long { syy } else { count };
    candidate.cost = 0.5 * independent * (rest / scale).ln();
    candidate
}

/// Summarises the candidates; `None` if nothing was learnt from a fast sensor.
pub(super) fn summarise(candidates: &[Candidate]) -> Option<Alignment> {
    let mean = |value: fn(&Candidate) -> f64| {
        candidates
            .iter()
            .map(|one| one.weight * value(one))
            .sum::<f64>()
    };
    let best = candidates
        .iter()
        .max_by(|a, b| a.weight.total_cmp(&b.weight))?;
    if best.correlation <= 0.0 {
        return None;
    }
    let delay = mean(|one| one.delay);
    let square = candidates
        .iter()
        .map(|one| one.weight * (one.delay - delay).powi(2))
        .sum::<f64>();
    Some(Alignment {
        delay: Seconds::new(delay),
        delay_deviation: Seconds::new(square.sqrt()),
        window: Seconds::new(mean(|one| one.window)),
        correlation: best.correlation,
    })
}
