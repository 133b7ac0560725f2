//! A connection of a client: bytes in, responses out. Nothing here waits.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use sweetspot_device::Moment;
use sweetspot_service::zeusd::{RequestReader, Response};

use crate::access::{Asker, TcpRules};
use crate::routes::{Answer, answer, counter_response, energies_response};
use crate::sample_stream::SampleStream;
use crate::state::State;
use crate::timeline::Total;

/// The longest time in which a request must arrive once it has begun, and in which a client must read some of a response.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which an idle connection is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// The most bytes of responses that may wait for a client before further requests are answered.
const MAX_UNSENT: usize = 64 << 10;
/// The most requests of a connection that are answered before the others have their turn.
const REQUESTS_PER_TURN: usize = 16;

/// The socket of a client.
#[derive(Debug)]
pub enum Stream {
    /// A client of the Unix socket.
    Unix(UnixStream),
    /// A client of TCP.
    Tcp(TcpStream),
}

impl Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

/// What a client waits for.
#[derive(Debug)]
struct Awaited {
    at: Moment,
    what: AwaitedDocument,
    /// Whether the connection is closed after it.
    close: bool,
    /// The energies of the GPUs, if the answer still waits for a reading of the processors.
    totals: Option<Vec<Total>>,
}

/// A document that is sent once the energies at a moment are known.
#[derive(Debug)]
enum AwaitedDocument {
    /// That of a counter of a user.
    Counter { uid: u32, name: String },
    /// That of all GPUs, for a request that was received then.
    Energies { received: Moment },
}

/// A connection of a client.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    /// Who has connected.
    pub asker: Asker,
    /// Whether the policy lets the user read the energy of the processors.
    may_read_processors: bool,
    /// The local address of a TCP connection.
    local: Option<SocketAddr>,
    reader: RequestReader,
    unsent: VecDeque<u8>,
    /// What is sent once the energies at a moment are known.
    awaited: Option<Awaited>,
    /// What is sent page by page, as fast as the client reads.
    samples: Option<SampleStream>,
    partial_since: Option<Instant>,
    unsent_since: Option<Instant>,
    /// When the client last sent something.
    pub used: Instant,
    has_waiting: bool,
    is_at_end: bool,
    is_closing: bool,
}

impl Client {
    /// Takes a client of the Unix socket with the bytes that were read from it. The kernel says who it is.
    pub fn local(stream: UnixStream, bytes: &[u8], may_read_processors: bool) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let peer = rustix::net::sockopt::socket_peercred(&stream)?;
        let asker = Asker::Local {
            uid: peer.uid.as_raw(),
            pid: peer.pid.as_raw_nonzero().get() as u32,
        };
        let mut client = Self::new(Stream::Unix(stream), asker, None);
        client.may_read_processors = may_read_processors;
        client.reader.push(bytes);
        client.has_waiting = !bytes.is_empty();
        Ok(client)
    }

    /// Takes a client of TCP.
    pub fn remote(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let local = stream.local_addr()?;
        Ok(Self::new(Stream::Tcp(stream), Asker::Remote, Some(local)))
    }

    fn new(stream: Stream, asker: Asker, local: Option<SocketAddr>) -> Self {
        Self {
            stream,
            asker,
            may_read_processors: false,
            local,
            reader: RequestReader::new(),
            unsent: VecDeque::new(),
            awaited: None,
            samples: None,
            partial_since: None,
            unsent_since: None,
            used: Instant::now(),
            has_waiting: false,
            is_at_end: false,
            is_closing: false,
        }
    }

    /// What the connection waits for. Input that would not be read must not wake the loop.
    pub fn events(&self) -> PollFlags {
        let mut events = PollFlags::empty();
        if self.wants_input() {
            events |= PollFlags::IN;
        }
        if !self.unsent.is_empty() {
            events |= PollFlags::OUT;
        }
        events
    }

    fn wants_input(&self) -> bool {
        !self.is_closing
            && !self.is_at_end
            && self.awaited.is_none()
            && self.samples.is_none()
            && self.unsent.len() <= MAX_UNSENT
            && self.reader.room() > 0
    }

    /// Whether requests that have arrived wait for their turn.
    pub const fn has_waiting_requests(&self) -> bool {
        self.has_waiting
    }

    /// The moment that the client waits for.
    pub fn awaits(&self) -> Option<Moment> {
        self.awaited.as_ref().map(|awaited| awaited.at)
    }

    /// Whether the client has not finished a request, or not read a response, in time, or has been idle for long.
    pub fn is_stuck(&self, now: Instant) -> bool {
        let began = [self.partial_since, self.unsent_since];
        let mut began = began.into_iter().flatten();
        began.any(|began| now.saturating_duration_since(began) > CLIENT_TIMEOUT)
            || self.awaited.is_none() && now.saturating_duration_since(self.used) > IDLE_TIMEOUT
    }

    /// Reads what has arrived and answers it. An error means that the connection is over.
    pub fn serve(&mut self, state: &mut State, rules: &TcpRules) -> io::Result<()> {
        self.read()?;
        self.answer_all(state, rules);
        self.add_page(state);
        let is_answered = !self.has_waiting && self.awaited.is_none() && self.samples.is_none();
        self.is_closing |= self.is_at_end && is_answered;
        let is_partial = self.reader.is_partial() && is_answered;
        self.partial_since = match is_partial {
            true => self.partial_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        self.send()?;
        // The next page follows in the next turn, after other clients have had theirs.
        self.has_waiting |= self.samples.is_some() && self.unsent.is_empty();
        match self.is_closing && self.unsent.is_empty() {
            true => Err(io::ErrorKind::ConnectionAborted.into()),
            false => Ok(()),
        }
    }

    /// Answers the request that waited for the energies at a moment.
    pub fn resolve(&mut self, state: &State, at: Moment, totals: &[Total]) {
        if let Some(awaited) = self.awaited.as_mut().filter(|awaited| awaited.at == at) {
            awaited.totals = Some(totals.to_vec());
            self.resolve_processors(state);
        }
    }

    /// Answers the request whose energies are known, unless it waits for a reading of the processors.
    pub fn resolve_processors(&mut self, state: &State) {
        let may_read = self.may_read_processors;
        let is_known = |awaited: &mut Awaited| {
            let is_counter = matches!(awaited.what, AwaitedDocument::Counter { .. });
            let waits = may_read && is_counter;
            awaited.totals.is_some()
                && !(waits && state.processors.is_awaited(awaited.at, state.meter.now()))
        };
        let Some(awaited) = self.awaited.take_if(is_known) else {
            return;
        };
        let totals = awaited.totals.unwrap_or_default();
        let mut response = match awaited.what {
            AwaitedDocument::Counter { uid, name } => {
                counter_response(state, uid, &name, awaited.at, &totals, may_read)
            }
            AwaitedDocument::Energies { received } => {
                energies_response(state, awaited.at, received, &totals)
            }
        };
        response.close |= awaited.close;
        self.respond(&response);
        self.has_waiting = true;
    }

    /// Adds the next page of a stream once the client has read most of those before. The connection is closed after the
    /// last one.
    fn add_page(&mut self, state: &State) {
        let Some(samples) = &mut self.samples else {
            return;
        };
        if self.unsent.len() > MAX_UNSENT {
            return;
        }
        match samples.next_page(state) {
            Some(page) => self.unsent.extend(page),
            None => {
                self.samples = None;
                self.is_closing = true;
            }
        }
    }

    /// The number of bytes that the client has not read yet.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    /// Reads once, as much as there is space for.
    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; 8192];
        if !self.wants_input() {
            return Ok(());
        }
        let space = self.reader.room().min(chunk.len());
        match self.stream.read(&mut chunk[..space]) {
            Ok(0) => self.is_at_end = true,
            Ok(length) => {
                self.used = Instant::now();
                self.reader.push(&chunk[..length]);
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Answers requests that are complete, but not too many at once.
    fn answer_all(&mut self, state: &mut State, rules: &TcpRules) {
        self.has_waiting = false;
        for number in 0.. {
            if self.is_closing || self.awaited.is_some() || self.samples.is_some() {
                return;
            }
            if self.unsent.len() > MAX_UNSENT {
                return;
            }
            if number == REQUESTS_PER_TURN {
                self.has_waiting = true;
                return;
            }
            let request = match self.reader.next_request() {
                Ok(None) => return,
                Ok(Some(request)) => request,
                Err(bad) => {
                    self.respond(&bad.to_response());
                    return;
                }
            };
            if let Some(local) = &self.local
                && let Err(refusal) = rules.check(&request, local)
            {
                self.respond(&refusal);
                return;
            }
            match answer(state, self.asker, &request) {
                Answer::Now(response) => self.respond(&response),
                Answer::Counter { uid, name, at } => {
                    // The energies at the stop of a counter may be known already.
                    let known = state
                        .counters
                        .document(uid, &name, &state.names, None, None);
                    let is_known = known.is_ok_and(|known| known.energy_j.is_some());
                    self.awaited = Some(Awaited {
                        at,
                        what: AwaitedDocument::Counter { uid, name },
                        close: request.close,
                        totals: is_known.then(Vec::new),
                    });
                    self.resolve_processors(state);
                }
                Answer::Samples(samples) => {
                    self.unsent.extend(samples.head());
                    self.samples = Some(samples);
                }
                Answer::Energies { at, received } => {
                    self.awaited = Some(Awaited {
                        at,
                        what: AwaitedDocument::Energies { received },
                        close: request.close,
                        totals: None,
                    });
                }
            }
        }
    }

    fn respond(&mut self, response: &Response) {
        self.unsent.extend(response.to_bytes());
        self.is_closing |= response.close;
    }

    /// Sends as much as the client takes.
    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    self.unsent.drain(..length);
                    self.unsent_since = None;
                    self.used = Instant::now();
                }
                Err(error) if is_wait(&error) => {
                    self.unsent_since.get_or_insert_with(Instant::now);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        // Long responses leave much memory behind.
        if self.unsent.capacity() > MAX_UNSENT {
            self.unsent = VecDeque::new();
        }
        Ok(())
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Whether a read or write may be tried again later.
pub fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
