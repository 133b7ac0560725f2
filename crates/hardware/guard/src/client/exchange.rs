//! Sends requests to a guard and waits for its replies; a guard that does not reply in time is killed.

use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Guard;
use super::process::kill;
use crate::channel::{MAX_SINGLE_WAIT, send_within};
use crate::error::GuardError;
use crate::protocol::{Reply, Request};
use crate::refusal::Refusal;
use crate::timeouts::GuardTimeouts;

/// The time to restore all devices after a second interruption. A healthy guard needs a few milliseconds.
const URGENT_TIMEOUT: Duration = Duration::from_millis(500);

impl Guard {
    /// How long the guard may take to reply to a request, given the number of leased devices.
    pub(super) fn reply_limit(&self) -> Duration {
        self.timeouts.answer + self.timeouts.answer_per_device * self.leased
    }

    /// Sends a request; kills the guard if it does not read the request in time.
    pub(super) fn send(&mut self, request: &Request) -> Result<(), GuardError> {
        let limit = self.timeouts.answer;
        let sent = {
            let stream = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            send_within(&stream, request, limit)
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => self.kill_unresponsive(limit),
            _ => GuardError::Gone(error.to_string()),
        })
    }

    /// Kills a guard that does not reply in time, with SIGKILL because that also ends a stopped process.
    fn kill_unresponsive(&mut self, limit: Duration) -> GuardError {
        kill(&mut self.child);
        GuardError::Gone(format!("no reply within {} s", limit.as_secs_f64()))
    }

    /// The guard's next reply; `None` if none arrives within `at_most`. A guard that does not confirm an
    /// interruption in time is an error.
    pub(super) fn next_reply(&mut self, at_most: Duration) -> Result<Option<Reply>, GuardError> {
        let begun = Instant::now();
        let reply = self.replies.next_within(at_most);
        let reply = reply.map_err(|error| GuardError::Gone(error.to_string()))?;
        if reply.is_some() {
            (self.silent_for, self.was_pinged) = (Duration::ZERO, false);
        }
        if let Some(Reply::Released { .. }) = reply {
            let fewer = |count: usize| count.checked_sub(1);
            let _ = self
                .interruptions
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer);
            self.interrupted_for = Duration::ZERO;
        }
        if reply.is_none() {
            let waited = begun.elapsed().min(MAX_SINGLE_WAIT);
            self.silent_for += waited;
            if self.interruptions.load(Ordering::Acquire) > 0 {
                self.interrupted_for += waited;
            }
            let limit = match self.is_urgent.load(Ordering::Acquire) {
                true => URGENT_TIMEOUT.min(self.timeouts.interruption),
                false => self.timeouts.interruption,
            };
            if self.interrupted_for > limit {
                return Err(self.kill_unresponsive(limit));
            }
        }
        Ok(reply)
    }

    /// Sends a ping if the guard has sent nothing for too long.
    pub(super) fn ping_if_silent(&mut self) -> Result<(), GuardError> {
        let GuardTimeouts { silence, ping, .. } = self.timeouts;
        if self.silent_for > silence && !self.was_pinged {
            self.was_pinged = true;
            self.send(&Request::Ping)?;
        }
        if self.silent_for > silence + ping {
            return Err(self.kill_unresponsive(silence + ping));
        }
        Ok(())
    }

    /// Waits for the reply to a request; kills the guard if it takes longer than `limit`.
    pub(super) fn reply_within(&mut self, limit: Duration) -> Result<Reply, GuardError> {
        self.silent_for = Duration::ZERO;
        loop {
            match self.next_reply(MAX_SINGLE_WAIT)? {
                Some(reply) => return Ok(reply),
                None if self.silent_for > limit => return Err(self.kill_unresponsive(limit)),
                None => {}
            }
        }
    }

    /// Sends a request and waits for its reply; a refusal is an error.
    pub(super) fn request(&mut self, request: &Request) -> Result<Reply, GuardError> {
        self.send(request)?;
        let limit = self.reply_limit();
        loop {
            match self.reply_within(limit)? {
                Reply::Refused(reason) => return Err(GuardError::Refused(reason)),
                Reply::Pong => {}
                Reply::Released { problems } => {
                    self.released.get_or_insert_default().extend(problems);
                }
                Reply::Ended(end) => self.ended = Some(end),
                reply => return Ok(reply),
            }
        }
    }
}

/// The error for a reply that is not the expected one: a refusal, an interruption or a reply to another request.
pub(super) fn unexpected(reply: Reply) -> GuardError {
    match reply {
        Reply::Refused(reason) => GuardError::Refused(reason),
        Reply::Released { .. } => GuardError::Refused(Refusal::Interrupted),
        other => GuardError::Gone(format!("unexpected reply {other:?}")),
    }
}
