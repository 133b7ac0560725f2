//! Identifies the process that has leased a device.

use serde::{Deserialize, Serialize};

use crate::proc_files::process;

/// A process that has leased a device. Boot id and start time distinguish it from a later process with the same
/// id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The kernel's id of the boot in which the process ran.
    pub boot_id: String,
    /// The id of the process.
    pub pid: u32,
    /// The process's start time, in clock ticks since boot.
    pub start_time: u64,
    /// The command line of the process.
    pub command: String,
}

impl Owner {
    /// Describes the calling process.
    pub fn current_process() -> Self {
        let pid = std::process::id();
        let arguments: Vec<String> = std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        Self {
            boot_id: boot_id(),
            pid,
            start_time: process(pid as i32).map_or(0, |process| process.started),
            command: arguments.join(" "),
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({})", self.pid, self.command)
    }
}

/// The kernel's id of the current boot. It tells whether a reboot has reset power caps and clock locks.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}
