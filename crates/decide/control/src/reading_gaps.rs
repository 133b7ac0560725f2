//! The time in which a sensor gave no readings.

use sweetspot_quantity::Seconds;

/// Two readings that are further apart leave a gap, in which the power is unknown.
pub const MAX_READING_GAP: Seconds = Seconds::new(2.0);

/// Adds up the time in which a sensor gave no readings. A short time without a reading is no gap.
#[derive(Clone, Debug)]
pub struct ReadingGaps {
    longest: f64,
    started_at: Option<f64>,
    /// The end of the last reading.
    last_end: Option<f64>,
    /// The time in gaps that have ended, in seconds.
    closed: f64,
}

impl Default for ReadingGaps {
    fn default() -> Self {
        Self::longer_than(MAX_READING_GAP)
    }
}

impl ReadingGaps {
    /// Accounts for a sensor whose readings may be this far apart.
    pub const fn longer_than(longest: Seconds) -> Self {
        Self {
            longest: longest.get(),
            started_at: None,
            last_end: None,
            closed: 0.0,
        }
    }

    /// Notes that readings are expected from now on, unless they were before.
    pub fn start(&mut self, now: Seconds) {
        self.started_at.get_or_insert(now.get());
    }

    /// Takes a reading that covers a span. Returns the part of the span that no earlier reading covers; `None` if the
    /// reading is not newer than the last one.
    pub fn record(&mut self, from: Seconds, to: Seconds) -> Option<Seconds> {
        let (from, to) = (from.get(), to.get());
        let is_newer = self.last_end.is_none_or(|last| to > last);
        if !(to >= from && is_newer) {
            return None;
        }
        let since = self.last_end.map_or(from, |last| last.max(from));
        self.closed += self.gap_until(since);
        self.last_end = Some(to);
        Some(Seconds::new(to - since))
    }

    /// The end of the last reading.
    pub fn last_end(&self) -> Option<Seconds> {
        self.last_end.map(Seconds::new)
    }

    /// Whether a gap lasts at this moment.
    pub fn is_silent(&self, now: Seconds) -> bool {
        self.gap_until(now.get()) > 0.0
    }

    /// The time in gaps until a moment.
    pub fn unread_until(&self, now: Seconds) -> Seconds {
        Seconds::new(self.closed + self.gap_until(now.get()))
    }

    /// The time without a reading before a moment; zero if it is short.
    fn gap_until(&self, moment: f64) -> f64 {
        let last = self.last_end.or(self.started_at);
        let gap = moment - last.unwrap_or(moment);
        if gap > self.longest { gap } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(value: f64) -> Seconds {
        Seconds::new(value)
    }

    #[test]
    fn a_long_time_without_readings_counts_and_a_short_one_does_not() {
        let mut gaps = ReadingGaps::default();
        gaps.start(seconds(1.0));
        assert!(!gaps.is_silent(seconds(2.9)));
        assert_eq!(gaps.unread_until(seconds(4.0)), seconds(3.0));
        assert_eq!(
            gaps.record(seconds(5.0), seconds(5.5)),
            Some(seconds(0.5)),
            "after a gap of 4 s"
        );
        assert_eq!(gaps.record(seconds(5.0), seconds(5.5)), None, "read twice");
        assert_eq!(gaps.record(seconds(5.0), seconds(6.0)), Some(seconds(0.5)));
        assert_eq!(gaps.unread_until(seconds(8.0)), seconds(4.0));
        assert!(gaps.is_silent(seconds(8.1)));
        let unread = gaps.unread_until(seconds(9.0)).get();
        assert!((unread - 7.0).abs() < 1e-9, "{unread}");
    }

    #[test]
    fn readings_are_not_missed_before_they_are_expected() {
        let gaps = ReadingGaps::default();
        assert_eq!(gaps.unread_until(seconds(100.0)), Seconds::ZERO);
    }
}
