//! Computes mean powers over the averaging time from readings, excluding the time before the last change of a
//! setting.

use sweetspot_quantity::{Seconds, Watts};

use super::cap_on::CapOn;
use super::event::PowerReading;

/// The number of stored samples: enough for 1 s of a driver's sample buffer with uneven spacing.
const STORED_SAMPLES: usize = 256;
/// A single power reading that covers at least this share of the averaging time is used as the mean.
const WHOLE_READING: f64 = 0.9;
/// A mean is computed once samples cover this share of the averaging time; less than 1, because their spacing is
/// uneven.
const REQUIRED_COVERAGE: f64 = 0.98;
/// A time without samples longer than this share of the averaging time is a gap, after which the mean starts again.
const MAX_GAP: f64 = 0.3;
/// Readings that cover less than this share of the averaging time are stored together, so that a long time fits.
const SHORTEST_SAMPLE: f64 = 1.0 / 240.0;
/// Later readings are expected to rise above the highest one of a second by this many standard deviations of the upper
/// readings. For noise of a normal distribution that is the highest of about 1,000 readings (20 s); a busy load is observed
/// for several seconds before its setting is kept, and the highest estimate counts.
const LATER_PEAKS: f64 = 2.5;
/// Times that differ by less than this count as equal, in seconds.
const TIME_TOLERANCE: f64 = 1e-6;

/// The power over the observation time, which is compared with the cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerMean {
    /// The power that must not exceed the cap, in watts: the mean, or the highest reading that is to be expected in the
    /// long run.
    pub power: f64,
    /// The mean power, in watts.
    pub average: f64,
    /// The mean power without the highest sample, in watts, so that a single wrong sample does not change it; the highest
    /// reading if the cap binds every reading.
    pub trimmed: f64,
    /// The end of the time span that the mean covers, in seconds.
    pub to: f64,
}

/// Computes mean powers over the averaging time from power readings that cover any time spans.
#[derive(Clone, Debug)]
pub struct PowerAverager {
    cap_on: CapOn,
    averaging_time: f64,
    /// Readings before this time belong to an earlier setting and are ignored.
    valid_from: f64,
    samples: [Sample; STORED_SAMPLES],
    /// The index of the oldest sample in the ring buffer `samples`.
    first: usize,
    /// The number of samples in the ring buffer.
    count: usize,
    /// The total duration of the stored samples, in seconds.
    covered: f64,
    /// The total energy of the stored samples, in joules.
    energy: f64,
    /// The end of the last reading, in seconds.
    last_to: f64,
}

/// A power reading: its time span in seconds and its mean power in watts.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    from: f64,
    to: f64,
    power: f64,
}

impl PowerAverager {
    pub fn new(cap_on: CapOn) -> Self {
        Self {
            cap_on,
            averaging_time: cap_on.observation_time().get(),
            valid_from: f64::NEG_INFINITY,
            samples: [Sample::default(); STORED_SAMPLES],
            first: 0,
            count: 0,
            covered: 0.0,
            energy: 0.0,
            last_to: f64::NEG_INFINITY,
        }
    }

    /// Ignores all power readings from before this time, because they belong to an earlier setting.
    pub fn ignore_before(&mut self, time: f64) {
        self.valid_from = time;
        while self.count > 0 && self.samples[self.first].from < time - TIME_TOLERANCE {
            self.drop_first();
        }
    }

    /// The mean power of the stored samples, and the time that they cover; `None` without samples.
    pub fn partial_mean(&self) -> Option<(Watts, Seconds)> {
        (self.covered > TIME_TOLERANCE).then(|| {
            let mean = self.energy / self.covered;
            (Watts::new(mean), Seconds::new(self.covered))
        })
    }

    /// Adds a reading and returns a mean power once the readings cover the averaging time. Readings that are out of
    /// order, have no duration or are not finite are ignored.
    pub fn push(&mut self, reading: &PowerReading) -> Option<PowerMean> {
        let (from, to) = (reading.from.get(), reading.to.get());
        let power = reading.power.get();
        if !(power.is_finite() && from.is_finite() && to > from && to > self.last_to) {
            return None;
        }
        // The power within a gap is unknown.
        if from - self.last_to > MAX_GAP * self.averaging_time {
            while self.count > 0 {
                self.drop_first();
            }
        }
        self.last_to = to;
        if to - from >= WHOLE_READING * self.averaging_time {
            let is_valid = from >= self.valid_from - TIME_TOLERANCE;
            return is_valid.then_some(PowerMean {
                power,
                average: power,
                trimmed: power,
                to,
            });
        }
        if from < self.valid_from - TIME_TOLERANCE {
            return None;
        }
        self.store(Sample { from, to, power });
        self.covered += to - from;
        self.energy += power * (to - from);
        // The oldest sample is dropped once the others cover the averaging time without it.
        while self.count > 1 {
            let second = self.samples[(self.first + 1) % STORED_SAMPLES];
            if to - second.from < self.averaging_time - TIME_TOLERANCE {
                break;
            }
            self.drop_first();
        }
        let is_whole =
            to - self.samples[self.first].from >= REQUIRED_COVERAGE * self.averaging_time;
        is_whole.then(|| self.mean(to))
    }

    /// Stores a sample behind the others, or together with the last one if both are short and adjacent.
    fn store(&mut self, sample: Sample) {
        if let Some(last) = self.count.checked_sub(1) {
            let last = &mut self.samples[(self.first + last) % STORED_SAMPLES];
            let is_adjacent = (sample.from - last.to).abs() < TIME_TOLERANCE;
            let is_short = sample.to - last.from <= SHORTEST_SAMPLE * self.averaging_time;
            if is_adjacent && is_short && matches!(self.cap_on, CapOn::Mean(_)) {
                let energy =
                    last.power * (last.to - last.from) + sample.power * (sample.to - sample.from);
                *last = Sample {
                    from: last.from,
                    to: sample.to,
                    power: energy / (sample.to - last.from),
                };
                return;
            }
        }
        if self.count == STORED_SAMPLES {
            self.drop_first();
        }
        let next = (self.first + self.count) % STORED_SAMPLES;
        self.samples[next] = sample;
        self.count += 1;
    }

    /// The stored samples, the oldest first.
    fn stored(&self) -> impl Iterator<Item = Sample> {
        (0..self.count).map(|offset| self.samples[(self.first + offset) % STORED_SAMPLES])
    }

    /// The highest stored reading; `None` without readings.
    pub fn highest_reading(&self) -> Option<Watts> {
        let powers = self.stored().map(|sample| Watts::new(sample.power));
        powers.reduce(Watts::max)
    }

    /// The standard deviation in watts of the readings in the upper half of what is between the mean and the highest one.
    /// A load with gaps between its batches has a low mean and a top that it does not exceed: only the spread at the top
    /// says how much higher later readings may be.
    fn upper_spread(&self, mean: f64, highest: f64) -> f64 {
        let middle = 0.5 * (mean + highest);
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for sample in self.stored().filter(|sample| sample.power >= middle) {
            let above = sample.power - middle;
            count += 1.0;
            sum += above;
            squares += above * above;
        }
        let average: f64 = sum / f64::max(count, 1.0);
        (squares / f64::max(count, 1.0) - average * average)
            .max(0.0)
            .sqrt()
    }

    /// The power of the stored samples, which end at `to`.
    fn mean(&self, to: f64) -> PowerMean {
        let samples = self.stored();
        let highest = samples.fold(self.samples[self.first], |highest, sample| {
            if sample.power > highest.power {
                sample
            } else {
                highest
            }
        });
        let mean = self.energy / self.covered;
        if self.cap_on == CapOn::Reading {
            return PowerMean {
                power: highest.power + LATER_PEAKS * self.upper_spread(mean, highest.power),
                average: mean,
                trimmed: highest.power,
                to,
            };
        }
        let others = self.covered - (highest.to - highest.from);
        let trimmed = match others > TIME_TOLERANCE {
            true => (self.energy - highest.power * (highest.to - highest.from)) / others,
            false => mean,
        };
        PowerMean {
            power: mean,
            average: mean,
            trimmed,
            to,
        }
    }

    /// Removes the oldest sample.
    fn drop_first(&mut self) {
        let sample = self.samples[self.first];
        self.covered -= sample.to - sample.from;
        self.energy -= sample.power * (sample.to - sample.from);
        self.first = (self.first + 1) % STORED_SAMPLES;
        self.count -= 1;
        if self.count == 0 {
            (self.covered, self.energy) = (0.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::event::reading;

    #[test]
    fn samples_give_a_mean_once_they_cover_the_averaging_time() {
        let mut averager = PowerAverager::new(CapOn::default());
        let mut means = Vec::new();
        for index in 0..100 {
            let from = f64::from(index) * 0.02;
            let power = if index < 50 { 100.0 } else { 200.0 };
            means.extend(averager.push(&reading(from, from + 0.02, power)));
        }
        let first = means.first().expect("a second was covered");
        assert!(first.to >= 0.9 && (first.power - 100.0).abs() < 1e-9);
        let last = means.last().expect("two seconds were covered");
        assert!((last.power - 200.0).abs() < 1e-6, "{last:?}");
    }

    #[test]
    fn a_mean_of_a_minute_is_that_of_all_its_readings() {
        let mut averager = PowerAverager::new(CapOn::Mean(Seconds::new(60.0)));
        let mut means = Vec::new();
        for index in 0..4000 {
            let from = f64::from(index) * 0.02;
            let power = if index < 1000 { 100.0 } else { 200.0 };
            means.extend(averager.push(&reading(from, from + 0.02, power)));
        }
        let first = means.first().expect("a minute was covered");
        assert!(first.to > 58.7 && first.to < 60.1, "{first:?}");
        // One minute ends at 80 s: it contains nothing of the first 20 s.
        let last = means.last().expect("more than a minute was covered");
        assert!((last.power - 200.0).abs() < 1.0, "{last:?}");
    }

    #[test]
    fn a_cap_on_readings_is_compared_with_the_peaks_to_come() {
        let mut averager = PowerAverager::new(CapOn::Reading);
        let mut last = None;
        for index in 0..60 {
            let from = f64::from(index) * 0.02;
            let power = if index % 10 == 0 { 140.0 } else { 100.0 };
            last = averager.push(&reading(from, from + 0.02, power)).or(last);
        }
        let last = last.expect("a second was covered");
        assert_eq!(last.trimmed, 140.0);
        assert!((last.average - 104.0).abs() < 1.0, "{last:?}");
        // The spikes are all alike, so that later ones are not expected to be higher.
        assert!((last.power - 140.0).abs() < 1e-9, "{last:?}");
        assert_eq!(averager.highest_reading(), Some(Watts::new(140.0)));
    }

    /// A plateau with noise, as of a load that is always busy: later readings rise further, by the spread at its top.
    #[test]
    fn noisy_readings_are_expected_to_rise_further() {
        let mut averager = PowerAverager::new(CapOn::Reading);
        let mut last = None;
        for index in 0..60 {
            let from = f64::from(index) * 0.02;
            let power = 200.0 + f64::from(index % 11) - 5.0;
            last = averager.push(&reading(from, from + 0.02, power)).or(last);
        }
        let last = last.expect("a second was covered");
        assert_eq!(last.trimmed, 205.0);
        assert!((206.0..210.0).contains(&last.power), "{last:?}");
    }

    #[test]
    fn after_a_gap_a_mean_waits_for_the_whole_averaging_time() {
        let mut averager = PowerAverager::new(CapOn::default());
        let mut push = |from: f64, power| averager.push(&reading(from, from + 0.02, power));
        let before = (0..100).filter_map(|index| push(f64::from(index) * 0.02, 150.0));
        assert!(before.last().is_some());
        let after: Vec<PowerMean> = (0..60)
            .filter_map(|index| push(30.0 + f64::from(index) * 0.02, 240.0 - f64::from(index)))
            .collect();
        let first = after.first().expect("a second was covered again");
        assert!(first.to >= 30.97, "{first:?}");
    }

    #[test]
    fn readings_with_time_before_a_change_are_ignored() {
        let mut averager = PowerAverager::new(CapOn::default());
        averager.ignore_before(10.0);
        assert_eq!(averager.push(&reading(9.5, 10.5, 300.0)), None);
        assert!(averager.push(&reading(10.0, 11.0, 120.0)).is_some());
    }

    #[test]
    fn one_wrong_sample_does_not_move_the_trimmed_mean() {
        let mut averager = PowerAverager::new(CapOn::default());
        let mut last = None;
        for index in 0..60 {
            let from = f64::from(index) * 0.02;
            let power = if index == 40 { 5000.0 } else { 100.0 };
            last = averager.push(&reading(from, from + 0.02, power)).or(last);
        }
        let last = last.expect("a second was covered");
        assert!(last.power > 190.0);
        assert!((last.trimmed - 100.0).abs() < 1e-6, "{last:?}");
    }
}
