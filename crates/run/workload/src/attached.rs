//! A process of the user's that runs already, and that is only observed.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::WorkloadError;

/// A process that this program has not started. It is never signalled, and it goes on when this program ends.
pub(crate) struct AttachedProcess {
    /// A file descriptor that becomes readable when the process has exited.
    exit: OwnedFd,
}

impl AttachedProcess {
    /// Finds the process.
    pub fn open(pid: u32) -> Result<Self, WorkloadError> {
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let exit = number.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        match exit {
            Some(Ok(exit)) => Ok(Self { exit }),
            Some(Err(problem)) => Err(WorkloadError::NotAttached {
                pid,
                reason: std::io::Error::from(problem).to_string(),
            }),
            None => Err(WorkloadError::NotAttached {
                pid,
                reason: "it is not the number of a process".to_owned(),
            }),
        }
    }

    /// Waits at most `at_most` for the exit; returns whether the process has exited.
    pub fn wait(&self, at_most: Duration) -> bool {
        let limit = rustix::time::Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let mut wait = [PollFd::new(&self.exit, PollFlags::IN)];
        matches!(poll(&mut wait, Some(&limit)), Ok(count) if count > 0)
    }
}
