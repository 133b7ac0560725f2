//! Starts the measuring process, and starts it again if it ends; or connects to one that systemd starts.
//!
//! The measuring process samples the devices, answers clients and serves pages. It runs as a user without rights. Leases
//! do not depend on it: this process never waits for it and never reads from it.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::monitor_link::{
    LeaseView, MonitorMessage, ProcessorReading, connect_link, link_pair, send_message,
};
use crate::privileges::User;

/// The account of the measuring process; where it does not exist, that of `nobody`.
pub const MONITOR_ACCOUNT: &str = "sweetspot-monitor";
/// The id of the user `nobody`.
const NOBODY: u32 = 65_534;

/// The time until a measuring process that has ended is started again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After this time a measuring process counts as healthy.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);

/// What the measuring process is started with.
#[derive(Debug)]
pub struct MonitorOptions {
    /// The arguments of the program.
    pub arguments: Vec<std::ffi::OsString>,
    /// The TCP sockets on which it serves pages and metrics.
    pub listeners: Vec<TcpListener>,
    /// The token of clients of other addresses than loopback.
    pub token: Option<String>,
}

/// Where the measuring process comes from.
#[derive(Debug)]
enum Origin {
    /// This process starts it as a user and group.
    Child {
        options: MonitorOptions,
        user: u32,
        group: u32,
    },
    /// systemd starts it; it waits at this socket, which only root can make and connect to.
    Socket(PathBuf),
}

/// The measuring process.
#[derive(Debug)]
pub struct Monitor {
    origin: Origin,
    /// The process, if this one has started it, and the link to it.
    running: Option<(Option<Child>, OwnedFd)>,
    started: Instant,
    pause: Duration,
}

impl Monitor {
    /// Starts the measuring process.
    pub fn start(options: MonitorOptions) -> Self {
        let account = User::from_name(MONITOR_ACCOUNT).filter(|user| user.uid != 0);
        let (user, group) = account.map_or((NOBODY, NOBODY), |user| (user.uid, user.gid));
        Self::new(Origin::Child {
            options,
            user,
            group,
        })
    }

    /// Connects to a measuring process that systemd starts, at its socket.
    pub fn connect(socket: PathBuf) -> Self {
        Self::new(Origin::Socket(socket))
    }

    fn new(origin: Origin) -> Self {
        let mut monitor = Self {
            origin,
            running: None,
            started: Instant::now(),
            pause: FIRST_PAUSE,
        };
        monitor.begin();
        monitor
    }

    /// Starts the process, or connects to it; a failure is logged, and tried again later.
    fn begin(&mut self) {
        self.started = Instant::now();
        let begun = match &self.origin {
            Origin::Child {
                options,
                user,
                group,
            } => spawn(options, *user, *group).map(|(child, link)| (Some(child), link)),
            Origin::Socket(path) => connect_link(path).map(|link| (None, link)),
        };
        match begun {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                tracing::error!(%error, "cannot reach the measuring process");
            }
        }
    }

    /// Starts the process again if it has ended, after a pause that grows while it does not live long.
    pub fn check(&mut self) {
        if let Some((child, link)) = &mut self.running {
            match child.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => return,
                None if !is_closed(link) => return,
                None => tracing::warn!("the measuring process ended"),
                Some(Ok(Some(status))) => tracing::warn!(%status, "the measuring process ended"),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the measuring process cannot be watched");
                }
            }
            self.running = None;
            self.pause = match self.started.elapsed() > HEALTHY_AFTER {
                true => FIRST_PAUSE,
                false => (self.pause * 2).min(LONGEST_PAUSE),
            };
        }
        if self.started.elapsed() >= self.pause {
            self.begin();
        }
    }

    /// Passes a client and the bytes that were read from it to the measuring process.
    pub fn hand_over(
        &self,
        client: BorrowedFd<'_>,
        bytes: &[u8],
        may_read_processors: bool,
    ) -> io::Result<()> {
        let (_, link) = self.running.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let message = MonitorMessage::Client {
            may_read_processors,
        };
        send_message(link, &message, bytes, Some(client))
    }

    /// Tells the measuring process which leases there are. It does not matter if a message is lost.
    pub fn publish(&self, leases: Vec<LeaseView>) {
        self.send(&MonitorMessage::Leases(leases));
    }

    /// Tells the measuring process the energy of the processors.
    pub fn publish_processors(&self, reading: ProcessorReading) {
        self.send(&MonitorMessage::Processors(reading));
    }

    /// Sends a message that may be lost.
    fn send(&self, message: &MonitorMessage) {
        if let Some((_, link)) = &self.running {
            let _ = send_message(link, message, &[], None);
        }
    }
}

impl Drop for Monitor {
    /// Ends the process: it ends when the link is closed.
    fn drop(&mut self) {
        if let Some((child, link)) = self.running.take() {
            drop(link);
            if let Some(mut child) = child {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// Starts the program as the measuring process.
fn spawn(options: &MonitorOptions, user: u32, group: u32) -> io::Result<(Child, OwnedFd)> {
    let (ours, theirs) = link_pair()?;
    // The path of the program may have been replaced since, by an upgrade.
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("sweetspot")
        .arg("monitor")
        .args(&options.arguments)
        .current_dir("/")
        .env_clear()
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::null())
        // As root these calls also remove all groups and capabilities.
        .gid(group)
        .uid(user);
    // A simulated host is found through its variable; no other one matters.
    if let Some(folder) = std::env::var_os("SWEETSPOT_SIM") {
        command.env("SWEETSPOT_SIM", folder);
    }
    let child = command.spawn()?;
    for listener in &options.listeners {
        let message = MonitorMessage::Listener {
            token: options.token.clone(),
        };
        send_message(&ours, &message, &[], Some(listener.as_fd()))?;
    }
    Ok((child, ours))
}

/// Whether the other end of a link is closed.
fn is_closed(link: &OwnedFd) -> bool {
    let mut wait = [PollFd::new(link, PollFlags::empty())];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut wait, Some(&now)).is_ok() && wait[0].revents().intersects(PollFlags::HUP)
}

/// Why a TCP socket cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// Another process uses the port.
    #[error("{0} is in use by another process: stop it, or choose another port with --listen")]
    InUse(String),
    /// The address is not one of this machine, or may not be used.
    #[error("cannot listen on {address}: {problem}")]
    System {
        /// The address.
        address: String,
        /// The operating system's error.
        problem: io::Error,
    },
}

/// Listens on every address that a name such as `localhost:9440` stands for.
pub fn listen_tcp(address: &str) -> Result<Vec<TcpListener>, TcpError> {
    use std::net::ToSocketAddrs;
    let failed = |problem: io::Error| match problem.kind() {
        io::ErrorKind::AddrInUse => TcpError::InUse(address.to_owned()),
        _ => TcpError::System {
            address: address.to_owned(),
            problem,
        },
    };
    let addresses = address.to_socket_addrs().map_err(failed)?;
    let listener = |address| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    addresses
        .map(|address| listener(address).map_err(failed))
        .collect()
}

/// Whether a path is one of the measuring process that programs ask for by themselves. Where there is no such process,
/// these requests are answered, but they are no offence that the audit log should tell about.
pub fn is_measuring_path(path: &str) -> bool {
    matches!(
        path,
        "/job" | "/live" | "/metrics" | "/clock" | "/energy" | "/counters"
    ) || path.starts_with("/counters/")
}

/// The path of a file as an argument.
pub fn path_argument(name: &str, path: &Option<PathBuf>) -> Vec<std::ffi::OsString> {
    let given = path.iter();
    given
        .flat_map(|path| [name.into(), path.clone().into()])
        .collect()
}
