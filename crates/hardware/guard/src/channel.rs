//! The client's end of the socket: no read and no write waits without end.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::protocol::{Reply, Request};

/// The longest single wait. Limits are counted in such slices, each of which counts no more than its length:
/// a client that was itself stopped for a while has not waited for its guard.
pub(crate) const SLICE: Duration = Duration::from_millis(20);

/// Replies as they come; what came of a line stays until its rest is there.
#[derive(Debug)]
pub(crate) struct Replies {
    stream: UnixStream,
    received: Vec<u8>,
    /// The longest wait of a read.
    wait: Duration,
}

/// Makes every single read and write of a socket short.
pub(crate) fn limit_waits(stream: &UnixStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SLICE))?;
    stream.set_write_timeout(Some(SLICE))
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

impl Replies {
    pub fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            wait: SLICE,
        }
    }

    /// The next reply, or nothing where it does not come in time, which is a slice at most.
    pub fn next(&mut self, at_most: Duration) -> io::Result<Option<Reply>> {
        // The system takes no time at all for no limit.
        let wait = at_most.clamp(Duration::from_millis(1), SLICE);
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
                Ok(0) => return Err(io::Error::other("it closed its socket")),
                Ok(length) => self.received.extend_from_slice(&chunk[..length]),
                Err(error) if is_wait(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Tells the guard that its client is gone.
    pub fn close(&self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Sends a request, unless the guard does not take it within the limit.
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
                waited += begun.elapsed().min(SLICE);
                if waited >= limit {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
