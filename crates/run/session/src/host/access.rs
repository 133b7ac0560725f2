//! Who changes device settings for this program: its own guard process, the service, or a process that runs as root
//! through sudo.

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_peercred;
use sweetspot_guard::{
    ClientConnection, Leases, LocalWriter, RemoteWriter, SettingsWriter, connect_at_once, serve,
};
use sweetspot_hosts::{device_opener, open_host_tree};
use sweetspot_service::SOCKET;
use sweetspot_workload::WorkloadError;

use super::{open_journal, simulated_host};
use crate::SessionError;

/// The environment variable with the socket of the service, for clients alone.
const SOCKET_VARIABLE: &str = "SWEETSPOT_SOCKET";

/// The longest wait for a process of root to connect.
const ROOT_TIMEOUT: Duration = Duration::from_secs(20);

/// A function that starts a process as root, which connects to the given socket and changes settings.
pub type StartAsRoot = Box<dyn Fn(&Path) -> io::Result<()>>;

/// Who changes device settings for this program.
pub enum SettingsAccess {
    /// The guard process itself, with the rights of this user.
    Own,
    /// The service at this socket.
    Service(PathBuf),
    /// A process that runs as root; one is started for each guard process.
    Root(StartAsRoot),
}

/// The socket of the service: the one in `SWEETSPOT_SOCKET`, or the usual one.
pub fn service_socket() -> PathBuf {
    let named = std::env::var_os(SOCKET_VARIABLE).filter(|name| !name.is_empty());
    named.map_or_else(|| PathBuf::from(SOCKET), PathBuf::from)
}

impl SettingsAccess {
    /// The service, if it runs and this user needs it; otherwise the guard process itself.
    pub fn available() -> Self {
        let named = std::env::var_os(SOCKET_VARIABLE).filter(|name| !name.is_empty());
        if let Some(socket) = named {
            return Self::Service(PathBuf::from(socket));
        }
        let needs_no_service = rustix::process::geteuid().is_root() || simulated_host().is_some();
        if needs_no_service {
            return Self::Own;
        }
        match connect_at_once(Path::new(SOCKET)) {
            // A service that does not respond is an error where it is asked, and no reason to try without it.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Self::Own,
            _ => Self::Service(PathBuf::from(SOCKET)),
        }
    }

    /// Whether another process, with rights that this user does not have, changes the settings.
    pub const fn asks_root(&self) -> bool {
        !matches!(self, Self::Own)
    }

    /// Completes the command that starts the guard process; `guard` runs this program.
    pub fn guard_command(&self, mut guard: Command) -> Result<Command, WorkloadError> {
        guard.arg("guard");
        match self {
            Self::Own => drop(open_journal()?),
            Self::Service(socket) => drop(guard.arg("--service").arg(socket)),
            Self::Root(start) => {
                let system = |problem| WorkloadError::System {
                    what: "cannot start a process as root that changes settings",
                    problem,
                };
                let folder = tempfile::Builder::new().prefix("sweetspot-").tempdir();
                // The guard process removes the folder.
                let socket = folder.map_err(system)?.keep().join("root.socket");
                start(&socket).map_err(system)?;
                guard.arg("--root-socket").arg(socket);
            }
        }
        Ok(guard)
    }
}

/// Who changes settings for a guard process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardWriter {
    /// The guard process itself.
    Own,
    /// The service at this socket.
    Service(PathBuf),
    /// A process of root that connects to this socket.
    Root(PathBuf),
}

/// Runs this process as a guard, which serves the client that has started it.
pub fn serve_as_guard(writer: GuardWriter) -> Result<(), SessionError> {
    let system = |what: &'static str| move |problem| SessionError::System { what, problem };
    let client = ClientConnection::from_standard_input();
    let client = client.map_err(system("the guard cannot reach its client"))?;
    // A client that has ended has nothing to restore yet.
    let Some(client) = client else {
        return Ok(());
    };
    let mut writer: Box<dyn SettingsWriter> = match writer {
        GuardWriter::Own => {
            // The guard waits for the driver as long as it takes: it has settings to restore.
            let gpus = sweetspot_hosts::open_host();
            let leases = Leases::new(open_journal()?, device_opener(gpus, open_host_tree()));
            Box::new(LocalWriter::new(leases))
        }
        GuardWriter::Service(socket) => Box::new(RemoteWriter::service(&socket)),
        GuardWriter::Root(socket) => {
            let listener = UnixListener::bind(&socket);
            let listener = listener.map_err(system("cannot make a socket for root's process"))?;
            Box::new(RemoteWriter::once(move || accept_root(&listener, &socket)))
        }
    };
    serve(client, writer.as_mut()).map_err(system("the guard failed"))
}

/// Waits for root's process to connect, and removes the socket with its folder.
fn accept_root(listener: &UnixListener, socket: &Path) -> io::Result<UnixStream> {
    listener.set_nonblocking(true)?;
    let begun = Instant::now();
    let accepted = loop {
        match listener.accept() {
            Ok((stream, _)) if socket_peercred(&stream)?.uid.is_root() => break Ok(stream),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if begun.elapsed() > ROOT_TIMEOUT {
                    break Err(io::Error::other(
                        "the process that was started as root did not connect",
                    ));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => break Err(error),
        }
    };
    let _ = std::fs::remove_file(socket);
    if let Some(folder) = socket.parent() {
        let _ = std::fs::remove_dir(folder);
    }
    let stream = accepted?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}
