//! How long a client waits for its guard process.

use std::time::Duration;

/// How long a client waits for its guard. A guard that takes longer is killed; the client starts another,
/// which restores the settings in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuardTimeouts {
    /// The time to reply to a request. A driver may need some hundred milliseconds for a write.
    pub answer: Duration,
    /// The additional time to reply to a request, for each leased device.
    pub answer_per_device: Duration,
    /// The time to restore all devices after an interruption, even if the guard is busy with another request.
    pub interruption: Duration,
    /// The time to exit after the devices are released, which includes ending the workload.
    pub end: Duration,
    /// While the workload runs, the guard is pinged if it sends no message for this time.
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
