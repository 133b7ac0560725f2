//! The client's handle to a guard process.

mod exchange;
mod process;

use std::io;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use self::exchange::unexpected;
use self::process::{KILL_TIMEOUT, kill, wait_for_exit};
use crate::LeaseKind;
use crate::channel::{MAX_SINGLE_WAIT, Replies, limit_waits, send_within};
use crate::connection::start_guard;
use crate::error::GuardError;
use crate::owner::Owner;
use crate::protocol::{Reply, Request, WorkloadCommand, WorkloadEnd};
use crate::refusal::{RestoreError, RestoreOutcome};
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

/// Interruptions within this time are one request to exit: a scheduler sends a signal both to a process and to its group.
const SAME_REQUEST: Duration = Duration::from_millis(500);

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
    /// Whether an interruption came well after an unconfirmed one: the user does not want to wait any longer.
    is_urgent: Arc<AtomicBool>,
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
        Self::start_unless(program, &|| false)
    }

    /// Like [`Guard::start`], but does not wait any longer for a guard that has not answered yet as soon as
    /// `is_cancelled` returns true.
    pub fn start_unless(
        program: Command,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Self, GuardError> {
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
            is_urgent: Arc::default(),
            interrupted_for: Duration::ZERO,
            silent_for: Duration::ZERO,
            was_pinged: false,
            released: None,
            ended: None,
            kept_problems: Vec::new(),
        };
        guard.wait_for_start(is_cancelled).map_err(start_error)?;
        Ok(guard)
    }

    /// Waits for the guard's first message, unless it exits instead or the wait is cancelled.
    fn wait_for_start(&mut self, is_cancelled: &dyn Fn() -> bool) -> io::Result<()> {
        let begun = Instant::now();
        loop {
            match self.replies.next_within(MAX_SINGLE_WAIT) {
                Ok(Some(_)) => return Ok(()),
                Ok(None) if is_cancelled() => {
                    kill(&mut self.child);
                    return Err(io::Error::other("a signal arrived before it had started"));
                }
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
        self.lease_as(devices, LeaseKind::Setting)
    }

    /// Like [`Guard::lease`], for a lease of this kind.
    pub fn lease_as(
        &mut self,
        devices: Vec<DeviceId>,
        kind: LeaseKind,
    ) -> Result<Vec<RestoreOutcome>, GuardError> {
        let owner = Owner::current_process();
        self.leased += u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let request = Request::Lease {
            devices,
            owner,
            kind,
        };
        match self.request(&request)? {
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
        let (is_urgent, mut first) = (self.is_urgent.clone(), None);
        let limit = self.timeouts.interruption;
        move |signal, pass_on| {
            let first = *first.get_or_insert_with(Instant::now);
            if count.fetch_add(1, Ordering::AcqRel) > 0 && first.elapsed() > SAME_REQUEST {
                is_urgent.store(true, Ordering::Release);
            }
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            // If the guard does not receive this, it does not reply either, which the waiting thread notices.
            let _ = send_within(&stream, &Request::Interrupt { signal, pass_on }, limit);
        }
    }

    /// Returns a function with which another thread ends the waits for a guard that does not reply: it is killed if it
    /// is still silent half a second later.
    pub fn canceller(&self) -> impl FnMut(i32, bool) + Send + 'static {
        let (count, is_urgent) = (self.interruptions.clone(), self.is_urgent.clone());
        move |_, _| {
            count.fetch_add(1, Ordering::AcqRel);
            is_urgent.store(true, Ordering::Release);
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
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.replies.close();
        if wait_for_exit(&mut self.child, self.timeouts.end).is_none() {
            kill(&mut self.child);
        }
    }
}
