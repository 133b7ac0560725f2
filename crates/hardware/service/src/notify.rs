//! Tells systemd that the service is ready and alive.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// A socket of systemd for messages about the state of the service.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<(UnixDatagram, SocketAddr)>,
}

impl Notifier {
    /// Opens the socket that systemd names in `NOTIFY_SOCKET`; without it messages go nowhere.
    pub fn from_environment() -> Self {
        let socket = std::env::var_os("NOTIFY_SOCKET")
            .and_then(|name| Some((UnixDatagram::unbound().ok()?, address(&name)?)));
        Self { socket }
    }

    /// Sends a message such as `READY=1`. Errors are ignored: systemd acts by itself on a service that says nothing.
    pub fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

/// The address of a socket; a name that begins with `@` is not a file.
fn address(name: &OsString) -> Option<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name).ok(),
        None => SocketAddr::from_pathname(name).ok(),
    }
}
