//! The time stamps of the link's records: `CLOCK_MONOTONIC` in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// A moment in nanoseconds of `CLOCK_MONOTONIC`. Moments can be compared between all processes of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The present moment.
    #[inline]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// Creates the moment that is `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The number of nanoseconds since the clock's origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }
}
