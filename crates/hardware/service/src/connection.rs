//! A connection of a client: bytes in, replies out. Nothing here waits.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use sweetspot_guard::{
    MAX_REQUEST_LENGTH, Owner, Refusal, SETTINGS_PROTOCOL, SettingsReply, SettingsRequest,
};

use crate::caller::Caller;
use crate::requests::{Asker, Service};
use crate::zeus_backend::{ZeusBackend, answer_logged};
use crate::zeusd::{Answer, Backend, EventStream, RequestReader, Response};

/// The most bytes of replies that a client may leave unread.
const MAX_UNREAD: usize = 256 << 10;

/// The longest time in which a request must arrive once it has begun.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The time between two power readings of a stream.
pub const STREAM_PERIOD: Duration = Duration::from_millis(50);

/// The most requests that one connection may have answered before the others have their turn.
const REQUESTS_PER_TURN: usize = 16;

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
    /// Whether requests may have arrived that wait for their turn.
    pub has_waiting: bool,
    /// When the request began that has not arrived completely.
    partial_since: Option<Instant>,
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
            has_waiting: false,
            partial_since: None,
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

    /// What to wait for. A connection that is about to end is not read any more: what the client has sent would be
    /// waited for again and again.
    pub fn events(&self) -> PollFlags {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, !self.is_closing);
        events.set(PollFlags::OUT, !self.unsent.is_empty());
        events
    }

    /// When this connection must be served again although nothing arrives.
    pub fn next_event(&self) -> Option<Instant> {
        match &self.language {
            Language::Stream { next, .. } => Some(*next),
            _ => None,
        }
    }

    /// Whether a request began too long ago without being complete, or a client does not read the last reply.
    pub fn is_stuck(&self, now: Instant) -> bool {
        let began = self.partial_since;
        began.is_some_and(|began| now.saturating_duration_since(began) > REQUEST_TIMEOUT)
    }

    /// Reads what has arrived and answers it. An error means that the connection is over.
    pub fn serve(
        &mut self,
        service: &mut Service<'_>,
        is_allowed: IsAllowed<'_>,
    ) -> io::Result<()> {
        let is_open = self.read()?;
        self.answer_all(service, is_allowed);
        self.stream_power(service);
        self.partial_since = match self.is_closing || self.is_partial() {
            true => self.partial_since.or_else(|| Some(Instant::now())),
            false => None,
        };
        self.send()?;
        let is_unread = self.unsent.len() > MAX_UNREAD;
        if is_unread {
            service.log_refusal(&self.caller.owner, "connection", &Refusal::TooMany);
        }
        if !is_open && !self.has_waiting || self.is_closing && self.unsent.is_empty() || is_unread {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Reads once, as much as there is space for. Returns whether the client may send more.
    fn read(&mut self) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        let space = match &self.language {
            // A longer line is refused, so no more than that is stored.
            Language::Lines { received, .. } => {
                (MAX_REQUEST_LENGTH + 1).saturating_sub(received.len())
            }
            Language::Http(reader) => reader.room(),
            Language::Unknown | Language::Stream { .. } => chunk.len(),
        };
        if space == 0 || self.is_closing {
            return Ok(true);
        }
        let space = space.min(chunk.len());
        let length = match self.stream.read(&mut chunk[..space]) {
            Ok(0) => return Ok(false),
            Ok(length) => length,
            Err(error) if is_wait(&error) => return Ok(true),
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
        Ok(true)
    }

    /// Whether a request has begun to arrive and is not complete.
    fn is_partial(&self) -> bool {
        match &self.language {
            Language::Lines { received, .. } => !received.is_empty() && !received.contains(&b'\n'),
            Language::Http(reader) => reader.is_partial(),
            Language::Unknown | Language::Stream { .. } => false,
        }
    }

    /// Answers requests that are complete, but not too many at once.
    fn answer_all(&mut self, service: &mut Service<'_>, is_allowed: IsAllowed<'_>) {
        self.has_waiting = false;
        for _ in 0..REQUESTS_PER_TURN {
            if self.is_closing || self.unsent.len() > MAX_UNREAD {
                return;
            }
            let is_answered = match self.language {
                Language::Lines { .. } => self.answer_line(service, is_allowed),
                Language::Http(_) => self.answer_http(service, is_allowed),
                Language::Unknown | Language::Stream { .. } => false,
            };
            if !is_answered {
                return;
            }
        }
        self.has_waiting = true;
    }

    /// Answers the next line, if it is complete.
    fn answer_line(&mut self, service: &mut Service<'_>, is_allowed: IsAllowed<'_>) -> bool {
        let Language::Lines { received, greeted } = &mut self.language else {
            return false;
        };
        let Some(end) = received.iter().position(|byte| *byte == b'\n') else {
            if received.len() > MAX_REQUEST_LENGTH {
                let limit = format!("a request may have {MAX_REQUEST_LENGTH} bytes");
                self.refuse(service, "line", Refusal::Invalid(limit));
            }
            return false;
        };
        let line: Vec<u8> = received.drain(..=end).collect();
        let is_greeted = *greeted;
        if !is_allowed(self.caller.account.uid) {
            self.refuse(service, "line", Refusal::TooMany);
            return true;
        }
        let request = match serde_json::from_slice::<SettingsRequest>(&line) {
            Ok(request) => request,
            Err(error) => {
                self.refuse(service, "line", Refusal::Invalid(error.to_string()));
                return true;
            }
        };
        match request {
            SettingsRequest::Hello { version, job } => self.greet(service, version, job),
            _ if !is_greeted => {
                let text = "the first request must be hello, with the version of the messages";
                self.refuse(service, "line", Refusal::Invalid(text.to_owned()));
            }
            request => {
                let reply = service.answer(&self.asker, request);
                self.reply(&reply);
            }
        }
        true
    }

    /// Compares the versions of the messages, and takes note of the job that root acts for.
    fn greet(
        &mut self,
        service: &mut Service<'_>,
        version: u32,
        job: Option<sweetspot_guard::Job>,
    ) {
        if version != SETTINGS_PROTOCOL {
            let refusal = Refusal::OtherVersion {
                service: SETTINGS_PROTOCOL,
                client: version,
            };
            self.refuse(service, "hello", refusal);
            return;
        }
        if let Some(job) = job {
            if self.caller.account.uid != 0 {
                let text = "only root may lease devices for a job";
                self.refuse(service, "hello", Refusal::NotAllowed(text.to_owned()));
                return;
            }
            self.asker.owner = Owner::job(job.name, job.uid);
        }
        if let Language::Lines { greeted, .. } = &mut self.language {
            *greeted = true;
        }
        self.reply(&SettingsReply::Hello {
            version: SETTINGS_PROTOCOL,
        });
    }

    /// Answers the next HTTP request, if it is complete.
    fn answer_http(&mut self, service: &mut Service<'_>, is_allowed: IsAllowed<'_>) -> bool {
        let Language::Http(reader) = &mut self.language else {
            return false;
        };
        let request = match reader.next_request() {
            Ok(None) => return false,
            Ok(Some(request)) => request,
            Err(bad) => {
                service.log_refusal(
                    &self.caller.owner,
                    "http",
                    &Refusal::Invalid(bad.to_string()),
                );
                self.respond(&bad.to_response());
                return false;
            }
        };
        if !is_allowed(self.caller.account.uid) {
            service.log_refusal(&self.caller.owner, "http", &Refusal::TooMany);
            self.respond(&Response {
                close: request.close,
                ..Response::error(429, &Refusal::TooMany.to_string())
            });
            return true;
        }
        match answer_logged(service, &self.asker, &request) {
            Answer::Once(response) => self.respond(&response),
            Answer::Stream { gpus, stream } => {
                self.unsent.extend(stream.head());
                self.language = Language::Stream {
                    gpus,
                    stream,
                    next: Instant::now(),
                };
            }
        }
        true
    }

    /// Sends power readings to a client that asked for a stream, when they are due.
    fn stream_power(&mut self, service: &mut Service<'_>) {
        let Language::Stream { gpus, stream, next } = &mut self.language else {
            return;
        };
        let now = Instant::now();
        if now < *next {
            return;
        }
        *next = now + STREAM_PERIOD;
        let mut backend = ZeusBackend::new(service, &self.asker);
        for gpu in gpus {
            let time = backend.unix_time_ms();
            let event = backend
                .power(*gpu)
                .and_then(|power| stream.power_event(time, *gpu, power));
            // A reading that fails is left out, as with the original service.
            self.unsent.extend(event.unwrap_or_default());
        }
    }

    /// Sends an HTTP response.
    fn respond(&mut self, response: &Response) {
        self.unsent.extend(response.to_bytes());
        self.is_closing |= response.close;
    }

    /// Refuses a request that is not carried out, logs that, and closes the connection where the client does not follow
    /// the rules of the protocol.
    fn refuse(&mut self, service: &mut Service<'_>, request: &str, refusal: Refusal) {
        service.log_refusal(&self.caller.owner, request, &refusal);
        self.is_closing |= !matches!(refusal, Refusal::TooMany);
        self.reply(&SettingsReply::Refused(refusal));
    }

    /// Sends a reply as one line of JSON.
    fn reply(&mut self, reply: &SettingsReply) {
        match serde_json::to_vec(reply) {
            Ok(line) => {
                self.unsent.extend(line);
                self.unsent.push_back(b'\n');
            }
            Err(error) => {
                tracing::error!(%error, "cannot write a reply");
                self.is_closing = true;
            }
        }
    }

    /// Sends as much as the client takes.
    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(error) if is_wait(&error) => return Ok(()),
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
