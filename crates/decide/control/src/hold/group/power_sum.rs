//! Adds up the power readings of several GPUs, which are taken at different times and over different spans.

use std::collections::VecDeque;

use sweetspot_quantity::Watts;

use crate::hold::event::PowerReading;

/// Readings of one GPU that are further apart than this leave a gap, in seconds; further apart if each covers more time.
const MAX_READING_DISTANCE: f64 = 0.3;
/// The longest distance between two readings, relative to the time that a reading covers.
const MAX_DISTANCE_IN_SPANS: f64 = 1.5;
/// Readings that cover at least this share of a sum's time are interpolated; shorter ones are averaged.
const INTERPOLATED_SHARE: f64 = 0.5;
/// A GPU gives the times of the sums if its readings are this many times as long as those of the one before.
const LONGER: f64 = 1.5;
/// The number of readings of each GPU that are stored at most, while another GPU gives none.
const MAX_STORED: usize = 4096;
/// Times that differ by less than this count as equal, in seconds.
const TIME_TOLERANCE: f64 = 1e-6;

/// The sum of the power of several GPUs.
///
/// The sums have the times of one GPU's readings, those of the GPU whose readings cover the longest time. What each of
/// the others drew in that time follows from its own readings. While one GPU gives no readings there is no sum, because
/// it would be too low.
#[derive(Clone, Debug)]
pub struct PowerSum {
    gpus: Vec<VecDeque<PowerReading>>,
    /// The GPU whose readings give the times of the sums.
    base: usize,
    /// The end of the last sum or of the last reading of the base that was left out, in seconds.
    done_to: f64,
}

/// What is known about a GPU's mean power in a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MeanPower {
    Known(f64),
    /// A later reading is needed.
    NotYet,
    /// Readings are missing.
    Gap,
}

impl PowerSum {
    /// Creates the sum of this many GPUs.
    pub fn new(gpus: usize) -> Self {
        Self {
            gpus: vec![VecDeque::new(); gpus],
            base: 0,
            done_to: f64::NEG_INFINITY,
        }
    }

    /// Adds a reading of the GPU with this index, and returns the sums that are known with it, in order of time. Readings
    /// out of order, without a duration or with a power that is not finite are ignored.
    pub fn push(&mut self, gpu: usize, reading: PowerReading) -> Vec<PowerReading> {
        if self.gpus.len() == 1 {
            return vec![reading];
        }
        let (from, to) = (reading.from.get(), reading.to.get());
        let Some(own) = self.gpus.get_mut(gpu) else {
            return Vec::new();
        };
        let is_later = own.back().is_none_or(|last| to > last.to.get());
        if !(reading.power.is_finite() && from.is_finite() && to > from && is_later) {
            return Vec::new();
        }
        own.push_back(reading);
        if own.len() > MAX_STORED {
            own.pop_front();
        }
        self.choose_base();
        self.take_sums()
    }

    /// Chooses the GPU whose readings cover the longest time.
    fn choose_base(&mut self) {
        let span = |gpu: &VecDeque<PowerReading>| gpu.back().map_or(0.0, length);
        for (index, gpu) in self.gpus.iter().enumerate() {
            if span(gpu) > LONGER * span(&self.gpus[self.base]) {
                self.base = index;
            }
        }
    }

    /// The sums that are known now and have not been returned yet.
    fn take_sums(&mut self) -> Vec<PowerReading> {
        let mut sums = Vec::new();
        while let Some(reading) = self.next_of_base() {
            let others = (0..self.gpus.len()).filter(|gpu| *gpu != self.base);
            let parts: Vec<MeanPower> = others
                .map(|gpu| mean_power(&self.gpus[gpu], &reading))
                .collect();
            if parts.contains(&MeanPower::NotYet) {
                break;
            }
            self.done_to = reading.to.get();
            let sum: Option<f64> = parts
                .iter()
                .map(|part| match part {
                    MeanPower::Known(power) => Some(*power),
                    _ => None,
                })
                .sum();
            if let Some(sum) = sum {
                sums.push(PowerReading {
                    power: reading.power + Watts::new(sum),
                    ..reading
                });
            }
        }
        self.forget();
        sums
    }

    /// The next reading of the base that is not part of a sum yet.
    fn next_of_base(&self) -> Option<PowerReading> {
        let readings = self.gpus[self.base].iter();
        let mut new = readings.filter(|one| one.to.get() > self.done_to + TIME_TOLERANCE);
        new.next().copied()
    }

    /// Forgets readings that no later sum needs.
    fn forget(&mut self) {
        let base = self.base;
        let Some(next) = self.next_of_base().map(|next| next.from.get()) else {
            let done = self.done_to;
            self.gpus[base].retain(|one| one.to.get() >= done);
            return;
        };
        for (index, gpu) in self.gpus.iter_mut().enumerate() {
            // The reading before a span is where the interpolation begins, or the first reading of the span.
            while gpu.len() > 2 && index != base && gpu[1].to.get() < next {
                gpu.pop_front();
            }
            while gpu.len() > 2 && index == base && gpu[1].to.get() <= self.done_to {
                gpu.pop_front();
            }
        }
    }
}

/// The time that a reading covers, in seconds.
fn length(reading: &PowerReading) -> f64 {
    (reading.to - reading.from).get()
}

/// The mean power of a GPU in the time that another GPU's reading covers.
fn mean_power(readings: &VecDeque<PowerReading>, over: &PowerReading) -> MeanPower {
    let (from, to) = (over.from.get(), over.to.get());
    let Some(last) = readings.back() else {
        return MeanPower::NotYet;
    };
    if last.to.get() < to - TIME_TOLERANCE {
        return MeanPower::NotYet;
    }
    match length(last) >= INTERPOLATED_SHARE * (to - from) {
        true => interpolate(readings, over),
        false => average(readings, from, to),
    }
}

/// Whether the readings before and after leave a gap between their ends.
fn is_gap(before: &PowerReading, after: &PowerReading) -> bool {
    let most = (MAX_DISTANCE_IN_SPANS * length(after)).max(MAX_READING_DISTANCE);
    (after.to - before.to).get() > most + TIME_TOLERANCE
}

/// The mean power in a span, between the readings that end before and after it. That also holds for a sensor whose
/// readings overlap, because each is the mean over the same length of time.
fn interpolate(readings: &VecDeque<PowerReading>, over: &PowerReading) -> MeanPower {
    let to = over.to.get();
    let next = readings.partition_point(|one| one.to.get() < to - TIME_TOLERANCE);
    let Some(after) = readings.get(next) else {
        return MeanPower::NotYet;
    };
    let is_same_end = (after.to.get() - to).abs() <= TIME_TOLERANCE;
    let before = next.checked_sub(1).map(|index| &readings[index]);
    match before {
        Some(before) if !is_gap(before, after) => {
            let share = (to - before.to.get()) / (after.to - before.to).get();
            let power = before.power + (after.power - before.power) * share;
            MeanPower::Known(power.get())
        }
        _ if is_same_end => MeanPower::Known(after.power.get()),
        _ => MeanPower::Gap,
    }
}

/// The mean power in a span that covers several readings. A reading stands for the time since the one before.
fn average(readings: &VecDeque<PowerReading>, from: f64, to: f64) -> MeanPower {
    let (mut energy, mut covered) = (0.0, 0.0);
    let mut before: Option<&PowerReading> = None;
    for reading in readings {
        let begin = match before {
            Some(before) if !is_gap(before, reading) => before.to,
            _ => reading.from,
        };
        before = Some(reading);
        let overlap = reading.to.get().min(to) - begin.get().max(from);
        if overlap > 0.0 {
            energy += reading.power.get() * overlap;
            covered += overlap;
        }
    }
    match covered >= (to - from) - TIME_TOLERANCE {
        true => MeanPower::Known(energy / (to - from)),
        false => MeanPower::Gap,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hold::event::reading;

    #[test]
    fn one_gpu_is_its_own_sum() {
        let mut sum = PowerSum::new(1);
        let one = reading(0.0, 0.02, 100.0);
        assert_eq!(sum.push(0, one), [one]);
    }

    #[test]
    fn readings_at_other_times_are_interpolated() {
        let mut sum = PowerSum::new(2);
        assert_eq!(sum.push(0, reading(0.0, 0.02, 100.0)), []);
        assert_eq!(sum.push(1, reading(0.005, 0.025, 200.0)), []);
        assert_eq!(sum.push(0, reading(0.02, 0.04, 100.0)), []);
        let sums = sum.push(1, reading(0.025, 0.045, 240.0));
        assert_eq!(sums.len(), 1);
        assert!((sums[0].power.get() - 330.0).abs() < 1e-6, "{sums:?}");
        assert_eq!((sums[0].from.get(), sums[0].to.get()), (0.02, 0.04));
    }

    #[test]
    fn short_readings_are_averaged_over_long_ones() {
        let mut sum = PowerSum::new(2);
        for number in 0..60 {
            let to = 0.02 * f64::from(number + 1);
            let power = if number < 30 { 100.0 } else { 200.0 };
            assert_eq!(sum.push(0, reading(to - 0.02, to, power)), []);
        }
        let sums = sum.push(1, reading(0.1, 1.1, 50.0));
        assert_eq!(sums.len(), 1);
        // Half a second at 100 W and half a second at 200 W.
        assert!((sums[0].power.get() - 200.0).abs() < 1e-6, "{sums:?}");
    }

    #[test]
    fn a_gap_of_one_gpu_leaves_a_gap_in_the_sum() {
        let mut sum = PowerSum::new(2);
        let mut ends = Vec::new();
        for number in 0..200 {
            let to = 0.02 * f64::from(number + 1);
            let mut sums = sum.push(0, reading(to - 0.02, to, 100.0));
            if !(50..100).contains(&number) {
                sums.extend(sum.push(1, reading(to - 0.02, to, 10.0)));
            }
            for one in &sums {
                assert!((one.power.get() - 110.0).abs() < 1e-6, "{one:?}");
            }
            ends.extend(sums.iter().map(|one| one.to.get()));
        }
        assert!(ends.iter().all(|to| *to < 1.001 || *to > 2.019), "{ends:?}");
        assert!(ends.len() >= 148, "{}", ends.len());
    }

    #[test]
    fn a_gpu_without_readings_gives_no_sum_and_uses_little_memory() {
        let mut sum = PowerSum::new(2);
        for number in 0..20_000 {
            let to = 0.02 * f64::from(number + 1);
            assert_eq!(sum.push(0, reading(to - 0.02, to, 100.0)), []);
        }
        assert!(sum.gpus[0].len() <= MAX_STORED);
        // Old readings of the other GPU have no counterpart.
        assert_eq!(sum.push(1, reading(399.98, 400.0, 10.0)).len(), 1);
    }

    proptest! {
        /// The energy of the sums is that of all GPUs, whatever the periods and phases of their sensors are.
        #[test]
        fn the_energy_of_the_sums_is_that_of_all_gpus(
            sensors in prop::collection::vec((0.01..0.12f64, 0.0..0.1f64), 2..6),
            levels in prop::collection::vec(50.0..300.0f64, 6),
        ) {
            let mut sum = PowerSum::new(sensors.len());
            let power = |gpu: usize, from: f64, to: f64| {
                // A ramp, so that the mean over a span is the value in its middle.
                levels[gpu] + 10.0 * 0.5 * (from + to)
            };
            let mut readings = Vec::new();
            for (gpu, (period, phase)) in sensors.iter().enumerate() {
                let mut from = *phase;
                while from + period < 5.0 {
                    readings.push((gpu, from, from + period));
                    from += period;
                }
            }
            readings.sort_by(|a, b| a.2.total_cmp(&b.2));
            let mut last = 0.0;
            let mut count = 0;
            for (gpu, from, to) in readings {
                for one in sum.push(gpu, reading(from, to, power(gpu, from, to))) {
                    let (from, to) = (one.from.get(), one.to.get());
                    let expected: f64 = (0..sensors.len()).map(|gpu| power(gpu, from, to)).sum();
                    prop_assert!((one.power.get() - expected).abs() < 2.0, "{one:?} {expected}");
                    prop_assert!(to > last);
                    last = to;
                    count += 1;
                }
            }
            prop_assert!(count > 30, "{count}");
            prop_assert!(last > 4.7, "{last}");
        }
    }
}
