//! A guard seen from the process that needs one.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{AppliedSettings, DeviceId, Settings};

use crate::channel::{Replies, SLICE, limit_waits, send_within};
use crate::error::GuardError;
use crate::limits::Limits;
use crate::owner::Owner;
use crate::protocol::{End, Reply, Request, Start};
use crate::refusal::{Refusal, RestoreError, Restored};

/// What a guard tells without being asked, or in answer to an interruption.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The workload ended.
    Ended(End),
    /// The devices are as before, but for these.
    Released(Vec<RestoreError>),
}

/// For how long a guard to start is waited for.
const START_WITHIN: Duration = Duration::from_secs(20);

/// For how long the end of a process that was killed is waited for: one that hangs in a driver does not end.
const KILLED_WITHIN: Duration = Duration::from_secs(2);

/// A running guard. Everything is put back when it is dropped.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    replies: Replies,
    requests: Arc<Mutex<UnixStream>>,
    limits: Limits,
    /// How many devices are leased.
    leased: u32,
    /// Interruptions that the guard has not answered, and how long the oldest was waited for.
    interruptions: Arc<AtomicUsize>,
    interrupted_for: Duration,
    /// How long the guard has been silent, and whether it was asked for a sign of life meanwhile.
    silent_for: Duration,
    asked_for_life: bool,
    /// The answer to an interruption, where it came among the answers to other requests.
    released: Option<Vec<RestoreError>>,
    /// The end of the workload, where it came among the answers to other requests.
    ended: Option<End>,
    kept: Vec<RestoreError>,
}

impl Guard {
    /// Starts the program that serves as guard. Its last argument is the path of the socket.
    pub fn start(mut program: Command, folder: &Path) -> Result<Self, GuardError> {
        let cannot = |denied: bool| {
            move |error: io::Error| GuardError::CannotStart {
                folder: folder.to_owned(),
                denied: denied && error.kind() == io::ErrorKind::PermissionDenied,
                reason: error.to_string(),
            }
        };
        let path = folder.join(format!("guard-{}.socket", std::process::id()));
        let _ = std::fs::remove_file(&path);
        // Only the folder is a matter of the caller's rights, not the program or the guard itself.
        let listener = UnixListener::bind(&path).map_err(cannot(true))?;
        listener.set_nonblocking(true).map_err(cannot(false))?;
        // In a process group of its own, so that what is sent to the client's does not reach it.
        let child = program.arg(&path).process_group(0).spawn();
        let stream = child.and_then(|child| accept(&listener, child));
        let _ = std::fs::remove_file(&path);
        let (stream, child) = stream.map_err(cannot(false))?;
        limit_waits(&stream).map_err(cannot(false))?;
        Ok(Self {
            child,
            replies: Replies::new(stream.try_clone().map_err(cannot(false))?),
            requests: Arc::new(Mutex::new(stream)),
            limits: Limits::default(),
            leased: 0,
            interruptions: Arc::default(),
            interrupted_for: Duration::ZERO,
            silent_for: Duration::ZERO,
            asked_for_life: false,
            released: None,
            ended: None,
            kept: Vec::new(),
        })
    }

    /// Other limits than the usual ones.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes devices, and returns what there is to know about how they were found.
    pub fn lease(&mut self, devices: Vec<DeviceId>) -> Result<Vec<Restored>, GuardError> {
        let owner = Owner::me();
        self.leased += u32::try_from(devices.len()).unwrap_or(u32::MAX);
        match self.ask(&Request::Lease { devices, owner })? {
            Reply::Leased { notes } => Ok(notes),
            other => Err(unexpected(other)),
        }
    }

    /// Brings a device's knobs to a state.
    pub fn apply(
        &mut self,
        device: &DeviceId,
        settings: &Settings,
    ) -> Result<AppliedSettings, GuardError> {
        let request = Request::Apply {
            device: device.clone(),
            settings: *settings,
        };
        match self.ask(&request)? {
            Reply::Applied(applied) => Ok(applied),
            other => Err(unexpected(other)),
        }
    }

    /// Brings a device back to what was set before; the lease stays.
    pub fn put_back(&mut self, device: &DeviceId) -> Result<(), GuardError> {
        let device = device.clone();
        match self.ask(&Request::PutBack { device })? {
            Reply::IsBack => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// What is set on a leased device, as far as the device tells.
    pub fn settings(&mut self, device: &DeviceId) -> Result<Settings, GuardError> {
        let device = device.clone();
        match self.ask(&Request::Settings { device })? {
            Reply::Settings(settings) => Ok(settings),
            other => Err(unexpected(other)),
        }
    }

    /// Ends what runs of the workload, the last grandchild included; says whether nothing is left. The
    /// settings and leases stay.
    pub fn end_workload(&mut self) -> Result<bool, GuardError> {
        match self.ask(&Request::EndWorkload)? {
            Reply::WorkloadEnded { all } => Ok(all),
            other => Err(unexpected(other)),
        }
    }

    /// Runs the workload; its end comes as a [`Message`].
    pub fn run(&mut self, start: Start) -> Result<(), GuardError> {
        let program = start.command.first().cloned().unwrap_or_default();
        self.ended = None;
        match self.ask(&Request::Start(start))? {
            Reply::Started => Ok(()),
            Reply::NotStarted { missing, reason } => Err(GuardError::NotStarted {
                program: String::from_utf8_lossy(&program).into_owned(),
                missing,
                reason,
            }),
            other => Err(unexpected(other)),
        }
    }

    /// Something that can interrupt the guard from another thread.
    pub fn interrupter(&self) -> impl FnMut(i32, bool) + Send + 'static {
        let (stream, count) = (self.requests.clone(), self.interruptions.clone());
        let limit = self.limits.interruption;
        move |signal, pass_on| {
            count.fetch_add(1, Ordering::AcqRel);
            let stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            // A guard that does not take it does not answer either, which the waiting thread notices.
            let _ = send_within(&stream, &Request::Interrupt { signal, pass_on }, limit);
        }
    }

    /// Waits for what the guard has to tell. The workload may take as long as it likes, but a guard that is
    /// asked to put everything back, or whether it still lives, has to answer.
    pub fn wait(&mut self) -> Result<Message, GuardError> {
        loop {
            if let Some(message) = self.wait_for(Duration::from_secs(3600))? {
                return Ok(message);
            }
        }
    }

    /// Keeps problems, to be reported with those of the release.
    pub fn keep(&mut self, problems: Vec<RestoreError>) {
        self.kept.extend(problems);
    }

    /// Waits for a message of the guard for this time at most. Returns nothing where none came.
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<Message>, GuardError> {
        if let Some(problems) = self.released.take() {
            return Ok(Some(Message::Released(problems)));
        }
        if let Some(end) = self.ended.take() {
            return Ok(Some(Message::Ended(end)));
        }
        let begun = Instant::now();
        loop {
            match self.next_reply(time.saturating_sub(begun.elapsed()))? {
                Some(Reply::Ended(end)) => return Ok(Some(Message::Ended(end))),
                Some(Reply::Released { problems }) => return Ok(Some(Message::Released(problems))),
                Some(Reply::Alive) => {}
                Some(other) => return Err(unexpected(other)),
                None if begun.elapsed() >= time => return Ok(None),
                None => self.ask_for_life()?,
            }
        }
    }

    /// Lets everything go, and returns what could not be put back, earlier interruptions included. What
    /// the workload left running goes on, unless it is to end.
    pub fn release(mut self, end_workload: bool) -> Result<Vec<RestoreError>, GuardError> {
        self.send(&Request::Release { end_workload })?;
        let mut problems = std::mem::take(&mut self.kept);
        problems.extend(self.released.take().unwrap_or_default());
        // The guard closes its socket after its last word; what it says before may answer older questions.
        let limit = self.answer_limit() + self.limits.end;
        loop {
            match self.reply_within(limit) {
                Ok(Reply::Released { problems: more }) => problems.extend(more),
                Ok(_) => {}
                Err(error) => {
                    let status = end_of(&mut self.child, self.limits.end);
                    let well = status.is_some_and(|status| status.success());
                    return if well { Ok(problems) } else { Err(error) };
                }
            }
        }
    }

    fn answer_limit(&self) -> Duration {
        self.limits.answer + self.limits.answer_per_device * self.leased
    }

    fn send(&mut self, request: &Request) -> Result<(), GuardError> {
        let limit = self.limits.answer;
        let sent = {
            let stream = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            send_within(&stream, request, limit)
        };
        sent.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => self.give_up(limit),
            _ => GuardError::Gone(error.to_string()),
        })
    }

    /// Kills a guard that does not answer: a process that is stopped ends by that too.
    fn give_up(&mut self, limit: Duration) -> GuardError {
        kill(&mut self.child);
        GuardError::Gone(format!(
            "it did not answer within {} s",
            limit.as_secs_f64()
        ))
    }

    /// What the guard says within a slice of time at most; an interruption that it leaves unanswered is its end.
    fn next_reply(&mut self, at_most: Duration) -> Result<Option<Reply>, GuardError> {
        let begun = Instant::now();
        let reply = self.replies.next(at_most);
        let reply = reply.map_err(|error| GuardError::Gone(error.to_string()))?;
        if reply.is_some() {
            (self.silent_for, self.asked_for_life) = (Duration::ZERO, false);
        }
        if let Some(Reply::Released { .. }) = reply {
            let fewer = |count: usize| count.checked_sub(1);
            let _ = self
                .interruptions
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, fewer);
            self.interrupted_for = Duration::ZERO;
        }
        if reply.is_none() {
            let waited = begun.elapsed().min(SLICE);
            self.silent_for += waited;
            if self.interruptions.load(Ordering::Acquire) > 0 {
                self.interrupted_for += waited;
            }
            if self.interrupted_for > self.limits.interruption {
                return Err(self.give_up(self.limits.interruption));
            }
        }
        Ok(reply)
    }

    /// Asks a guard that has been silent for long whether it still lives.
    fn ask_for_life(&mut self) -> Result<(), GuardError> {
        let Limits {
            silence,
            sign_of_life,
            ..
        } = self.limits;
        if self.silent_for > silence && !self.asked_for_life {
            self.asked_for_life = true;
            self.send(&Request::AreYouAlive)?;
        }
        if self.silent_for > silence + sign_of_life {
            return Err(self.give_up(silence + sign_of_life));
        }
        Ok(())
    }

    fn reply_within(&mut self, limit: Duration) -> Result<Reply, GuardError> {
        self.silent_for = Duration::ZERO;
        loop {
            match self.next_reply(SLICE)? {
                Some(reply) => return Ok(reply),
                None if self.silent_for > limit => return Err(self.give_up(limit)),
                None => {}
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, GuardError> {
        self.send(request)?;
        let limit = self.answer_limit();
        loop {
            match self.reply_within(limit)? {
                Reply::Refused(reason) => return Err(GuardError::Refused(reason)),
                Reply::Alive => {}
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
        if end_of(&mut self.child, self.limits.end).is_none() {
            kill(&mut self.child);
        }
    }
}

/// Waits for a process to end, but not longer than this.
fn end_of(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(Duration::from_millis(1)),
            _ => return None,
        }
    }
}

fn kill(child: &mut Child) {
    let _ = child.kill();
    end_of(child, KILLED_WITHIN);
}

fn unexpected(reply: Reply) -> GuardError {
    match reply {
        Reply::Refused(reason) => GuardError::Refused(reason),
        Reply::Released { .. } => GuardError::Refused(Refusal::Interrupted),
        other => GuardError::Gone(format!("it answered {other:?}")),
    }
}

/// Waits for the guard to call, but not for one that ended instead.
fn accept(listener: &UnixListener, mut child: Child) -> io::Result<(UnixStream, Child)> {
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok((stream, child));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                kill(&mut child);
                return Err(error);
            }
        }
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("it ended at once, {status}")));
        }
        if begun.elapsed() > START_WITHIN {
            kill(&mut child);
            return Err(io::Error::other("it did not start in time"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
