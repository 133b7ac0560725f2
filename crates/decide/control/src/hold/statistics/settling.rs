//! Whether the setting of a run has settled.

/// Whether the setting has settled, so mean powers are compared with the cap.
#[derive(Clone, Copy, Debug)]
pub enum Settling {
    /// The run has not started.
    NotStarted,
    /// The setting still changes; mean powers are collected and not compared yet.
    InProgress(SettlingPeriod),
    /// The setting still changes after the deadline; mean powers are compared nevertheless.
    Overdue(SettlingPeriod),
    /// The setting has settled after this time in seconds and this many measurement windows.
    Settled { time: f64, windows: u64 },
}

/// The start of settling and the last change since: times in seconds, and numbers of measurement windows.
#[derive(Clone, Copy, Debug)]
pub struct SettlingPeriod {
    pub started_at: f64,
    pub start_window: u64,
    pub last_change: f64,
    pub last_change_window: u64,
    /// Whether a batch has begun since the last change; until then a batch of the earlier setting may still run.
    pub is_in_effect: bool,
}
