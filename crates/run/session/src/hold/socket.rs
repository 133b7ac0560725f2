//! The control socket of a running hold: its owner changes the cap through it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use sweetspot_quantity::Watts;

use super::cap::parse_cap;
use crate::host::simulated_host;

/// Why a running hold could not be told.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// None is there.
    #[error(
        "no hold of yours is running here: start one with `sweetspot hold --below WATTS -- CMD`"
    )]
    None,
    /// Not the one that was named.
    #[error("no hold of yours has pid {pid}; running: {running}")]
    NoSuch {
        /// As named.
        pid: u32,
        /// Those that run.
        running: String,
    },
    /// Several.
    #[error("several holds are running (pid {0}): name one with --pid")]
    Several(String),
    /// It is stopped, or very busy.
    #[error(
        "the hold with pid {pid} has given no answer yet: it will take the cap when it runs again"
    )]
    NoAnswer {
        /// Which.
        pid: u32,
    },
    /// It did not take it.
    #[error("the hold with pid {pid} did not take it: {reason}")]
    Refused {
        /// Which.
        pid: u32,
        /// In its words.
        reason: String,
    },
}

const PREFIX: &str = "hold-";
const SUFFIX: &str = ".socket";
/// Nobody needs longer for one line.
const WITHIN: Duration = Duration::from_secs(2);
const LONGEST: u64 = 256;

/// Where a user's holds may have their sockets, the place of a new one first: another shell may have another
/// environment.
fn places() -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    if let Some(host) = simulated_host() {
        return vec![host.join(format!("hold-{user}"))];
    }
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    real_places(user, run.filter(|run| run.is_dir()))
}

fn real_places(user: u32, run: Option<PathBuf>) -> Vec<PathBuf> {
    let usual = Path::new("/run/user").join(user.to_string());
    let own = format!("sweetspot-hold-{user}");
    let mut places: Vec<PathBuf> = run
        .map(|run| run.join("sweetspot-hold"))
        .into_iter()
        .collect();
    places.push(std::env::temp_dir().join(&own));
    places.push(usual.join("sweetspot-hold"));
    places.push(Path::new("/tmp").join(own));
    places
}

/// Where those of all users may be, for root.
fn places_of_all() -> Vec<PathBuf> {
    let inside = |folder: &Path, is_one: fn(&str) -> bool| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(move |one| is_one(&one.file_name().to_string_lossy()));
        named.map(|one| one.path()).collect::<Vec<_>>()
    };
    if let Some(host) = simulated_host() {
        return inside(&host, |name| name.starts_with(PREFIX));
    }
    let of_users = inside(Path::new("/run/user"), |_| true).into_iter();
    let mut places: Vec<PathBuf> = of_users.map(|run| run.join("sweetspot-hold")).collect();
    for folder in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        places.extend(inside(&folder, |name| name.starts_with("sweetspot-hold-")));
    }
    places
}

/// A folder for the user alone.
fn folder() -> std::io::Result<PathBuf> {
    let folder = places().swap_remove(0);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let about = std::fs::symlink_metadata(&folder)?;
    if !about.is_dir() || about.uid() != geteuid().as_raw() || about.mode() & 0o077 != 0 {
        let problem = format!("{} is not yours alone", folder.display());
        return Err(std::io::Error::other(problem));
    }
    Ok(folder)
}

/// A wish, and where the answer goes.
pub struct Wish {
    /// The cap from now on.
    pub cap: Watts,
    answer: Sender<Result<String, String>>,
}

impl Wish {
    /// What becomes of it, in words.
    pub fn answer(self, answer: Result<String, String>) {
        let _ = self.answer.send(answer);
    }
}

/// A socket for as long as a hold runs.
pub struct ControlSocket {
    path: PathBuf,
    wishes: Receiver<Wish>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ControlSocket {
    pub fn open() -> std::io::Result<Self> {
        let path = folder()?.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()));
        // Of a process that had this number before.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let (sender, wishes) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&listener, &sender, &flag))?;
        Ok(Self {
            path,
            wishes,
            stop,
            thread: Some(thread),
        })
    }

    /// A wish that came since the last look.
    pub fn wish(&self) -> Option<Wish> {
        self.wishes.try_recv().ok()
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

fn listen(listener: &UnixListener, wishes: &Sender<Wish>, stop: &AtomicBool) {
    let pause = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 50_000_000,
    };
    while !stop.load(Ordering::Acquire) {
        let _ = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&pause));
        if let Ok((stream, _)) = listener.accept() {
            // A caller that goes away is nobody's trouble.
            let _ = converse(stream, wishes);
        }
    }
}

/// One line in, one line out.
fn converse(mut stream: UnixStream, wishes: &Sender<Wish>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(WITHIN))?;
    stream.set_write_timeout(Some(WITHIN))?;
    let caller = socket_peercred(&stream)?.uid;
    if caller != geteuid() && !caller.is_root() {
        return writeln!(stream, "refused: it belongs to another user");
    }
    let mut line = String::new();
    BufReader::new((&stream).take(LONGEST)).read_line(&mut line)?;
    let cap = match line.trim().strip_prefix("set ").map(parse_cap) {
        Some(Ok(cap)) => cap,
        Some(Err(problem)) => return writeln!(stream, "refused: {problem}"),
        None => return writeln!(stream, "refused: the only word known is `set WATTS`"),
    };
    let (answer, reply) = channel();
    let gone = || std::io::Error::other("the hold is ending");
    wishes.send(Wish { cap, answer }).map_err(|_| gone())?;
    match reply.recv_timeout(WITHIN).map_err(|_| gone())? {
        Ok(text) => writeln!(stream, "ok: {text}"),
        Err(text) => writeln!(stream, "refused: {text}"),
    }
}

/// The holds that run and listen; what was left by the caller's own that were killed is removed.
fn running(folder: &Path) -> Vec<(u32, UnixStream)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_own = std::fs::symlink_metadata(folder)
        .is_ok_and(|about| about.is_dir() && about.uid() == geteuid().as_raw());
    let mut running = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(SUFFIX)?.parse().ok());
        let Some(pid) = pid else { continue };
        match UnixStream::connect(entry.path()) {
            Ok(stream) => running.push((pid, stream)),
            Err(error) if is_own && error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(entry.path());
            }
            Err(_) => {}
        }
    }
    running
}

/// Those of the caller; with a pid and as root, those of others as well.
fn all_running(pid: Option<u32>) -> Vec<(u32, UnixStream)> {
    let mut places = places();
    if pid.is_some() && geteuid().is_root() {
        places.extend(places_of_all());
    }
    let real = places.iter().filter_map(|place| place.canonicalize().ok());
    let places: BTreeSet<PathBuf> = real.collect();
    let mut all: Vec<_> = places.iter().flat_map(|place| running(place)).collect();
    all.sort_by_key(|(pid, _)| *pid);
    all
}

/// Gives a running hold another cap; its answer, in words.
pub fn set_cap(cap: Watts, pid: Option<u32>) -> Result<String, SetError> {
    let mut running = all_running(pid);
    let names = running
        .iter()
        .map(|(pid, _)| pid.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let place = match (pid, running.len()) {
        (_, 0) => return Err(SetError::None),
        (None, 1) => 0,
        (None, _) => return Err(SetError::Several(names)),
        (Some(pid), _) => {
            running
                .iter()
                .position(|(of, _)| *of == pid)
                .ok_or(SetError::NoSuch {
                    pid,
                    running: names,
                })?
        }
    };
    let (pid, stream) = running.swap_remove(place);
    let refused = |reason: String| SetError::Refused { pid, reason };
    let answer = ask(stream, cap).map_err(|problem| match problem.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SetError::NoAnswer { pid },
        _ => refused(problem.to_string()),
    })?;
    match answer.split_once(": ") {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("refused", text)) => Err(refused(text.to_owned())),
        _ => Err(refused("it gave no answer".to_owned())),
    }
}

fn ask(mut stream: UnixStream, cap: Watts) -> std::io::Result<String> {
    stream.set_read_timeout(Some(2 * WITHIN))?;
    writeln!(stream, "set {}W", cap.get())?;
    let mut line = String::new();
    BufReader::new((&stream).take(1024)).read_line(&mut line)?;
    // Another user's hold may say anything.
    Ok(line.trim().replace(char::is_control, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_of_another_environment_is_looked_for() {
        let run = PathBuf::from("/run/user/7");
        let (with, without) = (real_places(7, Some(run)), real_places(7, None));
        // Where each begins a new one is among the places of the other.
        assert!(without.contains(&with[0]) && with.contains(&without[0]));
        assert_ne!(with[0], without[0]);
    }
}
