//! Whose lease it is.

use serde::{Deserialize, Serialize};

/// A process, named so that no later one with its number can be mistaken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The machine's present boot.
    pub boot_id: String,
    /// Its number.
    pub pid: u32,
    /// In clock ticks since boot.
    pub start_time: u64,
    /// What it runs.
    pub command: String,
}

impl Owner {
    /// The present process.
    pub fn me() -> Self {
        let pid = std::process::id();
        let arguments: Vec<String> = std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        Self {
            boot_id: boot_id(),
            pid,
            start_time: start_time(pid).unwrap_or(0),
            command: arguments.join(" "),
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} ({})", self.pid, self.command)
    }
}

/// Of this boot; caps and locks do not survive it.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

/// The 22nd field of /proc/PID/stat, counted after the name, which may hold anything.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}
