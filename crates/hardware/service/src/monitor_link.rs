//! The messages from the privileged process to the measuring process, with the sockets that go with them.
//!
//! The link is a pair of Unix sockets that keeps the bounds of messages. It goes one way: the privileged process never
//! reads from it, so nothing that the measuring process does can change a lease. Who a client is stays with its socket:
//! the measuring process asks the kernel, as the privileged one does.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, connect,
    recvmsg, sendmsg, socket_with, socketpair,
};
use serde::{Deserialize, Serialize};
use sweetspot_device::{DeviceId, Moment, Settings};
use sweetspot_guard::LeaseKind;
use sweetspot_quantity::Joules;

/// The most bytes of a message.
const MAX_MESSAGE: usize = 96 << 10;

/// A message to the measuring process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MonitorMessage {
    /// A TCP socket that listens; it goes with the message.
    Listener {
        /// The token that clients of other addresses than loopback must send. It comes this way because everybody can
        /// read the arguments of a process.
        token: Option<String>,
    },
    /// A client of the Unix socket; its socket goes with the message, and so do the bytes that were read from it.
    Client {
        /// Whether the policy lets this client read the energy of the processors.
        may_read_processors: bool,
    },
    /// All leases.
    Leases(Vec<LeaseView>),
    /// The energy counters of the processors, which only root can read.
    Processors(ProcessorReading),
}

/// The energy counters of the processors at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessorReading {
    /// The moment on the monotonic clock, which all processes of the machine share.
    pub at: Moment,
    /// The packages, and the memory beside them. Their energies add up to that of the host.
    pub parts: Vec<ProcessorPart>,
}

/// The energy counter of a part of the processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessorPart {
    /// The name of the part, such as `package-0`.
    pub name: String,
    /// The name of its zone in the kernel, such as `intel-rapl:0`.
    pub zone: String,
    /// The energy since an arbitrary moment.
    pub energy: Joules,
}

/// A lease as everybody may see it: without the command line of its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeaseView {
    /// The leased device.
    pub device: DeviceId,
    /// The name of the user who has leased it.
    pub user: String,
    /// The user's id; `None` if unknown.
    pub uid: Option<u32>,
    /// The id of the process that owns the lease; 0 for a job of a scheduler.
    pub pid: u32,
    /// The name of the scheduler's job.
    pub job: Option<String>,
    /// What the lease is for.
    pub kind: LeaseKind,
    /// The settings that the lease asks for.
    pub settings: Settings,
    /// How long the lease has lasted, in seconds.
    pub age_s: f64,
    /// How long the policy lets it last from now on, in seconds; `None` without a limit.
    pub left_s: Option<f64>,
}

/// Creates the two ends of a link: that of the privileged process, which never waits, and that of the other.
pub fn link_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )?;
    Ok((ours, theirs))
}

/// Connects to a measuring process that waits at a socket. It fails at once if that process does not take the connection.
pub fn connect_link(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let link = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&link, &SocketAddrUnix::new(path)?)?;
    Ok(link)
}

/// Accepts the privileged process at a socket; `None` if nobody waits there, or somebody who is not root. systemd lets only
/// root connect, but who is there decides what this process believes.
pub fn accept_link(listener: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let link = match accept_with(listener, flags) {
        Ok(link) => link,
        Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let peer = rustix::net::sockopt::socket_peercred(&link)?;
    Ok(peer.uid.is_root().then_some(link))
}

/// Sends a message, with the bytes and the socket that go with it. It fails at once if the other end does not keep up.
pub fn send_message(
    link: impl AsFd,
    message: &MonitorMessage,
    bytes: &[u8],
    socket: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let mut head = serde_json::to_vec(message)?;
    head.push(b'\n');
    if head.len() + bytes.len() > MAX_MESSAGE {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let parts = [IoSlice::new(&head), IoSlice::new(bytes)];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let sockets: Vec<BorrowedFd<'_>> = socket.into_iter().collect();
    if !sockets.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(link, &parts, &mut ancillary, flags)?;
    Ok(())
}

/// A message that was received.
#[derive(Debug)]
pub struct Received {
    /// The message.
    pub message: MonitorMessage,
    /// The bytes that came with it.
    pub bytes: Vec<u8>,
    /// The socket that came with it.
    pub socket: Option<OwnedFd>,
}

/// Receives the next message; `None` if the other end is closed.
pub fn receive_message(link: impl AsFd) -> io::Result<Option<Received>> {
    let mut buffer = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let length = recvmsg(link, &mut parts, &mut ancillary, flags)?.bytes;
    if length == 0 {
        return Ok(None);
    }
    let sockets = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let socket = sockets.flatten().next();
    buffer.truncate(length);
    let end = buffer.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or(io::ErrorKind::InvalidData)?;
    let bytes = buffer.split_off(end + 1);
    Ok(Some(Received {
        message: serde_json::from_slice(&buffer)?,
        bytes,
        socket,
    }))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_socket_keeps_its_peer_on_the_way() {
        let (ours, theirs) = link_pair().unwrap();
        let (client, server) = UnixStream::pair().unwrap();
        let message = MonitorMessage::Client {
            may_read_processors: false,
        };
        send_message(&ours, &message, b"GET / \n", Some(server.as_fd())).unwrap();
        drop(server);
        let received = receive_message(&theirs).unwrap().unwrap();
        assert_eq!(
            (received.message, &received.bytes[..]),
            (message, &b"GET / \n"[..])
        );
        let socket = UnixStream::from(received.socket.unwrap());
        let peer = rustix::net::sockopt::socket_peercred(&socket).unwrap();
        assert_eq!(peer.uid, rustix::process::getuid());
        (&client).write_all(b"more").unwrap();
        // A message without a socket, then the end.
        send_message(&ours, &MonitorMessage::Leases(Vec::new()), b"", None).unwrap();
        assert!(receive_message(&theirs).unwrap().unwrap().socket.is_none());
        assert_eq!(
            receive_message(&theirs).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        drop(ours);
        assert!(receive_message(&theirs).unwrap().is_none());
    }

    #[test]
    fn nothing_waits_for_a_process_that_does_not_read() {
        let (ours, _theirs) = link_pair().unwrap();
        let sent = |_: &u32| {
            send_message(&ours, &MonitorMessage::Leases(Vec::new()), &[0; 4096], None).is_ok()
        };
        let count = (0..10_000).take_while(sent).count();
        assert!((1..10_000).contains(&count));
    }
}
