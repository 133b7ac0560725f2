//! The client's end of a connection, and the user whom the kernel reports for it.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use sweetspot_guard::SettingsReply;
use sweetspot_service::{Connection, Service};

use super::random::Random;

/// The user for whom the connections are, if the test runs as root: root may do everything.
const NOBODY: u32 = 65534;

/// Pairs of sockets that belong to a user without rights.
pub struct Sockets {
    orders: Sender<()>,
    pairs: Receiver<(UnixStream, UnixStream)>,
    pub uid: u32,
}

impl Sockets {
    /// Starts a thread that makes sockets. As root it first becomes nobody; the kernel keeps user ids for each thread.
    pub fn new() -> Self {
        let own = rustix::process::getuid().as_raw();
        let (orders, ordered) = channel();
        let (sender, pairs) = channel();
        std::thread::spawn(move || {
            if own == 0 {
                become_nobody();
            }
            while ordered.recv().is_ok() {
                sender.send(UnixStream::pair().unwrap()).unwrap();
            }
        });
        let uid = if own == 0 { NOBODY } else { own };
        Self { orders, pairs, uid }
    }

    /// Makes a connection to the service.
    pub fn connect(&self) -> Client {
        self.orders.send(()).unwrap();
        let (stream, served) = self.pairs.recv().unwrap();
        stream.set_nonblocking(true).unwrap();
        let connection = Connection::new(served).unwrap();
        assert_eq!(connection.uid(), self.uid);
        Client {
            stream,
            connection,
            sent: Vec::new(),
            received: Vec::new(),
            is_open: true,
        }
    }
}

/// Makes the calling thread one of nobody. The functions of the C library would change all threads.
#[allow(unsafe_code)]
fn become_nobody() {
    // SAFETY: these calls take numbers alone, and no list of groups.
    let results = unsafe {
        [
            libc::syscall(libc::SYS_setgroups, 0, 0),
            libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY),
            libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY),
        ]
    };
    assert_eq!(results, [0; 3]);
}

/// A client with its connection.
pub struct Client {
    stream: UnixStream,
    pub connection: Connection,
    /// Everything that the client has sent.
    pub sent: Vec<u8>,
    /// The replies that have not been looked at.
    pub received: Vec<u8>,
    pub is_open: bool,
}

impl Client {
    /// Sends bytes in pieces, and lets the service answer after each of them.
    pub fn send(&mut self, bytes: &[u8], service: &mut Service<'_>, random: &mut Random) {
        let mut rest = bytes;
        while !rest.is_empty() && self.is_open {
            let length = match random.once_in(3) {
                true => 1 + random.below(rest.len()),
                false => rest.len(),
            };
            self.sent.extend(&rest[..length]);
            let mut piece = &rest[..length];
            rest = &rest[length..];
            while !piece.is_empty() && self.is_open {
                match self.stream.write(piece) {
                    Ok(written) => piece = &piece[written..],
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => self.is_open = false,
                }
                self.serve(service, random);
            }
        }
    }

    /// Lets the service read and answer what has been sent.
    pub fn serve(&mut self, service: &mut Service<'_>, random: &mut Random) {
        /// More turns than any input needs: an endless loop ends the test.
        const MAX_TURNS: usize = 4000;
        let mut is_allowed = |_| !random.once_in(500);
        for turn in 0.. {
            assert!(turn < MAX_TURNS, "the connection does not come to rest");
            let served = self.connection.serve(service, &mut is_allowed);
            let has_read = self.read();
            if served.is_err() {
                self.is_open = false;
                return;
            }
            let has_more = self.connection.has_waiting_requests() || self.connection.has_unsent();
            if !has_more && !has_read && unread(&self.connection.stream) == 0 {
                return;
            }
        }
    }

    /// Reads the replies. Returns whether there were any.
    fn read(&mut self) -> bool {
        let before = self.received.len();
        let mut chunk = [0; 16384];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) | Err(_) => return self.received.len() > before,
                Ok(length) => self.received.extend(&chunk[..length]),
            }
        }
    }

    /// The replies that have come as lines; an error if one is malformed.
    pub fn replies(&mut self) -> Result<Vec<SettingsReply>, serde_json::Error> {
        let lines = self.received.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        let replies = lines.map(serde_json::from_slice).collect();
        self.received.clear();
        replies
    }
}

/// The number of bytes that wait to be read from a socket.
fn unread(stream: &UnixStream) -> u64 {
    rustix::io::ioctl_fionread(stream).unwrap()
}
