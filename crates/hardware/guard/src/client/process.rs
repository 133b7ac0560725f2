//! The end of a guard process.

use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// The longest wait for a killed process to end. A process that is blocked in a driver does not end.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for a process to end, but no longer than `limit`.
pub(super) fn wait_for_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// Kills a process with SIGKILL, and waits a short time for its end.
pub(super) fn kill(child: &mut Child) {
    let _ = child.kill();
    wait_for_exit(child, KILL_TIMEOUT);
}
