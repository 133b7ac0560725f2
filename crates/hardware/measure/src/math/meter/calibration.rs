//! The gain and offset of a device's own sensor, from the readings of a meter that measures the device too.
//!
//! The meter's values are compared with the sensor's over the same times, in blocks of a second or more: errors of the
//! meter's delay change the ends of a block alone. Where the delay is uncertain, the line is averaged over all delays that
//! are likely.

use sweetspot_quantity::{Ratio, Seconds, Watts};

use super::alignment::{Alignment, Candidate, KnownTimes, MAX_DOUBT, candidates, summarise};
use super::fast_power::{FastPower, FastView};
use super::line_fit::{Block, LineFit, fit_line};
use super::samples::{Sample, meter_behaviour, samples};
use crate::math::Span;
use crate::math::energy::Z95;
use sweetspot_device::MeterTrace;

/// The shortest time over which sensor and meter are compared.
const BLOCK: f64 = 1.0;
/// The least number of the meter's values in a block.
const VALUES_IN_BLOCK: f64 = 2.0;
/// The least number of blocks for a fit.
const MIN_BLOCKS: usize = 10;
/// The least change of the sensor's power during the calibration, and as a share of its highest power.
const MIN_CHANGE: (Watts, Ratio) = (Watts::new(10.0), Ratio::new(0.1));
/// The least correlation of meter and sensor.
const MIN_CORRELATION: f64 = 0.8;
/// The largest part of the time that may be without readings of the meter.
const MAX_MISSING: f64 = 0.1;
/// Other devices count if their power changed by this.
const CHANGE_OF_OTHERS: f64 = 3.0;

/// The line that turns the power that a sensor shows into the power that a meter shows, and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CalibrationLine {
    /// The meter's watts for a watt of the sensor.
    pub gain: Ratio,
    /// The standard deviation of the gain, without the meter's accuracy.
    pub gain_deviation: Ratio,
    /// The meter's power where the sensor would show none.
    pub offset: Watts,
    /// The mean power of the sensor during the calibration.
    pub mean: Watts,
    /// The standard deviation of the line at the mean power, without the meter's accuracy.
    pub mean_deviation: Watts,
    /// The largest error of the meter, as a share of its reading.
    pub accuracy: Ratio,
    /// The lowest and highest power of the sensor during the calibration.
    pub range: (Watts, Watts),
}

impl CalibrationLine {
    /// The power at the meter where the sensor shows `power`, and its standard deviation.
    pub fn at(&self, power: Watts) -> (Watts, Watts) {
        let value = power * self.gain + self.offset;
        let away = (power - self.mean) * self.gain_deviation;
        let of_meter = value.get() * self.accuracy.get() / 3f64.sqrt();
        let deviation =
            (self.mean_deviation.get().powi(2) + away.get().powi(2) + of_meter.powi(2)).sqrt();
        (value, Watts::new(deviation))
    }

    /// The standard deviation of the gain, with the meter's accuracy.
    pub fn whole_gain_deviation(&self) -> Ratio {
        let of_meter = self.gain.get() * self.accuracy.get() / 3f64.sqrt();
        Ratio::new(self.gain_deviation.get().hypot(of_meter))
    }

    /// The 95 % confidence interval of the gain.
    pub fn gain_interval95(&self) -> (Ratio, Ratio) {
        let half = self.whole_gain_deviation() * Z95;
        (self.gain - half, self.gain + half)
    }

    /// The 95 % confidence interval of the offset.
    pub fn offset_interval95(&self) -> (Watts, Watts) {
        let half = self.at(Watts::ZERO).1 * Z95;
        (self.offset - half, self.offset + half)
    }

    /// Whether this power is outside the range of the calibration, by more than a hundredth of its width.
    pub fn is_outside(&self, power: Watts) -> bool {
        let margin = (self.range.1 - self.range.0) * 0.01;
        power < self.range.0 - margin || power > self.range.1 + margin
    }
}

/// The result of comparing a sensor with a meter.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibrationFit {
    /// The line.
    pub line: CalibrationLine,
    /// The root mean square of what the line does not explain.
    pub residual: Watts,
    /// The largest mean of what the line does not explain in a third of the range: how much the relation bends.
    pub bend: Watts,
    /// The number of the meter's values.
    pub values: usize,
    /// The meter's delay.
    pub alignment: Option<Alignment>,
    /// Whether the power of other devices changed, which was taken into account.
    pub others_changed: bool,
    /// Times without readings of the meter, and why.
    pub gaps: Vec<String>,
}

/// Why a sensor cannot be calibrated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CalibrationError {
    /// The device did almost the same all the time.
    #[error(
        "the power of {device} was {low:.1} to {high:.1} all the time, and a gain shows only where the power changes: run a program that loads it, after an idle time"
    )]
    NoChange {
        /// The name of the device.
        device: String,
        /// The lowest power.
        low: Watts,
        /// The highest power.
        high: Watts,
    },
    /// The meter has too few values.
    #[error(
        "the meter {meter} and the sensor can be compared over {seconds:.0} s only, and at least {needed:.0} s are needed: run a longer program"
    )]
    TooShort {
        /// The name of the meter.
        meter: String,
        /// The time over which both have readings, in seconds.
        seconds: f64,
        /// The least such time, in seconds.
        needed: f64,
    },
    /// The meter gave no readings for a part of the time.
    #[error("the meter {meter} gave no readings for {missing:.1} of {length:.1}{reason}")]
    MeterStopped {
        /// The name of the meter.
        meter: String,
        /// The time without readings.
        missing: Seconds,
        /// The whole time.
        length: Seconds,
        /// Why, if it is known, with a colon before it.
        reason: String,
    },
    /// The meter does not follow the device.
    #[error(
        "the power that {meter} shows does not follow that of {device} (correlation {correlation:.2}): does it measure this machine, and was the machine busy with something else?"
    )]
    Unrelated {
        /// The name of the meter.
        meter: String,
        /// The name of the device.
        device: String,
        /// The correlation of both.
        correlation: f64,
    },
}

/// The power of a device that is calibrated, and of what else is measured at the same time.
pub struct CalibrationPower<'a> {
    /// The name of the device.
    pub name: &'a str,
    /// The power that its sensor shows.
    pub device: &'a FastPower,
    /// The power of the other devices; `None` without others.
    pub others: Option<&'a FastPower>,
}

/// Fits the gain and offset of a device's sensor against a meter over a time span.
pub fn calibrate(
    trace: &MeterTrace,
    power: &CalibrationPower<'_>,
    span: &Span,
) -> Result<CalibrationFit, CalibrationError> {
    let origin = span.begin;
    let period = meter_behaviour(trace)
        .period
        .unwrap_or(trace.properties.period)
        .get();
    let device = power.device.view(origin);
    let others = power.others.map(|others| others.view(origin));
    let gaps = reject_gaps(trace, period, span)?;
    let length = span.length().get();
    let is_inside = |sample: &Sample| {
        sample.at >= 0.0 && sample.at <= length + trace.properties.max_delay.get()
    };
    let samples: Vec<Sample> = samples(trace, origin)
        .into_iter()
        .filter(is_inside)
        .collect();
    let known = KnownTimes::new(trace, period);
    let found = candidates(&samples, Some(device), &known, length);
    if found.doubt > MAX_DOUBT {
        return Err(CalibrationError::TooShort {
            meter: trace.name.clone(),
            seconds: length,
            needed: known.enough(),
        });
    }
    let all = found.all;
    let size = BLOCK.max(VALUES_IN_BLOCK * spacing(&samples).unwrap_or(period));
    let mut fits: Vec<(f64, LineFit)> = Vec::new();
    let mut most = 0;
    for one in &all {
        let blocks = blocks(&samples, device, others, one, (size, length));
        most = most.max(blocks.len());
        if let Some(fit) = fit_line(&blocks, CHANGE_OF_OTHERS) {
            fits.push((one.weight, fit));
        }
    }
    let likely = fits
        .iter()
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, fit)| fit.clone());
    if most < MIN_BLOCKS {
        return Err(CalibrationError::TooShort {
            meter: trace.name.clone(),
            seconds: most as f64 * size,
            needed: MIN_BLOCKS as f64 * size,
        });
    }
    let (low, high) = likely.as_ref().map_or((0.0, 0.0), |fit| fit.range);
    let least = MIN_CHANGE.0.get().max(MIN_CHANGE.1.get() * high);
    let Some(likely) = likely.filter(|_| high - low >= least) else {
        return Err(CalibrationError::NoChange {
            device: power.name.to_owned(),
            low: Watts::new(low),
            high: Watts::new(high),
        });
    };
    if likely.correlation < MIN_CORRELATION || likely.gain <= 0.0 {
        return Err(CalibrationError::Unrelated {
            meter: trace.name.clone(),
            device: power.name.to_owned(),
            correlation: likely.correlation,
        });
    }
    let (gain, gain_variance) = average(&fits, |fit| (fit.gain, fit.gain_variance));
    let (level, level_variance) = average(&fits, |fit| {
        (
            fit.level + fit.gain * (likely.mean - fit.mean),
            fit.level_variance,
        )
    });
    Ok(CalibrationFit {
        line: CalibrationLine {
            gain: Ratio::new(gain),
            gain_deviation: Ratio::new(gain_variance.sqrt()),
            offset: Watts::new(level - gain * likely.mean),
            mean: Watts::new(likely.mean),
            mean_deviation: Watts::new(level_variance.sqrt()),
            accuracy: trace.properties.accuracy,
            range: (Watts::new(low), Watts::new(high)),
        },
        residual: Watts::new(likely.residual),
        bend: Watts::new(likely.bend),
        values: samples.len(),
        alignment: summarise(&all),
        others_changed: likely.others_changed,
        gaps,
    })
}

/// The usual time between two values of the meter; `None` with fewer than two.
fn spacing(samples: &[Sample]) -> Option<f64> {
    let mut gaps: Vec<f64> = samples
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied()
}

/// Describes the gaps in a meter's readings; an error if they are a large part of the time.
fn reject_gaps(
    trace: &MeterTrace,
    period: f64,
    span: &Span,
) -> Result<Vec<String>, CalibrationError> {
    let within: Vec<_> = trace
        .gaps
        .iter()
        .filter(|gap| gap.from < span.end && gap.to > span.begin)
        .collect();
    let of_gaps: f64 = within
        .iter()
        .map(|gap| (gap.to.min(span.end) - gap.from.max(span.begin)).get())
        .sum();
    // A meter that was not connected again may have no gap at the end.
    let last = trace
        .readings
        .last()
        .map_or(span.begin, |reading| reading.at);
    let silent = (span.end - last).get() - 3.0 * period;
    let missing = of_gaps.max(silent);
    let length = span.length();
    if missing > MAX_MISSING * length.get() {
        let reason = within.first().copied().or(trace.gaps.last());
        return Err(CalibrationError::MeterStopped {
            meter: trace.name.clone(),
            missing: Seconds::new(missing),
            length,
            reason: reason.map_or(String::new(), |gap| format!(": {}", gap.reason)),
        });
    }
    let text = |gap: &&sweetspot_device::MeterGap| {
        format!("no readings for {:.2}: {}", gap.to - gap.from, gap.reason)
    };
    Ok(within.iter().map(text).collect())
}

/// The means of sensor, other devices and meter over blocks of `size` seconds, within the first `length` seconds, if the
/// meter has this delay and averaging time.
fn blocks(
    samples: &[Sample],
    device: FastView<'_>,
    others: Option<FastView<'_>>,
    one: &Candidate,
    (size, length): (f64, f64),
) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut sum, mut count, mut begun) = (Block::default(), 0.0, f64::NEG_INFINITY);
    for sample in samples {
        let window = sample.window.unwrap_or(one.window);
        let end = sample.at - one.delay;
        let begin = end - window;
        let is_covered = begin >= 0.0
            && end <= length
            && device.covers(begin, end)
            && others.is_none_or(|others| others.covers(begin, end));
        // A gap ends a block.
        if !is_covered || begin - begun > size + 2.0 * window {
            (sum, count, begun) = (Block::default(), 0.0, begin);
        }
        if !is_covered {
            continue;
        }
        sum.sensor += device.mean(begin, end);
        sum.others += others.map_or(0.0, |others| others.mean(begin, end));
        sum.meter += sample.power;
        count += 1.0;
        if end - begun >= size {
            blocks.push(Block {
                sensor: sum.sensor / count,
                others: sum.others / count,
                meter: sum.meter / count,
            });
            (sum, count, begun) = (Block::default(), 0.0, end);
        }
    }
    blocks
}

/// The weighted mean of a value over all candidates, and its variance: that of each, and that between them.
fn average(fits: &[(f64, LineFit)], value: impl Fn(&LineFit) -> (f64, f64)) -> (f64, f64) {
    let total: f64 = fits.iter().map(|(weight, _)| weight).sum();
    let mean = fits
        .iter()
        .map(|(weight, fit)| weight * value(fit).0)
        .sum::<f64>()
        / total;
    let variance = fits
        .iter()
        .map(|(weight, fit)| {
            let (own, within) = value(fit);
            weight * (within + (own - mean).powi(2))
        })
        .sum::<f64>()
        / total;
    (mean, variance)
}

#[cfg(test)]
mod tests;
