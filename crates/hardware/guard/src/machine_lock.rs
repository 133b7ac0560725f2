//! A lock on a device for the whole machine, whichever folder a journal is in: two containers, or root and another user,
//! have journals of their own.
//!
//! The lock is a listening socket with an abstract name, which the kernel removes with its process. Everybody can bind
//! such a name, so the kernel's word on who has done it counts: root is not stopped by another user's process, and
//! connections of others cannot hide that root has the lock.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::sockopt::socket_peercred;
use rustix::net::{SocketAddrUnix, UCred};
use rustix::process::{Uid, geteuid};
use sweetspot_device::DeviceId;

use crate::connect::connect_to_address;
use crate::proc_files::command_line;
use crate::socket_owner::socket_owner;

/// The outcome of an attempt to lock a device.
#[derive(Debug)]
pub(crate) enum MachineLock {
    /// The device is locked until this value is dropped.
    Taken(#[allow(dead_code, reason = "the socket is the lock")] UnixListener),
    /// The device is not locked, because a process of a user without root's rights has taken its name; the text names
    /// the process.
    Beside(String),
    /// Another process has locked the device; the text names it.
    Held(String),
}

impl MachineLock {
    /// Locks a device. `scope` distinguishes devices with the same identity, such as those of two simulated hosts.
    pub fn take(scope: &str, device: &DeviceId) -> io::Result<Self> {
        /// The longest abstract name.
        const MAX_NAME: usize = 107;
        let mut name = format!("sweetspot-device/{device}/{scope}").into_bytes();
        name.truncate(MAX_NAME);
        let address = SocketAddr::from_abstract_name(&name)?;
        let bind = || match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Some(listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(listener) = bind()? {
            return Ok(Self::Taken(listener));
        }
        let holder = find_holder(&name);
        // A holder that cannot be found may have ended since.
        let listener = match holder {
            (None, None) => bind()?,
            _ => None,
        };
        Ok(listener.map_or_else(|| describe(holder), Self::Taken))
    }
}

/// The process that has taken a name and its user, as far as they are known.
fn find_holder(name: &[u8]) -> (Option<UCred>, Option<Uid>) {
    let holder = holder(name);
    let user = socket_owner(name).or(holder.map(|holder| holder.uid));
    (holder, user)
}

/// Describes a lock that another process has.
fn describe((holder, user): (Option<UCred>, Option<Uid>)) -> MachineLock {
    let text = match (&holder, user) {
        (Some(holder), _) => {
            let pid = holder.pid.as_raw_nonzero().get();
            let user = holder.uid.as_raw();
            match command_line(pid) {
                Some(command) => format!("process {pid} of user {user} ({command})"),
                None => format!("process {pid} of user {user}"),
            }
        }
        (None, Some(user)) => format!("a process of user {}", user.as_raw()),
        (None, None) => "a process that cannot be identified".to_owned(),
    };
    let is_root = user.is_some_and(Uid::is_root);
    match geteuid().is_root() && !is_root {
        true => MachineLock::Beside(text),
        false => MachineLock::Held(text),
    }
}

/// The process that listens at an abstract name, as the kernel knows it; `None` if its queue of connections is full. This
/// never waits, even if the process accepts no connections.
fn holder(name: &[u8]) -> Option<UCred> {
    socket_peercred(connect_to_name(name).ok()?).ok()
}

/// Connects to an abstract name without waiting.
fn connect_to_name(name: &[u8]) -> io::Result<UnixStream> {
    connect_to_address(&SocketAddrUnix::new_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_does_not_hide_who_has_the_lock() {
        let (scope, device) = (std::process::id().to_string(), DeviceId::new("GPU-full"));
        let _lock = MachineLock::take(&scope, &device).unwrap();
        let name = format!("sweetspot-device/{device}/{scope}");
        // Every other process may do this.
        while connect_to_name(name.as_bytes()).is_ok() {}
        let second = MachineLock::take(&scope, &device).unwrap();
        let user = geteuid().as_raw();
        let MachineLock::Held(holder) = second else {
            panic!("the lock was taken twice: {second:?}");
        };
        assert_eq!(holder, format!("a process of user {user}"));
    }
}
