//! Identifies who has leased a device: a process, or a job of a scheduler.

use serde::{Deserialize, Serialize};

use crate::proc_files::process;

/// The process or the scheduler's job that has leased a device. Boot id and start time distinguish a process from a later
/// one with the same id.
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
    /// The id of the user whom the process or the job belongs to; `None` in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The scheduler's name of the job that owns the lease. The lease then outlives the process that took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
}

impl Owner {
    /// Describes the calling process.
    pub fn current_process() -> Self {
        let arguments: Vec<String> = std::env::args_os()
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect();
        let uid = rustix::process::getuid().as_raw();
        Self::process(std::process::id(), uid, arguments.join(" "))
    }

    /// Describes a running process of a user.
    pub fn process(pid: u32, uid: u32, command: String) -> Self {
        Self {
            boot_id: boot_id(),
            pid,
            start_time: process(pid as i32).map_or(0, |process| process.started),
            command,
            uid: Some(uid),
            job: None,
        }
    }

    /// Describes a scheduler's job of a user.
    pub fn job(name: String, uid: u32) -> Self {
        Self {
            boot_id: boot_id(),
            pid: 0,
            start_time: 0,
            command: String::new(),
            uid: Some(uid),
            job: Some(name),
        }
    }

    /// Whether this is the same process or job of the same user. The command line does not count: a process may change
    /// it. The user counts: a process that executes a set-user-id program becomes another user's, and its children may
    /// still have connections from before.
    pub fn is_same(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_time == other.start_time
            && self.job == other.job
            && self.uid == other.uid
    }

    /// Whether the process still runs. Whether a job does is known to its scheduler only, which says so.
    pub fn is_alive(&self) -> bool {
        self.boot_id == boot_id()
            && (self.job.is_some()
                || process(self.pid as i32)
                    .is_some_and(|found| found.is_alive && found.started == self.start_time))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.job {
            Some(job) => write!(f, "job {job}"),
            None => write!(f, "process {} ({})", self.pid, self.command),
        }
    }
}

/// The kernel's id of the current boot. It tells whether a reboot has reset power caps and clock locks.
pub fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_in_the_same_process_is_another_owner() {
        let owner = Owner::current_process();
        let mut other = owner.clone();
        other.command = "another name".to_owned();
        assert!(owner.is_same(&other));
        other.uid = Some(owner.uid.unwrap() + 1);
        assert!(!owner.is_same(&other));
    }
}
