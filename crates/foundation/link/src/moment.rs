//! Time on the machine's monotonic clock.

use rustix::time::{ClockId, clock_gettime};

/// A moment of `CLOCK_MONOTONIC`, in nanoseconds since its origin: the same for all processes of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The present moment.
    #[inline]
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        Self(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    /// The moment this many nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The nanoseconds since the origin.
    pub const fn nanos(self) -> u64 {
        self.0
    }
}
