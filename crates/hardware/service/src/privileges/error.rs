//! Why a process cannot become a process of another user.

use std::ffi::OsString;
use std::io;

/// Why a process cannot become a process of another user.
#[derive(Debug, thiserror::Error)]
pub enum PrivilegeError {
    /// The program has the set-user-id bit.
    #[error(
        "sweetspot runs as root because its program file has the set-user-id bit, which is not safe: run `chmod u-s` on it, and use sudo or the service instead"
    )]
    SetUserIdProgram,
    /// A variable of sudo does not have the form of an id.
    #[error(
        "{variable} is {value:?}, which is not an id: start the program with sudo, or remove {variable}"
    )]
    InvalidVariable {
        /// The name of the environment variable.
        variable: &'static str,
        /// Its value.
        value: OsString,
    },
    /// Sudo was called by a user who does not exist.
    #[error(
        "SUDO_UID names user {uid}, whom this machine does not know: check `getent passwd {uid}`, or remove SUDO_UID to stay root"
    )]
    UnknownUser {
        /// The user id.
        uid: u32,
    },
    /// Sudo was called with a group that the user is not in.
    #[error(
        "SUDO_GID names group {gid}, which user {user:?} is not in: call sudo from a new login shell"
    )]
    NotAMember {
        /// The login name of the user.
        user: OsString,
        /// The group id.
        gid: u32,
    },
    /// The user to become is root, or no user.
    #[error("cannot give up root's permissions for user {uid}: name an ordinary user")]
    NotAnOrdinaryUser {
        /// The user id.
        uid: u32,
    },
    /// The kernel refused a step.
    #[error(
        "cannot become user {uid}, because {action} failed: {error}; only root can do this: start the program with sudo"
    )]
    Refused {
        /// The step that was refused.
        action: &'static str,
        /// The user id of the user to become.
        uid: u32,
        /// The operating system's error.
        error: io::Error,
    },
    /// All steps succeeded, and yet the process has permissions of root.
    #[error("root's permissions could not be given up: {what}; the program stops here")]
    StillPrivileged {
        /// The permission that is left.
        what: String,
    },
    /// The environment can no longer be changed.
    #[error(
        "cannot change the environment while the program has {} threads: this is an error in sweetspot, please report it",
        .threads.map_or("an unknown number of".to_owned(), |threads| threads.to_string())
    )]
    ThreadsRunning {
        /// The number of threads; `None` if it cannot be read.
        threads: Option<usize>,
    },
}
