//! A connection of a client: bytes in, replies out. Nothing here waits.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use sweetspot_guard::{MAX_REQUEST_LENGTH, Owner, Refusal};

use crate::caller::Caller;
use crate::requests::{Asker, Service};
use crate::zeusd::{EventStream, RequestReader};

mod answer;

/// The most bytes of replies that a client may leave unread.
const MAX_UNREAD: usize = 256 << 10;

/// The longest time in which a request must arrive once it has begun, and in which a client must read some of the replies
/// that wait for it.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two power readings of a stream.
pub const STREAM_PERIOD: Duration = Duration::from_millis(50);

/// What a client speaks.
enum Language {
    /// Nothing has arrived yet.
    Unknown,
    /// One JSON object per line; `greeted` is whether the versions were compared.
    Lines {
        received: VecDeque<u8>,
        greeted: bool,
    },
    /// HTTP, as the clients of Zeus do.
    Http(RequestReader),
    /// A stream of power readings, which the client only reads.
    Stream {
        gpus: Vec<u32>,
        stream: EventStream,
        next: Instant,
    },
}

/// Whether one more request of this user may be answered now.
pub type IsAllowed<'a> = &'a mut dyn FnMut(u32) -> bool;

/// A connection of a client.
pub struct Connection {
    /// The socket.
    pub stream: UnixStream,
    /// Who has connected.
    pub caller: Caller,
    asker: Asker,
    language: Language,
    unsent: VecDeque<u8>,
    /// When the request began that has not arrived completely.
    partial_since: Option<Instant>,
    /// When the client last took some of the replies that wait to be sent.
    unsent_since: Option<Instant>,
    /// Whether requests that have arrived wait for the next turn.
    has_waiting: bool,
    /// Whether the client sends no more.
    is_at_end: bool,
    /// Whether the connection ends when everything is sent.
    is_closing: bool,
}

impl Connection {
    /// Takes a connection, after it has asked the kernel who is at its other end.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let caller = Caller::of(&stream)?;
        Ok(Self {
            asker: Asker {
                account: caller.account.clone(),
                owner: caller.owner.clone(),
            },
            stream,
            caller,
            language: Language::Unknown,
            unsent: VecDeque::new(),
            partial_since: None,
            unsent_since: None,
            has_waiting: false,
            is_at_end: false,
            is_closing: false,
        })
    }

    /// The user of the client.
    pub fn uid(&self) -> u32 {
        self.caller.account.uid
    }

    /// The owner of the leases that are taken over this connection.
    pub fn owner(&self) -> &Owner {
        &self.asker.owner
    }

    /// Whether replies wait to be sent.
    pub fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether requests that have arrived wait for their turn.
    pub fn has_waiting_requests(&self) -> bool {
        self.has_waiting
    }

    /// What the connection waits for. Input that would not be read must not wake the service.
    pub fn events(&self) -> PollFlags {
        let mut events = PollFlags::empty();
        if self.space() > 0 {
            events |= PollFlags::IN;
        }
        if self.has_unsent() {
            events |= PollFlags::OUT;
        }
        events
    }

    /// When this connection must be served again although nothing arrives.
    pub fn next_event(&self) -> Option<Instant> {
        match &self.language {
            Language::Stream { next, .. } => Some(*next),
            _ => None,
        }
    }

    /// Whether the client has not finished a request, or has not read its replies, for too long.
    pub fn is_stuck(&self, now: Instant) -> bool {
        let began = [self.partial_since, self.unsent_since];
        let mut began = began.into_iter().flatten();
        began.any(|began| now.saturating_duration_since(began) > CLIENT_TIMEOUT)
    }

    /// Reads what has arrived and answers it. An error means that the connection is over.
    pub fn serve(
        &mut self,
        service: &mut Service<'_>,
        is_allowed: IsAllowed<'_>,
    ) -> io::Result<()> {
        self.read()?;
        self.answer_all(service, is_allowed);
        self.stream_power(service);
        // What a client has sent completely is answered, even if it sends no more.
        self.is_closing |= self.is_at_end && !self.has_waiting;
        self.partial_since = match self.is_partial() && !self.has_waiting {
            true => self.partial_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        self.send()?;
        let is_unread = self.unsent.len() > MAX_UNREAD;
        if is_unread {
            service.log_refusal(&self.caller.owner, "connection", &Refusal::TooMany);
        }
        let is_over = self.is_closing && self.unsent.is_empty()
            || self.is_at_end && matches!(self.language, Language::Stream { .. })
            || is_unread;
        match is_over {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// The number of bytes to read next. It is 0 while nothing more is wanted.
    fn space(&self) -> usize {
        /// The most bytes that are read at once.
        const MAX_READ: usize = 4096;
        if self.is_closing || self.is_at_end {
            return 0;
        }
        let space = match &self.language {
            // A longer line is refused, so no more than that is stored.
            Language::Lines { received, .. } => {
                (MAX_REQUEST_LENGTH + 1).saturating_sub(received.len())
            }
            Language::Http(reader) => reader.room(),
            Language::Unknown | Language::Stream { .. } => MAX_READ,
        };
        space.min(MAX_READ)
    }

    /// Reads once, as much as there is space for.
    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4096];
        let space = self.space();
        if space == 0 {
            return Ok(());
        }
        let length = match self.stream.read(&mut chunk[..space]) {
            Ok(0) => {
                self.is_at_end = true;
                return Ok(());
            }
            Ok(length) => length,
            Err(error) if is_wait(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = &chunk[..length];
        if matches!(self.language, Language::Unknown) {
            self.language = match bytes[0] {
                b'{' => Language::Lines {
                    received: VecDeque::new(),
                    greeted: false,
                },
                _ => Language::Http(RequestReader::new()),
            };
        }
        match &mut self.language {
            Language::Lines { received, .. } => received.extend(bytes),
            Language::Http(reader) => reader.push(bytes),
            // What follows the request for a stream is ignored.
            Language::Unknown | Language::Stream { .. } => {}
        }
        Ok(())
    }

    /// Whether a request has begun to arrive and is not complete.
    fn is_partial(&self) -> bool {
        match &self.language {
            Language::Lines { received, .. } => !received.is_empty() && !received.contains(&b'\n'),
            Language::Http(reader) => reader.is_partial(),
            Language::Unknown | Language::Stream { .. } => false,
        }
    }

    /// Sends as much as the client takes.
    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    self.unsent.drain(..length);
                    self.unsent_since = None;
                }
                Err(error) if is_wait(&error) => {
                    self.unsent_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a read or write may be tried again later.
fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
