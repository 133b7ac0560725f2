//! The control socket of a running hold, through which its owner changes the cap.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use sweetspot_quantity::Watts;

use super::cap::parse_cap;
use crate::host::simulated_host;

/// Why the cap of a running `hold` process could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum SetCapError {
    /// The user has no running `hold` process.
    #[error("you have no running hold on this computer")]
    NoHold,
    /// None of the user's running `hold` processes has this process id.
    #[error("none of your running holds has the pid {pid}: use one of {running}")]
    UnknownPid {
        /// The process id that the user gave.
        pid: u32,
        /// The process ids of the user's running `hold` processes, separated by commas.
        running: String,
    },
    /// Several `hold` processes are running, and the user named none; the text lists their process ids.
    #[error("several holds are running (pid {0})")]
    Several(String),
    /// The `hold` process did not reply in time, because it is stopped or very busy.
    #[error(
        "the hold with pid {pid} has not replied: it is stopped or busy, and applies the new cap when it continues"
    )]
    NoAnswer {
        /// The id of the `hold` process.
        pid: u32,
    },
    /// The `hold` process rejected the cap.
    #[error("the hold with pid {pid} rejected the cap: {reason}")]
    Rejected {
        /// The id of the `hold` process.
        pid: u32,
        /// Why the `hold` process rejected the cap.
        reason: String,
    },
}

/// The beginning of a control socket's file name; the process id follows it.
const PREFIX: &str = "hold-";
/// The end of a control socket's file name.
const SUFFIX: &str = ".socket";
/// How long `hold` and the caller of `hold set` wait for a line from each other.
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum length of a reply of the control socket.
const MAX_REPLY_BYTES: usize = 1024;
/// The maximum length of a request to the control socket.
const MAX_REQUEST_BYTES: u64 = 256;

/// The folders that may contain the sockets of this user's `hold` processes; a new socket goes into the first. There
/// are several because the environment variables of another shell may differ.
fn socket_folders() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    if let Some(host) = simulated_host() {
        return vec![host.join(format!("hold-{user}"))];
    }
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    folders_of_user(user, run.filter(|run| run.is_dir()))
}

/// The folders for the sockets of one user's `hold` processes; `run` is the user's runtime folder, if it is known.
fn folders_of_user(user: u32, run: Option<PathBuf>) -> Vec<PathBuf> {
    let default_run = Path::new("/run/user").join(user.to_string());
    let own = format!("sweetspot-hold-{user}");
    let mut folders: Vec<PathBuf> = run
        .map(|run| run.join("sweetspot-hold"))
        .into_iter()
        .collect();
    folders.push(std::env::temp_dir().join(&own));
    folders.push(default_run.join("sweetspot-hold"));
    folders.push(Path::new("/tmp").join(own));
    folders
}

/// The folders that may contain the sockets of any user's `hold` processes, which root searches.
fn folders_of_all_users() -> Vec<PathBuf> {
    let entries_of = |folder: &Path, is_match: fn(&str) -> bool| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let matches = entries.filter(move |entry| is_match(&entry.file_name().to_string_lossy()));
        matches.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    if let Some(host) = simulated_host() {
        return entries_of(&host, |name| name.starts_with(PREFIX));
    }
    let users = entries_of(Path::new("/run/user"), |_| true).into_iter();
    let mut folders: Vec<PathBuf> = users.map(|run| run.join("sweetspot-hold")).collect();
    for folder in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        folders.extend(entries_of(&folder, |name| {
            name.starts_with("sweetspot-hold-")
        }));
    }
    folders
}

/// Creates the folder for a new socket; no other user may have access to it.
fn create_private_folder() -> std::io::Result<PathBuf> {
    let folder = socket_folders().swap_remove(0);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = std::fs::symlink_metadata(&folder)?;
    let is_own = metadata.is_dir() && metadata.uid() == geteuid().as_raw();
    if !is_own || metadata.mode() & 0o077 != 0 {
        let problem = format!("{} is accessible to other users", folder.display());
        return Err(std::io::Error::other(problem));
    }
    Ok(folder)
}

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
    pub fn open() -> std::io::Result<Self> {
        let name = format!("{PREFIX}{}{SUFFIX}", std::process::id());
        let path = create_private_folder()?.join(name);
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
    let ending = || std::io::Error::other("the hold is ending");
    let request = CapRequest { cap, answer };
    requests.send(request).map_err(|_| ending())?;
    match reply.recv_timeout(REPLY_TIMEOUT).map_err(|_| ending())? {
        Ok(text) => writeln!(stream, "ok: {text}"),
        Err(text) => writeln!(stream, "refused: {text}"),
    }
}

/// Connects to the running `hold` processes whose sockets are in a folder. Removes sockets that were left by killed
/// `hold` processes of this user.
fn running_holds_in(folder: &Path) -> Vec<(u32, UnixStream)> {
    let owner = std::fs::symlink_metadata(folder).ok();
    let owner = owner.filter(|found| found.is_dir() && found.mode() & 0o022 == 0);
    let (Some(owner), Ok(entries)) = (owner.map(|found| found.uid()), std::fs::read_dir(folder))
    else {
        return Vec::new();
    };
    let user = geteuid();
    let is_own = owner == user.as_raw();
    if !is_own && !user.is_root() {
        return Vec::new();
    }
    let mut running = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(SUFFIX)?.parse().ok());
        let Some(pid) = pid else { continue };
        match connect_to(&entry.path(), pid, owner) {
            Ok(stream) => running.push((pid, stream)),
            Err(error) if is_own && error.kind() == ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(entry.path());
            }
            Err(_) => {}
        }
    }
    running
}

/// Connects to a socket without waiting, if the process that its name says listens there and belongs to the folder's
/// owner: another user can neither pretend to be a `hold` nor keep the caller waiting.
fn connect_to(path: &Path, pid: u32, owner: u32) -> std::io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    let peer = socket_peercred(&socket)?;
    if peer.uid.as_raw() != owner || peer.pid.as_raw_nonzero().get().unsigned_abs() != pid {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Connects to the user's running `hold` processes. Root can also reach another user's `hold` process by its id.
fn running_holds(pid: Option<u32>) -> Vec<(u32, UnixStream)> {
    let mut folders = socket_folders();
    if pid.is_some() && geteuid().is_root() {
        folders.extend(folders_of_all_users());
    }
    let existing = folders.iter().filter_map(|one| one.canonicalize().ok());
    let folders: BTreeSet<PathBuf> = existing.collect();
    let holds = folders.iter().flat_map(|folder| running_holds_in(folder));
    let mut holds: Vec<_> = holds.collect();
    holds.sort_by_key(|(pid, _)| *pid);
    holds
}

/// Changes the cap of a running `hold` process and returns its confirmation.
pub fn set_cap(cap: Watts, pid: Option<u32>) -> Result<String, SetCapError> {
    let mut running = running_holds(pid);
    let names = running
        .iter()
        .map(|(pid, _)| pid.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let index = match (pid, running.len()) {
        (_, 0) => return Err(SetCapError::NoHold),
        (None, 1) => 0,
        (None, _) => return Err(SetCapError::Several(names)),
        (Some(pid), _) => {
            running
                .iter()
                .position(|(of, _)| *of == pid)
                .ok_or(SetCapError::UnknownPid {
                    pid,
                    running: names,
                })?
        }
    };
    let (pid, stream) = running.swap_remove(index);
    let rejected = |reason: String| SetCapError::Rejected { pid, reason };
    let answer = send_cap(stream, cap).map_err(|problem| match problem.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SetCapError::NoAnswer { pid },
        _ => rejected(problem.to_string()),
    })?;
    match answer.split_once(": ") {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("refused", text)) => Err(rejected(text.to_owned())),
        _ => Err(rejected("the hold sent no valid reply".to_owned())),
    }
}

/// Sends a cap to a `hold` process and returns its reply line.
fn send_cap(mut stream: UnixStream, cap: Watts) -> std::io::Result<String> {
    stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
    writeln!(stream, "set {}W", cap.get())?;
    let line = read_line_within(&mut stream, 2 * REPLY_TIMEOUT)?;
    // Another user's hold may send anything, also control characters for the terminal.
    Ok(line.trim().replace(char::is_control, " "))
}

/// Reads a line, but for no longer than `limit`, however slowly it arrives.
fn read_line_within(stream: &mut UnixStream, limit: Duration) -> std::io::Result<String> {
    let begun = Instant::now();
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < MAX_REPLY_BYTES && !line.ends_with(b"\n") {
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut byte)? {
            0 => break,
            _ => line.extend(byte),
        }
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_of_shells_with_another_environment_are_found() {
        let run = PathBuf::from("/run/user/7");
        let (with, without) = (folders_of_user(7, Some(run)), folders_of_user(7, None));
        // Each shell also searches the folder in which the other creates its sockets.
        assert!(without.contains(&with[0]) && with.contains(&without[0]));
        assert_ne!(with[0], without[0]);
    }
}
