//! The client's handle to a guard process.

use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use crate::channel::{MAX_SINGLE_WAIT, Replies, limit_waits, send_within};
use crate::connection::start_guard;
use crate::error::GuardError;
use crate::owner::Owner;
use crate::protocol::{Reply, Request, WorkloadCommand, WorkloadEnd};
use crate::refusal::{Refusal, RestoreError, RestoreOutcome};
use crate::timeouts::GuardTimeouts;

/// A message that a guard sends on its own, or in reply to an interruption.
#[derive(Clone, Debug, PartialEq)]
pub enum GuardMessage {
    /// The workload's command has ended.
    Ended(WorkloadEnd),
    /// The devices were restored after an interruption, except those for which there is an error.
    Released(Vec<RestoreError>),
}

/// The longest wait for a guard to start.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest wait for a killed process to end. A process that is blocked in a driver does not end.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// The client's handle to a running guard process. Dropping it makes the guard restore all settings and exit.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    replies: Replies,
    requests: Arc<Mutex<UnixStream>>,
    timeouts: GuardTimeouts,
    /// The number of leased devices.
    leased: u32,
    /// The number of interruptions that the guard has not confirmed.
    interruptions: Arc<AtomicUsize>,
    /// The time since the oldest unconfirmed interruption.
    interrupted_for: Duration,
    /// The time since the guard's last message.
    silent_for: Duration,
    /// Whether a ping was sent since the guard's last message.
    was_pinged: bool,
    /// The reply to an interruption, stored here if it arrived while the client waited for another reply.
    released: Option<Vec<RestoreError>>,
    /// The message that the workload ended, stored here if it arrived while the client waited for a reply.
    ended: Option<WorkloadEnd>,
    kept_problems: Vec<RestoreError>,
}

impl Guard {
    /// Starts `program` as the guard process.
    pub fn start(program: Command) -> Result<Self, GuardError> {
        let start_error = |error: io::Error| GuardError::CannotStart(error.to_string());
        let (stream, child) = start_guard(program).map_err(start_error)?;
        limit_waits(&stream).map_err(start_error)?;
        let mut guard = Self {
            child,
            replies: Replies::new(stream.try_clone().map_err(start_error)?),
            requests: Arc::new(Mutex::new(stream)),
            timeouts: GuardTimeouts::default(),
            leased: 0,
            interruptions: Arc::default(),
            interrupted_for: Duration::ZERO,
            silent_for: Duration::ZERO,
            was_pinged: false,
            released: None,
            ended: None,
            kept_problems: Vec::new(),
        };
        guard.wait_for_start().map_err(start_error)?;
        Ok(guard)
    }

    /// Waits for the guard's first message, unless it exits instead.
    fn wait_for_start(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            match self.replies.next_within(MAX_SINGLE_WAIT) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if begun.elapsed() < START_TIMEOUT => {}
                Ok(None) => {
                    kill(&mut self.child);
                    return Err(io::Error::other("the process did not start in time"));
                }
                Err(_) => {
                    let ended = wait_for_exit(&mut self.child, KILL_TIMEOUT);
                    let status = ended.map_or("unknown status".to_owned(), |it| it.to_string());
                    let problem = format!("the process exited immediately: {status}");
                    return Err(io::Error::other(problem));
                }
            }
        }
    }

    /// Replaces the default timeouts.
    pub fn set_timeouts(&mut self, timeouts: GuardTimeouts) {
        self.timeouts = timeouts;
    }

    /// Reserves devices for this client. Settings that an earlier guard did not restore are restored first; the
    /// result describes them.
    pub fn lease(&mut self, devices: Vec<DeviceId>) -> Result<Vec<RestoreOutcome>, GuardError> {
        let owner = Owner::current_process();
        self.leased += u32::try_from(devices.len()).unwrap_or(u32::MAX);
        match self.request(&Request::Lease { devices, owner })? {
            Reply::Leased { notes } => Ok(notes),
            other => Err(unexpected(other)),
        }
    }

    /// Applies settings to a leased device.
    pub fn apply(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<AppliedSettings, GuardError> {
        let request = Request::Apply {
            device: device.clone(),
            settings: *settings,
        };
        match self.request(&request)? {
            Reply::Applied(applied) => Ok(applied),
            other => Err(unexpected(other)),
        }
    }

    /// Restores the settings that a device had before it was leased. The device stays leased.
    pub fn restore(&mut self, device: &DeviceId) -> Result<(), GuardError> {
        let device = device.clone();
        match self.request(&Request::Restore { device })? {
            Reply::Restored => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Reads the present settings of a leased device. Those that the device cannot report are absent.
    pub fn settings(&mut self, device: &DeviceId) -> Result<Settings, GuardError> {
        let device = device.clone();
        match self.request(&Request::Settings { device })? {
            Reply::Settings(settings) => Ok(settings),
            other => Err(unexpected(other)),
        }
    }

    /// Ends all processes of the workload and returns whether none is left. Settings and leases are not
    /// changed.
    pub fn end_workload(&mut self) -> Result<bool, GuardError> {
        match self.request(&Request::EndWorkload)? {
            Reply::WorkloadEnded { all } => Ok(all),
            other => Err(unexpected(other)),
        }
    }

    /// Starts the workload; its end arrives as a [`GuardMessage`].
    pub fn start_workload(&mut self, start: WorkloadCommand) -> Result<(), GuardError> {
        let program = start.command.first().cloned().unwrap_or_default();
        self.ended = None;
        match self.request(&Request::Start(start))? {
            Reply::Started => Ok(()),
            Reply::NotStarted { missing, reason } => Err(GuardError::NotStarted {
                program: String::from_utf8_lossy(&program).into_owned(),
                missing,
                reason,
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Returns a function with which another thread, such as a signal handler's, tells the guard to restore all
    /// settings at once.
    pub fn interrupter(&self) -> impl FnMut(i32, bool) + Send + 'static {
        let (stream, count) = (self.requests.clone(), self.interruptions.clone());
        let limit = self.timeouts.interruption;
        move |signal, pass_on| {
            count.fetch_add(1, Ordering::AcqRel);
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            // If the guard does not receive this, it does not reply either, which the waiting thread notices.
            let _ = send_within(&stream, &Request::Interrupt { signal, pass_on }, limit);
        }
    }

    /// Stores errors of earlier restorations, which [`Guard::release`] returns together with its own.
    pub fn keep_problems(&mut self, problems: Vec<RestoreError>) {
        self.kept_problems.extend(problems);
    }

    /// Waits at most `time` for a message of the guard; `None` if none arrives. The workload may run for any
    /// time, but a guard that does not confirm an interruption or a ping in time is an error.
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<GuardMessage>, GuardError> {
        if let Some(problems) = self.released.take() {
            return Ok(Some(GuardMessage::Released(problems)));
        }
        if let Some(end) = self.ended.take() {
            return Ok(Some(GuardMessage::Ended(end)));
        }
        let begun = Instant::now();
        loop {
            match self.next_reply(time.saturating_sub(begun.elapsed()))? {
                Some(Reply::Ended(end)) => return Ok(Some(GuardMessage::Ended(end))),
                Some(Reply::Released { problems }) => {
                    return Ok(Some(GuardMessage::Released(problems)));
                }
                Some(Reply::Pong) => {}
                Some(other) => return Err(unexpected(other)),
                None if begun.elapsed() >= time => return Ok(None),
                None => self.ping_if_silent()?,
            }
        }
    }

    /// Restores and releases all devices, and returns the errors of this and of earlier restorations. Processes
    /// that the workload left running continue, unless `end_workload` is set.
    pub fn release(mut self, end_workload: bool) -> Result<Vec<RestoreError>, GuardError> {
        self.send(&Request::Release { end_workload })?;
        let mut problems = std::mem::take(&mut self.kept_problems);
        problems.extend(self.released.take().unwrap_or_default());
        // The guard closes its socket after its last reply; earlier replies may answer older requests.
        let limit = self.reply_limit() + self.timeouts.end;
        loop {
            match self.reply_within(limit) {
                Ok(Reply::Released { problems: more }) => problems.extend(more),
                Ok(_) => {}
                Err(error) => {
                    let status = wait_for_exit(&mut self.child, self.timeouts.end);
                    let is_success = status.is_some_and(|status| status.success());
                    return if is_success { Ok(problems) } else { Err(error) };
                }
            }
        }
    }

    /// How long the guard may take to reply to a request, given the number of leased devices.
    fn reply_limit(&self) -> Duration {
        self.timeouts.answer + self.timeouts.answer_per_device * self.leased
    }

    /// Sends a request; kills the guard if it does not read the request in time.
    fn send(&mut self, request: &Request) -> Result<(), GuardError> {
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
    fn next_reply(&mut self, at_most: Duration) -> Result<Option<Reply>, GuardError> {
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
            if self.interrupted_for > self.timeouts.interruption {
                return Err(self.kill_unresponsive(self.timeouts.interruption));
            }
        }
        Ok(reply)
    }

    /// Sends a ping if the guard has sent nothing for too long.
    fn ping_if_silent(&mut self) -> Result<(), GuardError> {
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
    fn reply_within(&mut self, limit: Duration) -> Result<Reply, GuardError> {
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
    fn request(&mut self, request: &Request) -> Result<Reply, GuardError> {
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

impl Drop for Guard {
    fn drop(&mut self) {
        self.replies.close();
        if wait_for_exit(&mut self.child, self.timeouts.end).is_none() {
            kill(&mut self.child);
        }
    }
}

/// Waits for a process to end, but no longer than `limit`.
fn wait_for_exit(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

/// Kills a process with SIGKILL, and waits a short time for its end.
fn kill(child: &mut Child) {
    let _ = child.kill();
    wait_for_exit(child, KILL_TIMEOUT);
}

/// The error for a reply that is not the expected one: a refusal, an interruption or a reply to another request.
fn unexpected(reply: Reply) -> GuardError {
    match reply {
        Reply::Refused(reason) => GuardError::Refused(reason),
        Reply::Released { .. } => GuardError::Refused(Refusal::Interrupted),
        other => GuardError::Gone(format!("unexpected reply {other:?}")),
    }
}
