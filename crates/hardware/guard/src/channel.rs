//! The client's end of the socket to the guard process. No read or write blocks for longer than a time limit.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::protocol::{Reply, Request};

/// The longest time that a single read or write of the socket may block. A longer timeout consists of several
/// such waits, so time in which the client itself was stopped (as by Ctrl-Z) hardly counts.
pub(crate) const MAX_SINGLE_WAIT: Duration = Duration::from_millis(20);

/// Reads the guard's replies, one per line. An incomplete line is buffered until the rest arrives.
#[derive(Debug)]
pub(crate) struct Replies {
    stream: UnixStream,
    received: Vec<u8>,
    /// The read timeout that is set on the socket now.
    wait: Duration,
}

/// Sets the socket's read and write timeouts to [`MAX_SINGLE_WAIT`].
pub(crate) fn limit_waits(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(MAX_SINGLE_WAIT))?;
    stream.set_write_timeout(Some(MAX_SINGLE_WAIT))
}

/// Whether a read or write only timed out or was interrupted by a signal, so it may be tried again.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

impl Replies {
    /// Creates the reader of the guard's replies.
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            wait: MAX_SINGLE_WAIT,
        }
    }

    /// The next reply; `None` if none arrives within `at_most` or [`MAX_SINGLE_WAIT`], whichever is shorter.
    pub fn next_within(&mut self, at_most: Duration) -> io::Result<Option<Reply>> {
        // The system rejects a timeout of zero.
        let wait = at_most.clamp(Duration::from_millis(1), MAX_SINGLE_WAIT);
        if wait != self.wait {
            self.stream.set_read_timeout(Some(wait))?;
            self.wait = wait;
        }
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::Error::other("the guard closed its socket")),
                Ok(length) => self.received.extend_from_slice(&chunk[..length]),
                Err(error) if is_wait(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Closes the socket. The guard then restores all settings, as if the client had ended.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Sends a request to the guard. It is an error if the guard does not read it within `limit`.
pub(crate) fn send_within(
    mut stream: &UnixStream,
    request: &Request,
    limit: Duration,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let mut rest = &line[..];
    let mut waited = Duration::ZERO;
    while !rest.is_empty() {
        let begun = Instant::now();
        match stream.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(length) => rest = &rest[length..],
            Err(error) if is_wait(&error) => {
                waited += begun.elapsed().min(MAX_SINGLE_WAIT);
                if waited >= limit {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
