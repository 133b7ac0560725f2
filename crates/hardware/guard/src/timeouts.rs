//! Timeouts of a client for its guard.

use std::time::Duration;

/// The times that a guard may take. A guard that takes longer is killed, and its client starts another, which
/// restores what the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardTimeouts {
    /// The time to answer a request. A driver may need some hundred milliseconds for a write.
    pub answer: Duration,
    /// The additional time to answer a request for each leased device.
    pub answer_per_device: Duration,
    /// The time to restore everything after a signal, whatever else was requested.
    pub interruption: Duration,
    /// The time to exit after a release, which includes ending the workload.
    pub end: Duration,
    /// The time without a message while the workload runs, after which the guard is pinged.
    pub silence: Duration,
    /// The time to answer a ping. A machine that is short of memory may be slow.
    pub ping: Duration,
}

impl Default for GuardTimeouts {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            answer_per_device: Duration::from_secs(2),
            interruption: Duration::from_secs(5),
            end: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            ping: Duration::from_secs(60),
        }
    }
}
