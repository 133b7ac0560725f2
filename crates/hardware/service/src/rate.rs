//! Limits how often something may happen.

use std::time::Instant;

/// A limit that allows a number of events at once and refills over time.
#[derive(Debug)]
pub struct Allowance {
    left: f64,
    at_once: f64,
    per_second: f64,
    updated: Instant,
}

impl Allowance {
    /// Allows `at_once` events, and `per_second` more in every second.
    pub const fn new(at_once: f64, per_second: f64, now: Instant) -> Self {
        Self {
            left: at_once,
            at_once,
            per_second,
            updated: now,
        }
    }

    /// Whether one more event is allowed now; if so, it counts.
    pub fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.updated).as_secs_f64();
        self.updated = self.updated.max(now);
        self.left = (self.left + passed * self.per_second).min(self.at_once);
        let is_allowed = self.left >= 1.0;
        if is_allowed {
            self.left -= 1.0;
        }
        is_allowed
    }

    /// Whether nothing is used up: a new allowance would be the same.
    pub fn is_full(&self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.updated).as_secs_f64();
        self.left + passed * self.per_second >= self.at_once
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_allowance_refills_over_time() {
        let begin = Instant::now();
        let mut allowance = Allowance::new(3.0, 2.0, begin);
        let taken = |allowance: &mut Allowance, at| (0..10).filter(|_| allowance.take(at)).count();
        assert!(allowance.is_full(begin));
        assert_eq!(taken(&mut allowance, begin), 3);
        assert!(!allowance.is_full(begin + Duration::from_secs(1)));
        assert!(allowance.is_full(begin + Duration::from_secs(2)));
        assert_eq!(taken(&mut allowance, begin + Duration::from_millis(500)), 1);
        assert_eq!(taken(&mut allowance, begin + Duration::from_secs(60)), 3);
        // A clock that goes back gives nothing.
        assert_eq!(taken(&mut allowance, begin), 0);
    }
}
