//! The highest power reading while a few batches run, by which the algorithms of the BatchSizer paper decide.

use super::event::PowerReading;

/// Times that differ by less than this count as equal, in seconds.
const TIME_TOLERANCE: f64 = 1e-6;

/// The power profile of a few batches at one setting. Power rises in spikes while a batch is computed and falls while
/// the next one is prepared (figure 2 of the paper), so that the highest reading is that of the spikes, and a mean is
/// not.
#[derive(Clone, Copy, Debug, Default)]
pub struct PowerProfile {
    batches: u32,
    /// The end of the last batch that belongs to the profile, in seconds; absent while batches are missing.
    ends_at: Option<f64>,
    /// The highest reading so far, in watts.
    highest: Option<f64>,
    /// Whether a reading covers the end of the last batch.
    is_covered: bool,
}

impl PowerProfile {
    /// Adds a batch that ended at `at`; the profile has all its batches after `needed` of them.
    pub fn add_batch(&mut self, at: f64, needed: u32) {
        self.batches = self.batches.saturating_add(1);
        if self.batches >= needed {
            self.ends_at.get_or_insert(at);
        }
    }

    /// Adds a reading. Readings may arrive later than the batches that they cover; one that begins after the last batch
    /// belongs to the next profile, unless the sensor was too slow to show any of these batches.
    pub fn add_reading(&mut self, reading: &PowerReading) {
        let (from, to, power) = (reading.from.get(), reading.to.get(), reading.power.get());
        if !(power.is_finite() && to > from) {
            return;
        }
        let is_of_batches = self.ends_at.is_none_or(|end| from < end - TIME_TOLERANCE);
        if is_of_batches || self.highest.is_none() {
            self.highest = Some(self.highest.map_or(power, |highest| highest.max(power)));
        }
        self.is_covered |= self.ends_at.is_some_and(|end| to >= end - TIME_TOLERANCE);
    }

    /// The highest reading in watts once readings cover all batches; `None` before that.
    pub fn highest_reading(&self) -> Option<f64> {
        self.highest.filter(|_| self.is_covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::event::reading;

    #[test]
    fn the_highest_reading_counts_and_not_the_mean() {
        let mut profile = PowerProfile::default();
        for index in 0..10 {
            let at = 0.1 * f64::from(index);
            let spike = if index == 4 { 180.0 } else { 150.0 };
            profile.add_reading(&reading(at, at + 0.02, spike));
            profile.add_reading(&reading(at + 0.02, at + 0.1, 50.0));
            assert_eq!(profile.highest_reading(), None);
            profile.add_batch(at + 0.1, 10);
        }
        profile.add_reading(&reading(1.0, 1.02, 140.0));
        assert_eq!(profile.highest_reading(), Some(180.0));
    }

    #[test]
    fn a_sensor_slower_than_the_batches_still_gives_a_power() {
        let mut profile = PowerProfile::default();
        profile.add_batch(0.01, 1);
        profile.add_reading(&reading(0.1, 1.1, 130.0));
        assert_eq!(profile.highest_reading(), Some(130.0));
    }

    #[test]
    fn readings_that_arrive_late_still_count_and_later_ones_do_not() {
        let mut profile = PowerProfile::default();
        for index in 1..=12 {
            profile.add_batch(0.01 * f64::from(index), 10);
        }
        profile.add_reading(&reading(0.03, 0.05, 120.0));
        assert_eq!(
            profile.highest_reading(),
            None,
            "half of the batches are not covered"
        );
        profile.add_reading(&reading(0.11, 0.13, 200.0));
        assert_eq!(
            profile.highest_reading(),
            Some(120.0),
            "the last reading is of other batches"
        );
    }
}
