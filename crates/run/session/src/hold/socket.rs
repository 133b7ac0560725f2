//! The control socket of a running `hold` or `budget`, through which its owner changes the cap.

mod client;
mod folders;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use sweetspot_quantity::Watts;

pub use self::client::{SetCapError, running_pids, set_cap};
use self::folders::create_private_folder;
use super::cap::parse_cap;

/// A command whose cap can be changed while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlledVerb {
    /// `sweetspot hold`, which keeps the GPUs of one program under a cap.
    Hold,
    /// `sweetspot budget`, which keeps all GPUs together under a budget.
    Budget,
}

impl ControlledVerb {
    /// The name of the command, which is also the beginning of its sockets' names.
    const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Budget => "budget",
        }
    }

    /// The beginning of a socket's file name; the process id follows it.
    fn prefix(self) -> String {
        format!("{}-", self.name())
    }
}

impl std::fmt::Display for ControlledVerb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The end of a control socket's file name.
const SUFFIX: &str = ".socket";
/// How long `hold` and the caller of `hold set` wait for a line from each other.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum length of a request to the control socket.
const MAX_REQUEST_BYTES: u64 = 256;

/// A request of `hold set` for another cap.
pub struct CapRequest {
    /// The requested power cap.
    pub cap: Watts,
    answer: Sender<Result<String, String>>,
}

impl CapRequest {
    /// Replies to `hold set` with a confirmation or the reason for a rejection.
    pub fn answer(self, answer: Result<String, String>) {
        let _ = self.answer.send(answer);
    }
}

/// The control socket of this process's `hold`; dropping it removes the socket.
pub struct ControlSocket {
    path: PathBuf,
    requests: Receiver<CapRequest>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Creates the socket and starts the thread that serves it.
    pub fn open(verb: ControlledVerb) -> std::io::Result<Self> {
        let name = format!("{}{}{SUFFIX}", verb.prefix(), std::process::id());
        let path = create_private_folder(verb)?.join(name);
        // An earlier process with the same id may have left a socket.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (sender, requests) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&listener, &sender, &flag))?;
        Ok(Self {
            path,
            requests,
            stop,
            thread: Some(thread),
        })
    }

    /// The next request for another cap, if there is one.
    pub fn next_request(&self) -> Option<CapRequest> {
        self.requests.try_recv().ok()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections until the socket is dropped.
fn listen(listener: &UnixListener, requests: &Sender<CapRequest>, stop: &AtomicBool) {
    let pause = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    while !stop.load(Ordering::Acquire) {
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&pause));
        if let Ok((stream, _)) = listener.accept() {
            // A caller that disconnects early does not matter to the hold.
            let _ = serve_request(stream, requests);
        }
    }
}

/// Reads one request line from a connection and replies with one line.
fn serve_request(mut stream: UnixStream, requests: &Sender<CapRequest>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    let caller = socket_peercred(&stream)?.uid;
    if caller != geteuid() && !caller.is_root() {
        return writeln!(stream, "refused: it belongs to another user");
    }
    let mut line = String::new();
    BufReader::new((&stream).take(MAX_REQUEST_BYTES)).read_line(&mut line)?;
    let cap = match line.trim().strip_prefix("set ").map(parse_cap) {
        Some(Ok(cap)) => cap,
        Some(Err(problem)) => return writeln!(stream, "refused: {problem}"),
        None => return writeln!(stream, "refused: unknown command, use `set WATTS`"),
    };
    let (answer, reply) = channel();
    let ending = || std::io::Error::other("the process is ending");
    let request = CapRequest { cap, answer };
    requests.send(request).map_err(|_| ending())?;
    match reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| ending())? {
        Ok(text) => writeln!(stream, "ok: {text}"),
        Err(text) => writeln!(stream, "refused: {text}"),
    }
}
