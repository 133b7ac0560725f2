//! The connection between a client and its guard: a pair of sockets without a name, which no other process can reach.
//!
//! The guard gets its end as standard input. The workload needs the client's standard input, so the client passes that
//! over the connection first.

use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::protocol::{Reply, send};

/// The longest wait of a guard for its client's standard input, which the client sends at once.
const INPUT_TIMEOUT: Duration = Duration::from_secs(20);

/// Starts `program` as a guard process and returns the connection to it.
pub fn start_guard(mut program: Command) -> io::Result<(UnixStream, Child)> {
    let (own, guards) = UnixStream::pair()?;
    // The guard has its own process group, so that signals to the client's group do not reach it.
    let child = program
        .stdin(Stdio::from(OwnedFd::from(guards)))
        .process_group(0)
        .spawn()?;
    // The command keeps the guard's end open: the client could not notice that the guard has ended.
    drop(program);
    // A guard that has ended already is noticed by the caller, which reads its replies.
    let _ = pass_standard_input(&own);
    Ok((own, child))
}

/// Sends this process's standard input to the guard.
fn pass_standard_input(stream: &UnixStream) -> io::Result<()> {
    let stdin = io::stdin();
    let inputs = [stdin.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&inputs));
    let content = [IoSlice::new(b"\n")];
    sendmsg(stream, &content, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// A guard's connection to the client that started it.
#[derive(Debug)]
pub struct ClientConnection {
    pub(crate) stream: UnixStream,
    /// The client's standard input, for the workload.
    pub(crate) input: OwnedFd,
}

impl ClientConnection {
    /// Takes the connection that a client has made this process's standard input, and tells the client so.
    pub fn from_standard_input() -> io::Result<Self> {
        let not_a_client = || {
            io::Error::other(
                "standard input is not a connection to a client: this command is started by sweetspot itself",
            )
        };
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        let peer = socket_peercred(&stdin).map_err(|_| not_a_client())?;
        if peer.uid != rustix::process::geteuid() {
            return Err(io::Error::other("the client belongs to another user"));
        }
        let mut stream = UnixStream::from(stdin);
        stream.set_read_timeout(Some(INPUT_TIMEOUT))?;
        let input = receive_input(&stream)?.ok_or_else(not_a_client)?;
        stream.set_read_timeout(None)?;
        send(&mut stream, &Reply::Pong)?;
        stream.flush()?;
        Ok(Self { stream, input })
    }
}

/// Receives the client's standard input; `None` if the client sends something else.
fn receive_input(stream: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut content = [0];
    recvmsg(
        stream,
        &mut [IoSliceMut::new(&mut content)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut messages = ancillary.drain();
    Ok(messages.find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    }))
}
