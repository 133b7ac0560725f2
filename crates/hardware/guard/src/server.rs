//! The guard process: serves the requests of one client.

use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use sweetspot_device::{Clock, ControllableDevice, DeviceId, MonotonicClock, OpenError};

use crate::connection::ClientConnection;
use crate::processes::{
    KILL_TIMEOUT, adopt_orphans, end_descendants, end_descendants_within, exclude_from_reaping,
    has_descendants, reap_children, signal_descendants, signals_not_ignored,
};
use crate::protocol::{CommandExit, Reply, Request, WorkloadCommand, WorkloadEnd, receive, send};
use crate::refusal::Refusal;
use crate::writer::SettingsWriter;

/// The time between SIGTERM and SIGKILL for processes of the workload.
const WORKLOAD_GRACE: Duration = Duration::from_millis(300);

/// A signal to a process group reaches its processes within this time.
const SIGNAL_LAG: Duration = Duration::from_millis(50);

/// The longest wait for the client to read a reply; a stopped client must not block the guard.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A function that opens a device for writing.
pub type OpenDevice<'a> =
    dyn FnMut(&DeviceId) -> Result<Box<dyn ControllableDevice>, OpenError> + 'a;

/// The state of a guard process.
struct Server<'a> {
    writer: &'a mut dyn SettingsWriter,
    out: Arc<Mutex<UnixStream>>,
    interrupted: bool,
    started: Option<Child>,
    /// The client's standard input, for the workload.
    input: OwnedFd,
}

/// Serves one client until it releases its devices or ends, then restores all settings.
pub fn serve(client: ClientConnection, writer: &mut dyn SettingsWriter) -> io::Result<()> {
    let ClientConnection { stream, input } = client;
    // Signals are for the client to handle: the guard ends when the client does. They are caught, not ignored,
    // because the workload would inherit ignored ones.
    let caught = Arc::new(std::sync::atomic::AtomicBool::new(false));
    for signal in
        signals_not_ignored(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM])
    {
        signal_hook::flag::register(signal, caught.clone())?;
    }
    adopt_orphans();
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let mut requests = BufReader::new(stream.try_clone()?);
    let mut server = Server {
        writer,
        out: Arc::new(Mutex::new(stream)),
        interrupted: false,
        started: None,
        input,
    };
    loop {
        let request = match receive::<Request>(&mut requests) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(Some(request)) => request,
            // A client that sends an invalid request is treated like one that has ended.
            Ok(None) | Err(_) => {
                tracing::warn!("the client has ended: restoring all settings");
                server.writer.release_all();
                end_descendants(WORKLOAD_GRACE);
                return Ok(());
            }
        };
        let released = match request {
            Request::Release { end_workload } => Some(end_workload),
            _ => None,
        };
        let reply = server.answer(request);
        server.send_reply(&reply);
        // The workload's end is reported after its start, however short it is.
        if let Some(child) = server.started.take() {
            server.report_end_of(child);
        }
        if let Some(end_workload) = released {
            if end_workload || has_descendants() && was_interrupted(&mut requests) {
                end_descendants(WORKLOAD_GRACE);
            }
            return Ok(());
        }
    }
}

/// Whether the client reports an interruption right after it has released the devices. A signal to the whole
/// process group may end the command before the client receives it; then the rest of the workload must end
/// too.
fn was_interrupted(requests: &mut BufReader<UnixStream>) -> bool {
    let limited = requests.get_ref().set_read_timeout(Some(SIGNAL_LAG));
    let next = limited.and_then(|()| receive::<Request>(requests));
    matches!(next, Ok(Some(Request::Interrupt { .. })))
}

impl Server<'_> {
    /// Sends a reply; errors are ignored, because the client may have ended.
    fn send_reply(&self, reply: &Reply) {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // A client that has ended is noticed where requests are read.
        let _ = send(&mut *out, reply);
    }

    /// Carries out a request and returns the reply to it.
    fn answer(&mut self, request: Request) -> Reply {
        match request {
            Request::Lease { .. }
            | Request::Apply { .. }
            | Request::Settings { .. }
            | Request::Restore { .. }
            | Request::Start(_)
                if self.interrupted =>
            {
                Reply::Refused(Refusal::Interrupted)
            }
            Request::Lease { devices, owner } => match self.writer.lease(&devices, &owner) {
                Ok(notes) => Reply::Leased { notes },
                Err(reason) => {
                    self.writer.release_all();
                    Reply::Refused(reason)
                }
            },
            Request::Apply { device, settings } => match self.writer.apply(&device, &settings) {
                Ok(applied) => Reply::Applied(applied),
                Err(reason) => Reply::Refused(reason),
            },
            Request::Restore { device } => match self.writer.restore(&device) {
                Ok(()) => Reply::Restored,
                Err(reason) => Reply::Refused(reason),
            },
            Request::Settings { device } => match self.writer.settings(&device) {
                Ok(settings) => Reply::Settings(settings),
                Err(reason) => Reply::Refused(reason),
            },
            Request::EndWorkload => Reply::WorkloadEnded {
                all: end_descendants_within(WORKLOAD_GRACE, WORKLOAD_GRACE + KILL_TIMEOUT),
            },
            Request::Start(start) => match start_workload(&start, &self.input) {
                Ok(child) => {
                    self.started = Some(child);
                    Reply::Started
                }
                Err(error) => Reply::NotStarted {
                    missing: error.kind() == io::ErrorKind::NotFound,
                    reason: error.to_string(),
                },
            },
            Request::Interrupt { signal, pass_on } => {
                // The devices are restored first, whatever the workload does on the signal.
                self.interrupted = true;
                tracing::info!(signal, "interrupted: restoring all settings");
                let problems = self.writer.release_all();
                if pass_on && let Some(signal) = Signal::from_named_raw(signal) {
                    signal_descendants(signal);
                }
                Reply::Released { problems }
            }
            Request::Ping => Reply::Pong,
            Request::Release { .. } => Reply::Released {
                problems: self.writer.release_all(),
            },
        }
    }

    /// Waits for the workload's command in a thread of its own, and reports its end to the client.
    fn report_end_of(&self, mut child: Child) {
        let out = self.out.clone();
        exclude_from_reaping(Some(Pid::from_child(&child)));
        std::thread::spawn(move || {
            let status = child.wait();
            let at = MonotonicClock.now();
            exclude_from_reaping(None);
            reap_children();
            let exit = match status {
                Ok(status) => match (status.code(), status.signal()) {
                    (Some(code), _) => CommandExit::Code(code),
                    (None, signal) => CommandExit::Signal(signal.unwrap_or(0)),
                },
                Err(_) => CommandExit::Code(1),
            };
            let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
            let has_descendants = has_descendants();
            let _ = send(
                &mut *out,
                &Reply::Ended(WorkloadEnd {
                    exit,
                    at,
                    has_descendants,
                }),
            );
        });
    }
}

/// Starts the workload's command.
fn start_workload(start: &WorkloadCommand, input: &OwnedFd) -> io::Result<Child> {
    let mut words = start
        .command
        .iter()
        .map(|word| OsString::from_vec(word.clone()));
    let program = words
        .next()
        .ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = Command::new(program);
    let streams = &start.streams;
    // The guard's own standard input is the connection to the client, which the workload must not get.
    match streams.no_input {
        true => command.stdin(Stdio::null()),
        false => command.stdin(input.try_clone()?),
    };
    if let Some(folder) = &start.folder {
        command.current_dir(folder);
    }
    let open = |path: &String| {
        let mut options = std::fs::File::options();
        // A pseudo-terminal must not become the controlling terminal of the guard.
        options.custom_flags(OFlags::NOCTTY.bits() as i32);
        options.write(true).open(path)
    };
    if let Some(path) = &streams.output {
        command.stdout(open(path)?);
    }
    if let Some(path) = &streams.error {
        command.stderr(open(path)?);
    }
    command
        .args(words)
        .envs(start.environment.iter().map(|(name, value)| (name, value)))
        .process_group(start.process_group)
        .spawn()
}
