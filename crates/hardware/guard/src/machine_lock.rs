//! A lock on a device for the whole machine, whichever folder a journal is in: two containers, or root and another user,
//! have journals of their own.
//!
//! The lock is a listening socket with an abstract name, which the kernel removes with its process. Everybody can bind
//! such a name, so the kernel's word on who has done it counts: root is not stopped by another user's process.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::UCred;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use sweetspot_device::DeviceId;

use crate::proc_files::command_line;

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
        match UnixListener::bind_addr(&address) {
            Ok(listener) => Ok(Self::Taken(listener)),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(describe(&name)),
            Err(error) => Err(error),
        }
    }
}

/// Finds out which process has taken a name.
fn describe(name: &[u8]) -> MachineLock {
    let holder = holder(name);
    let text = match &holder {
        Some(holder) => {
            let pid = holder.pid.as_raw_nonzero().get();
            let user = holder.uid.as_raw();
            match command_line(pid) {
                Some(command) => format!("process {pid} of user {user} ({command})"),
                None => format!("process {pid} of user {user}"),
            }
        }
        None => "a process that cannot be identified".to_owned(),
    };
    let is_root = holder.is_some_and(|holder| holder.uid.is_root());
    match geteuid().is_root() && !is_root {
        true => MachineLock::Beside(text),
        false => MachineLock::Held(text),
    }
}

/// The process that listens at an abstract name, as the kernel knows it. This never waits, even if the process accepts
/// no connections.
fn holder(name: &[u8]) -> Option<UCred> {
    let flags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name).ok()?).ok()?;
    socket_peercred(UnixStream::from(socket)).ok()
}
