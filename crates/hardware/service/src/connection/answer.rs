//! Answers the requests of a connection.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use sweetspot_guard::{
    Job, MAX_REQUEST_LENGTH, Owner, Refusal, SETTINGS_PROTOCOL, SettingsReply, SettingsRequest,
};

use super::{Connection, IsAllowed, Language, MAX_UNREAD, STREAM_PERIOD};
use crate::monitor::is_measuring_path;
use crate::requests::Service;
use crate::zeus_backend::{ZeusBackend, answer_logged};
use crate::zeusd::{Answer, Response, is_zeusd_path};

/// The most requests that one connection may have answered before the others have their turn.
const REQUESTS_PER_TURN: usize = 16;

/// The time after which a turn ends. A driver may need some hundred milliseconds for a single change.
pub const TURN_TIME: Duration = Duration::from_millis(20);

impl Connection {
    /// Answers requests that are complete, but not too many at once.
    pub(super) fn answer_all(&mut self, service: &mut Service<'_>, is_allowed: IsAllowed<'_>) {
        let begun = Instant::now();
        self.has_waiting = false;
        for number in 0.. {
            if self.is_closing || self.unsent.len() > MAX_UNREAD {
                return;
            }
            if number >= REQUESTS_PER_TURN || begun.elapsed() > TURN_TIME {
                self.has_waiting = true;
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
    fn greet(&mut self, service: &mut Service<'_>, version: u32, job: Option<Job>) {
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
            // What the job may set is what its user may set.
            self.asker.account = service.job_account(job.uid);
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
        let is_theirs = reader.next_path().is_some_and(|path| !is_zeusd_path(path));
        if is_theirs && service.monitor.is_some() && self.unsent.is_empty() {
            self.hand_over(service);
            return false;
        }
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
        if service.monitor.is_none() && is_measuring_path(&request.path) {
            let text = "this service does not measure: start it without --no-monitor";
            self.respond(&Response {
                close: request.close,
                ..Response::error(404, text)
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

    /// Passes the client to the measuring process, with what it has sent. Whoever it is, the kernel tells that process.
    fn hand_over(&mut self, service: &Service<'_>) {
        let language = std::mem::replace(&mut self.language, Language::Unknown);
        let bytes = match language {
            Language::Http(reader) => reader.into_unread(),
            _ => Vec::new(),
        };
        let monitor = service.monitor.as_ref();
        let may_read = service.may_read_processors(&self.caller.account);
        let passed =
            monitor.map(|monitor| monitor.hand_over(self.stream.as_fd(), &bytes, may_read));
        self.is_closing = true;
        if !matches!(passed, Some(Ok(()))) {
            let text = "the measuring process does not answer: try again in a second";
            self.respond(&Response {
                close: true,
                ..Response::error(503, text)
            });
        }
    }

    /// Sends power readings to a client that asked for a stream, when they are due.
    pub(super) fn stream_power(&mut self, service: &mut Service<'_>) {
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
            let event = backend
                .streamed_power(*gpu, now)
                .and_then(|(time, power)| stream.power_event(time, *gpu, power));
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
}
