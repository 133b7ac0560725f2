//! Finds the running `hold` or `budget` processes by their control sockets, and changes their caps.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use sweetspot_guard::connect_at_once;
use sweetspot_quantity::Watts;

use super::folders::{folders_of_all_users, socket_folders};
use super::{ControlledVerb, REPLY_TIMEOUT, SUFFIX};

/// Why the cap of a running `hold` or `budget` process could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum SetCapError {
    /// The user has no running process of this kind.
    #[error("you have no running {0} on this computer")]
    NotRunning(ControlledVerb),
    /// None of the user's running processes has this process id.
    #[error("none of your running {verb}s has the pid {pid}: use one of {running}")]
    UnknownPid {
        /// The command.
        verb: ControlledVerb,
        /// The process id that the user gave.
        pid: u32,
        /// The process ids of the user's running processes, separated by commas.
        running: String,
    },
    /// Several processes are running, and the user named none.
    #[error("several {verb}s are running (pid {pids})")]
    Several {
        /// The command.
        verb: ControlledVerb,
        /// Their process ids, separated by commas.
        pids: String,
    },
    /// The process did not reply in time, because it is stopped or very busy.
    #[error(
        "the {verb} with pid {pid} has not replied: it is stopped or busy, and applies the new cap when it continues"
    )]
    NoAnswer {
        /// The command.
        verb: ControlledVerb,
        /// The id of the process.
        pid: u32,
    },
    /// The process rejected the cap.
    #[error("the {verb} with pid {pid} rejected the cap: {reason}")]
    Rejected {
        /// The command.
        verb: ControlledVerb,
        /// The id of the process.
        pid: u32,
        /// Why the process rejected the cap.
        reason: String,
    },
}

/// The maximum length of a reply of the control socket.
const MAX_REPLY_BYTES: usize = 1024;

/// Connects to the running `hold` processes whose sockets are in a folder. Removes sockets that were left by killed
/// `hold` processes of this user.
fn running_in(verb: ControlledVerb, folder: &Path) -> Vec<(u32, UnixStream)> {
    let prefix = verb.prefix();
    let owner = std::fs::symlink_metadata(folder).ok();
    let owner = owner.filter(|found| found.is_dir() && found.mode() & 0o022 == 0);
    let (Some(owner), Ok(entries)) = (owner.map(|found| found.uid()), std::fs::read_dir(folder))
    else {
        return Vec::new();
    };
    let user = geteuid();
    let is_own = owner == user.as_raw();
    if !is_own && !user.is_root() {
        return Vec::new();
    }
    let mut running = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix(SUFFIX)?.parse().ok());
        let Some(pid) = pid else { continue };
        match connect_to(&entry.path(), pid, owner) {
            Ok(stream) => running.push((pid, stream)),
            Err(error) if is_own && error.kind() == ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(entry.path());
            }
            Err(_) => {}
        }
    }
    running
}

/// Connects to a socket without waiting, if the process that its name says listens there and belongs to the folder's
/// owner: another user can neither pretend to be a `hold` nor keep the caller waiting.
fn connect_to(path: &Path, pid: u32, owner: u32) -> std::io::Result<UnixStream> {
    let stream = connect_at_once(path)?;
    let peer = socket_peercred(&stream)?;
    if peer.uid.as_raw() != owner || peer.pid.as_raw_nonzero().get().unsigned_abs() != pid {
        return Err(ErrorKind::PermissionDenied.into());
    }
    Ok(stream)
}

/// Connects to the user's running `hold` processes. Root can also reach another user's `hold` process by its id.
fn running(verb: ControlledVerb, pid: Option<u32>) -> Vec<(u32, UnixStream)> {
    let mut folders = socket_folders(verb);
    if pid.is_some() && geteuid().is_root() {
        folders.extend(folders_of_all_users(verb));
    }
    let existing = folders.iter().filter_map(|one| one.canonicalize().ok());
    let folders: BTreeSet<PathBuf> = existing.collect();
    let found = folders.iter().flat_map(|folder| running_in(verb, folder));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(pid, _)| *pid);
    found
}

/// The ids of the user's running processes of this kind.
pub fn running_pids(verb: ControlledVerb) -> Vec<u32> {
    let found = running(verb, None).into_iter();
    found.map(|(pid, _)| pid).collect()
}

/// Changes the cap of a running process and returns its confirmation.
pub fn set_cap(verb: ControlledVerb, cap: Watts, pid: Option<u32>) -> Result<String, SetCapError> {
    let mut running = running(verb, pid);
    let pids = running.iter().map(|(pid, _)| pid.to_string());
    let pids = pids.collect::<Vec<_>>().join(", ");
    let index = match (pid, running.len()) {
        (_, 0) => return Err(SetCapError::NotRunning(verb)),
        (None, 1) => 0,
        (None, _) => return Err(SetCapError::Several { verb, pids }),
        (Some(pid), _) => {
            let found = running.iter().position(|(of, _)| *of == pid);
            found.ok_or(SetCapError::UnknownPid {
                verb,
                pid,
                running: pids,
            })?
        }
    };
    let (pid, stream) = running.swap_remove(index);
    let rejected = |reason: String| SetCapError::Rejected { verb, pid, reason };
    let answer = send_cap(stream, cap).map_err(|problem| match problem.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SetCapError::NoAnswer { verb, pid },
        _ => rejected(problem.to_string()),
    })?;
    match answer.split_once(": ") {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("refused", text)) => Err(rejected(text.to_owned())),
        _ => Err(rejected(format!("the {verb} sent no valid reply"))),
    }
}

/// Sends a cap to a process and returns its reply line.
fn send_cap(mut stream: UnixStream, cap: Watts) -> std::io::Result<String> {
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    writeln!(stream, "set {}W", cap.get())?;
    let line = read_line_within(&mut stream, 2 * REPLY_TIMEOUT)?;
    // Another user's hold may send anything, also control characters for the terminal.
    Ok(line.trim().replace(char::is_control, " "))
}

/// Reads a line, but for no longer than `limit`, however slowly it arrives.
fn read_line_within(stream: &mut UnixStream, limit: Duration) -> std::io::Result<String> {
    let begun = Instant::now();
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_REPLY_BYTES && !line.ends_with(b"\n") {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut byte)? {
            0 => break,
            _ => line.extend(byte),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
