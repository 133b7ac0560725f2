//! A guard seen from the process that needs one.

use std::io::{self, BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_device::{Applied, DeviceId, Settings};

use crate::owner::Owner;
use crate::protocol::{End, Reply, Request, Start, receive, send};
use crate::refusal::{Refusal, RestoreError, Restored};

/// Why a guard did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// It said why.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No guard could be started, so nothing was changed.
    #[error("the guard cannot be started in {}: {reason}", folder.display())]
    CannotStart {
        /// The folder of its socket.
        folder: PathBuf,
        /// Whether the caller lacks the right to use the folder.
        denied: bool,
        /// What the system says.
        reason: String,
    },
    /// The workload could not be started.
    #[error("cannot run {program}: {reason}")]
    NotStarted {
        /// What was to run.
        program: String,
        /// Whether there is no such program.
        missing: bool,
        /// What the system says.
        reason: String,
    },
    /// It is gone.
    #[error("the guard is gone ({0}); `sweetspot restore` puts back what it may have left changed")]
    Gone(String),
    /// It is gone, and another did its work.
    #[error("the guard is gone ({0}); another has put everything back")]
    Replaced(String),
}

impl GuardError {
    /// Whether a right is missing that root would have.
    pub fn is_permission_denied(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.is_permission_denied(),
            Self::CannotStart { denied, .. } => *denied,
            Self::NotStarted { .. } | Self::Gone(_) | Self::Replaced(_) => false,
        }
    }
}

/// What a guard tells without being asked, or in answer to an interruption.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The workload ended.
    Ended(End),
    /// The devices are as before, but for these.
    Released(Vec<RestoreError>),
}

/// A running guard. Everything is put back when it is dropped.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    replies: BufReader<UnixStream>,
    requests: Arc<Mutex<UnixStream>>,
    /// What an interruption brought, told among the answers to other questions.
    released: Option<Vec<RestoreError>>,
    /// An end that was told among the answers to other questions.
    ended: Option<End>,
    kept: Vec<RestoreError>,
}

const START_WITHIN: Duration = Duration::from_secs(20);

impl Guard {
    /// Starts the program that serves as guard; it is told the socket by its last argument.
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
        Ok(Self {
            child,
            replies: BufReader::new(stream.try_clone().map_err(cannot(false))?),
            requests: Arc::new(Mutex::new(stream)),
            released: None,
            ended: None,
            kept: Vec::new(),
        })
    }

    /// Takes devices, and returns what there is to know about how they were found.
    pub fn lease(&mut self, devices: Vec<DeviceId>) -> Result<Vec<Restored>, GuardError> {
        let owner = Owner::me();
        match self.ask(&Request::Lease { devices, owner })? {
            Reply::Leased { notes } => Ok(notes),
            other => Err(unexpected(other)),
        }
    }

    /// Brings a device's knobs to a state.
    pub fn apply(&mut self, device: &DeviceId, settings: &Settings) -> Result<Applied, GuardError> {
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
        let stream = self.requests.clone();
        move |signal, pass_on| {
            let mut stream = stream.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = send(&mut *stream, &Request::Interrupt { signal, pass_on });
        }
    }

    /// Waits for what the guard has to tell.
    pub fn wait(&mut self) -> Result<Message, GuardError> {
        if let Some(problems) = self.released.take() {
            return Ok(Message::Released(problems));
        }
        if let Some(end) = self.ended.take() {
            return Ok(Message::Ended(end));
        }
        match self.reply()? {
            Reply::Ended(ended) => Ok(Message::Ended(ended)),
            Reply::Released { problems } => Ok(Message::Released(problems)),
            other => Err(unexpected(other)),
        }
    }

    /// Problems to be told with those of the release.
    pub fn keep(&mut self, problems: Vec<RestoreError>) {
        self.kept.extend(problems);
    }

    /// Waits for what the guard has to tell, but not for ever; nothing where it told nothing.
    pub fn wait_for(&mut self, time: Duration) -> Result<Option<Message>, GuardError> {
        if self.released.is_some() || self.ended.is_some() {
            return self.wait().map(Some);
        }
        let gone = |error: io::Error| GuardError::Gone(error.to_string());
        let stream = self.replies.get_ref();
        stream.set_read_timeout(Some(time)).map_err(gone)?;
        let came = self.replies.fill_buf().map(|_| ());
        self.replies
            .get_ref()
            .set_read_timeout(None)
            .map_err(gone)?;
        match came {
            // At the end of the stream waiting tells that the guard is gone.
            Ok(()) => self.wait().map(Some),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(gone(error)),
            },
        }
    }

    /// Lets everything go, and returns what could not be put back, earlier interruptions included. What
    /// the workload left running goes on, unless it is to end.
    pub fn release(mut self, end_workload: bool) -> Result<Vec<RestoreError>, GuardError> {
        self.send(&Request::Release { end_workload })?;
        let mut problems = std::mem::take(&mut self.kept);
        problems.extend(self.released.take().unwrap_or_default());
        // The guard closes its socket after its last word; what it says before may answer older questions.
        loop {
            match self.reply() {
                Ok(Reply::Released { problems: more }) => problems.extend(more),
                Ok(_) => {}
                Err(error) => {
                    let ended = self.child.wait();
                    let well = ended.is_ok_and(|status| status.success());
                    return if well { Ok(problems) } else { Err(error) };
                }
            }
        }
    }

    fn send(&mut self, request: &Request) -> Result<(), GuardError> {
        let mut stream = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        send(&mut *stream, request).map_err(|error| GuardError::Gone(error.to_string()))
    }

    fn reply(&mut self) -> Result<Reply, GuardError> {
        loop {
            match receive(&mut self.replies) {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => return Err(GuardError::Gone("it closed its socket".to_owned())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(GuardError::Gone(error.to_string())),
            }
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply, GuardError> {
        self.send(request)?;
        loop {
            match self.reply()? {
                Reply::Refused(reason) => return Err(GuardError::Refused(reason)),
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
        let _ = self.replies.get_ref().shutdown(std::net::Shutdown::Both);
        let _ = self.child.wait();
    }
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
            Err(error) => return Err(error),
        }
        if let Some(status) = child.try_wait()? {
            return Err(io::Error::other(format!("it ended at once, {status}")));
        }
        if begun.elapsed() > START_WITHIN {
            let _ = child.kill();
            return Err(io::Error::other("it did not start in time"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
