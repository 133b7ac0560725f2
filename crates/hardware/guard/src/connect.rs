//! Connects to Unix sockets without waiting: a process that accepts no connections must not hold up anybody.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Connects to the process that listens at this path. If its queue of connections is full, the error is
/// [`io::ErrorKind::WouldBlock`].
pub fn connect_at_once(path: &Path) -> io::Result<UnixStream> {
    connect_to_address(&SocketAddrUnix::new(path)?)
}

/// Does the same for an address of any kind.
pub(crate) fn connect_to_address(address: &SocketAddrUnix) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}
