//! Moments and clocks. Callers pass the clock in, so simulations and tests can use a virtual one.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

/// A moment on one clock, in nanoseconds since that clock's origin. Moments of [`MonotonicClock`] can be
/// compared between the processes of a machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(u64);

impl Moment {
    /// Creates the moment that is `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The number of nanoseconds since the clock's origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }
}

impl Add<Seconds> for Moment {
    type Output = Self;
    fn add(self, span: Seconds) -> Self {
        Self(self.0.saturating_add_signed(span.nanos()))
    }
}

impl Sub for Moment {
    type Output = Seconds;
    fn sub(self, earlier: Self) -> Seconds {
        let nanos = i128::from(self.0) - i128::from(earlier.0);
        Seconds::new(nanos as f64 * 1e-9)
    }
}

/// A clock that never goes back: the machine's own, or a virtual one for simulations and tests.
pub trait Clock: Send + Sync {
    /// The present time on this clock.
    fn now(&self) -> Moment;
}

/// The machine's monotonic clock (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Moment {
        let now = clock_gettime(ClockId::Monotonic);
        Moment(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }
}

/// A clock that stands still until [`VirtualClock::advance`] is called, for simulations and tests.
#[derive(Debug, Default)]
pub struct VirtualClock(AtomicU64);

impl VirtualClock {
    /// Advances the clock; a negative span does nothing.
    pub fn advance(&self, span: Seconds) {
        let now = Moment(self.0.load(Ordering::Acquire)) + span.max(Seconds::ZERO);
        self.0.store(now.0, Ordering::Release);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        Moment(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_advances_only_forwards_and_on_request() {
        let clock = VirtualClock::default();
        let start = clock.now();
        clock.advance(Seconds::new(1.5));
        clock.advance(Seconds::new(-9.0));
        assert_eq!(clock.now() - start, Seconds::new(1.5));
        assert_eq!(start - clock.now(), Seconds::new(-1.5));
    }

    #[test]
    fn real_time_passes() {
        let clock = MonotonicClock;
        let start = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(clock.now() - start >= Seconds::new(0.002));
    }
}
