//! How long a client waits for its guard.

use std::time::Duration;

/// How long a guard may take. A guard that takes longer is killed, and its client has another
/// put back what the journal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// To answer a request. A driver may need some hundred milliseconds for a write.
    pub answer: Duration,
    /// To answer a request, in addition for each device that is leased.
    pub answer_per_device: Duration,
    /// To put everything back after a signal, whatever else was asked.
    pub interruption: Duration,
    /// To end after its client has let go: it ends what is left of the workload first.
    pub end: Duration,
    /// To be silent while the workload runs; then it is asked whether it still lives.
    pub silence: Duration,
    /// To say that it still lives. A machine that is short of memory may be slow.
    pub sign_of_life: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(10),
            answer_per_device: Duration::from_secs(2),
            interruption: Duration::from_secs(5),
            end: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            sign_of_life: Duration::from_secs(60),
        }
    }
}
