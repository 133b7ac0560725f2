//! How long a client waits for its guard process.

use std::time::Duration;

/// How long a guard may take. A guard that takes longer is killed, and its client starts another, which restores
/// the settings in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardTimeouts {
    /// The time to reply to a request. A driver may need some hundred milliseconds for a write.
    pub answer: Duration,
    /// The additional time to reply to a request, for each leased device.
    pub answer_per_device: Duration,
    /// The time to restore all devices after an interruption, even if another request is being processed.
    pub interruption: Duration,
    /// The time to exit after a release, which includes ending the workload.
    pub end: Duration,
    /// The time without a message from the guard after which it is pinged while the workload runs.
    pub silence: Duration,
    /// The time to reply to a ping. A machine that is short of memory may be slow.
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
