//! Who is at the other end of a connection, as the kernel knows it.

use std::io::{self, Read};
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::Timespec;
use sweetspot_guard::Owner;

use crate::policy::Account;

/// The process at the other end of a connection. What it says about itself does not count.
#[derive(Debug)]
pub struct Caller {
    /// The user and groups of the process.
    pub account: Account,
    /// The process, as the owner of leases.
    pub owner: Owner,
    /// A file descriptor of the process, which becomes readable when the process ends.
    pub process: OwnedFd,
}

impl Caller {
    /// Asks the kernel who has connected. It is an error if that process has ended.
    pub fn of(stream: &UnixStream) -> io::Result<Self> {
        let peer = socket_peercred(stream)?;
        let (uid, pid) = (peer.uid.as_raw(), peer.pid);
        let process = match peer_process(stream) {
            // Before Linux 6.5 the process has to be found by its id.
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                pidfd_open(pid, PidfdFlags::empty())?
            }
            found => found?,
        };
        let owner = Owner::process(pid.as_raw_nonzero().get() as u32, uid, command_line(pid));
        // The id still belongs to that process if it lives now: what was read of it by its id is its own.
        if has_ended(&process)? {
            return Err(io::Error::other("the process that connected has ended"));
        }
        let mut groups = peer_groups(stream)?;
        groups.push(peer.gid.as_raw());
        Ok(Self {
            account: Account { uid, groups },
            owner,
            process,
        })
    }
}

/// Opens the process of an owner that took its lease before this service was started; `None` if it has ended.
pub fn open_process(owner: &Owner) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(owner.pid).ok()?)?;
    let process = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    owner.is_alive().then_some(process)
}

/// The user and groups of the process that owns a lease; `None` for a job, which root ends. If the groups cannot be read,
/// because the process has ended or is hidden, there are none: an unknown group gives no rights.
pub fn account_of(owner: &Owner) -> Option<Account> {
    if owner.job.is_some() {
        return None;
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", owner.pid));
    let status = status.ok().filter(|_| owner.is_alive()).unwrap_or_default();
    let ids = |key: &str| -> Vec<u32> {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let ids = line.unwrap_or_default().split_whitespace();
        ids.filter_map(|id| id.parse().ok()).collect()
    };
    let mut groups = ids("Groups:");
    groups.extend(ids("Gid:").get(1));
    Some(Account {
        uid: owner.uid?,
        groups,
    })
}

/// Whether a process has ended.
pub fn has_ended(process: &OwnedFd) -> io::Result<bool> {
    let mut waits = [PollFd::new(process, PollFlags::IN)];
    loop {
        match poll(&mut waits, Some(&Timespec::default())) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// The command line of a process, for messages and the log. For a guard process it is that of the command that started
/// it, which users know.
fn command_line(pid: Pid) -> String {
    let own = command_of(pid.as_raw_nonzero().get());
    if !own.contains(" guard --service ") {
        return own;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let parent = fields.split_whitespace().nth(1);
    let parent = parent.and_then(|parent| parent.parse().ok());
    parent.map_or(own, command_of)
}

/// The command line of one process: at most 200 characters, without control characters.
fn command_of(pid: i32) -> String {
    const MAX_LENGTH: usize = 200;
    // A command line can have megabytes.
    let mut words = Vec::new();
    if let Ok(file) = std::fs::File::open(format!("/proc/{pid}/cmdline")) {
        let _ = file.take(4 * MAX_LENGTH as u64).read_to_end(&mut words);
    }
    let words = String::from_utf8_lossy(&words).into_owned();
    let words = words.trim_end_matches('\0').replace('\0', " ");
    let shown = words.chars().filter(|letter| !letter.is_control());
    shown.take(MAX_LENGTH).collect()
}

/// A file descriptor of the process that connected. It stays with that process even if its id is used again.
#[allow(unsafe_code)]
fn peer_process(stream: &UnixStream) -> io::Result<OwnedFd> {
    /// The socket option, see socket(7); the `libc` crate has no name for it.
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut descriptor: libc::c_int = -1;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `descriptor`, which has that size.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just created this descriptor for this process, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// The supplementary groups that the process had when it connected.
#[allow(unsafe_code)]
fn peer_groups(stream: &UnixStream) -> io::Result<Vec<u32>> {
    /// The socket option, see socket(7); the `libc` crate has no name for it.
    const SO_PEERGROUPS: libc::c_int = 59;
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut length = (groups.len() * size_of::<libc::gid_t>()) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to the vector, which has that size.
        let result = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = length as usize / size_of::<libc::gid_t>();
        if result == 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        let error = io::Error::last_os_error();
        // If there are more groups, the kernel says how many.
        if error.raw_os_error() != Some(libc::ERANGE) || count <= groups.len() {
            return Err(error);
        }
        groups.resize(count, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_who_connects() {
        let (one, _other) = UnixStream::pair().unwrap();
        let caller = Caller::of(&one).unwrap();
        assert_eq!(caller.owner.pid, std::process::id());
        assert_eq!(caller.account.uid, rustix::process::getuid().as_raw());
        let own = rustix::process::getgid().as_raw();
        assert!(caller.account.groups.contains(&own));
        assert!(caller.owner.is_same(&Owner::current_process()));
        assert!(!has_ended(&caller.process).unwrap());
        assert!(open_process(&caller.owner).is_some());
    }

    #[test]
    fn a_process_that_cannot_be_seen_has_no_groups() {
        let mut owner = Owner::current_process();
        let own = rustix::process::getgid().as_raw();
        assert!(account_of(&owner).unwrap().groups.contains(&own));
        // The id of the process was used again.
        owner.start_time -= 1;
        let account = account_of(&owner).unwrap();
        assert_eq!((Some(account.uid), account.groups), (owner.uid, Vec::new()));
        assert_eq!(account_of(&Owner::job("a".to_owned(), 7)), None);
    }

    #[test]
    fn a_long_command_line_is_cut() {
        let long = "x".repeat(100_000);
        let mut child = std::process::Command::new("sleep")
            .args(["60", &long])
            .spawn()
            .unwrap();
        let shown = command_of(child.id() as i32);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(shown.len() <= 200, "{}", shown.len());
    }

    #[test]
    fn an_owner_whose_id_was_used_again_is_not_opened() {
        let mut owner = Owner::current_process();
        owner.start_time -= 1;
        assert!(open_process(&owner).is_none());
    }
}
