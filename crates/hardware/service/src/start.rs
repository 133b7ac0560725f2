//! Starts the service: checks that nobody but root can influence it, then serves.

use std::ffi::OsStr;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use sweetspot_device::HostError;
use sweetspot_guard::{Journal, JournalError, Leases};
use sweetspot_hosts::{DEFAULT_ROOT, HostTree, device_opener, lock_scope, open_host_with};

use crate::audit::Audit;
use crate::gpus::ServedGpu;
use crate::listener::{ListenError, listen};
use crate::monitor::{Monitor, MonitorOptions, TcpError, listen_tcp, path_argument};
use crate::ownership::{OwnershipError, private_folder, require_root_owned};
use crate::policy::{POLICY_FILE, Policy, PolicyError, SystemAccounts};
use crate::processor_energy::ProcessorCounters;
use crate::requests::Service;
use crate::server::{ServerOptions, serve};

/// The socket of the service.
pub const SOCKET: &str = "/run/sweetspot/sweetspot.sock";
/// The folder with the settings that devices had before they were changed by root's guards and by the service.
pub const JOURNAL_FOLDER: &str = "/var/lib/sweetspot/journal";

/// The folder in which root's guards of earlier versions kept their journals.
pub const EARLIER_JOURNAL_FOLDER: &str = "/run/sweetspot";
/// The audit log.
pub const AUDIT_LOG: &str = "/var/log/sweetspot/audit.jsonl";

/// The files of the service. All of them are chosen by root, none by a client.
#[derive(Clone, Debug)]
pub struct ServiceFiles {
    /// The socket on which users reach the service.
    pub socket: PathBuf,
    /// The policy; if there is no such file, the default policy holds.
    pub policy: PathBuf,
    /// The NVML library; the default one if `None`.
    pub nvml: Option<PathBuf>,
    /// The tree of sysfs with the processors' power caps.
    pub sysfs: PathBuf,
    /// The folder of the journal.
    pub journal: PathBuf,
    /// The audit log.
    pub audit: PathBuf,
    /// What the measuring process is started with; `None` to start none.
    pub monitor: Option<MonitorFiles>,
}

/// The addresses and files of the measuring process.
#[derive(Clone, Debug, Default)]
pub struct MonitorFiles {
    /// The addresses on which it serves pages and metrics, such as `127.0.0.1:9440`.
    pub listen: Vec<String>,
    /// The token of clients of other addresses than loopback.
    pub token: Option<String>,
    /// The arguments of the measuring process.
    pub arguments: Vec<std::ffi::OsString>,
    /// The socket at which a measuring process waits that systemd starts; this process then starts none.
    pub link: Option<PathBuf>,
}

impl Default for ServiceFiles {
    /// The usual files.
    fn default() -> Self {
        Self {
            socket: PathBuf::from(SOCKET),
            policy: PathBuf::from(POLICY_FILE),
            nvml: None,
            sysfs: PathBuf::from(DEFAULT_ROOT),
            journal: PathBuf::from(JOURNAL_FOLDER),
            audit: PathBuf::from(AUDIT_LOG),
            monitor: None,
        }
    }
}

/// Why the service cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The process does not run as root.
    #[error(
        "only root can set GPUs for others: run `sudo sweetspot serve`, or install it with `sudo sweetspot serve --install`"
    )]
    NotRoot,
    /// Others than root could change a file that the service relies on.
    #[error(transparent)]
    Ownership(#[from] OwnershipError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The socket cannot be made.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The driver cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The audit log cannot be written.
    #[error("cannot write the audit log {path}: {problem}")]
    Audit {
        /// The path of the log.
        path: PathBuf,
        /// The operating system's error.
        problem: io::Error,
    },
    /// The process at the other end is not one of the user who started this one with sudo.
    #[error(
        "the process at {path} belongs to user {found} and not to user {expected}, who started this program with sudo"
    )]
    OtherUser {
        /// The path of the socket.
        path: PathBuf,
        /// The user of the process at the other end.
        found: u32,
        /// The user who started this program with sudo.
        expected: u32,
    },
    /// The service cannot listen on a TCP address.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The operating system refused something.
    #[error("{what}: {problem}")]
    System {
        /// What was to be done.
        what: String,
        /// The operating system's error.
        problem: io::Error,
    },
}

/// The number of files that the service may have open, as in the systemd unit. A connection needs two: its socket and a
/// descriptor of its process.
const MAX_OPEN_FILES: u64 = 4096;

/// Serves all users until SIGTERM.
pub fn serve_users(files: &ServiceFiles) -> Result<(), ServeError> {
    require_root()?;
    raise_file_limit();
    let policy = load_policy(&files.policy)?;
    if let Some(folder) = files.socket.parent() {
        private_folder(folder, 0o755)?;
    }
    let listener = listen(&files.socket)?;
    let mut reload = || load_policy(&files.policy).map_err(|error| error.to_string());
    let options = ServerOptions {
        listener: Some(listener),
        first: None,
        reload: &mut reload,
    };
    let served = run(files, Some(policy), options);
    // The socket of a service that has ended would only confuse.
    let _ = std::fs::remove_file(&files.socket);
    served
}

/// Serves one client, who has started this process with sudo and may therefore do what root may. The client listens at
/// `socket`.
pub fn serve_sudo_user(files: &ServiceFiles, socket: &Path, user: u32) -> Result<(), ServeError> {
    require_root()?;
    let stream = connect_to_client(socket).map_err(|problem| ServeError::System {
        what: format!("cannot connect to {}", socket.display()),
        problem,
    })?;
    let peer = rustix::net::sockopt::socket_peercred(&stream);
    let peer = peer.map_err(|problem| ServeError::System {
        what: "cannot find out who is at the other end".to_owned(),
        problem: problem.into(),
    })?;
    if peer.uid.as_raw() != user {
        return Err(ServeError::OtherUser {
            path: socket.to_owned(),
            found: peer.uid.as_raw(),
            expected: user,
        });
    }
    let options = ServerOptions {
        listener: None,
        first: Some(stream),
        reload: &mut || Err("there is no policy to read again".to_owned()),
    };
    run(files, None, options)
}

/// Connects to the client, which may be about to make its socket.
fn connect_to_client(socket: &Path) -> io::Result<UnixStream> {
    /// The longest wait for the socket.
    const TIMEOUT: Duration = Duration::from_secs(20);
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Err(error)
                if begun.elapsed() < TIMEOUT
                    && matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                    ) =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            connected => return connected,
        }
    }
}

/// Raises the limit of open files, which in a terminal is lower than all connections together need. With systemd the
/// limit is high enough, and the call is not permitted.
fn raise_file_limit() {
    let mut limits = getrlimit(Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX).min(MAX_OPEN_FILES);
    if limits.current.is_some_and(|current| current < most) {
        limits.current = Some(most);
        if let Err(error) = setrlimit(Resource::Nofile, limits) {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
}

/// Refuses to run without root's rights.
fn require_root() -> Result<(), ServeError> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(ServeError::NotRoot),
    }
}

/// Reads the policy, which only root may be able to change.
pub fn load_policy(path: &Path) -> Result<Policy, PolicyError> {
    Policy::load(path, &SystemAccounts, |path| {
        require_root_owned(path).map_err(|error| error.to_string())
    })
}

/// Opens the devices, the journal and the log, and serves.
fn run(
    files: &ServiceFiles,
    policy: Option<Policy>,
    options: ServerOptions<'_>,
) -> Result<(), ServeError> {
    if let Some(library) = &files.nvml {
        require_root_owned(library)?;
    }
    require_root_owned(&files.sysfs)?;
    let host = open_host_with(files.nvml.as_deref().map(Path::as_os_str).map(OsStr::new))?;
    if let Some(folder) = files.journal.parent() {
        private_folder(folder, 0o755)?;
    }
    private_folder(&files.journal, 0o700)?;
    let journal = Journal::open(&files.journal)?.locking_machine(lock_scope());
    journal.take_over(Path::new(EARLIER_JOURNAL_FOLDER));
    if let Some(folder) = files.audit.parent() {
        private_folder(folder, 0o755)?;
    }
    let audit = Audit::open(&files.audit).map_err(|problem| ServeError::Audit {
        path: files.audit.clone(),
        problem,
    })?;
    let gpus = ServedGpu::list(host.as_ref())?;
    let tree = HostTree::open(&files.sysfs);
    let packages = ServedGpu::list_packages(&tree);
    let processors = ProcessorCounters::find(&tree);
    let open = device_opener(Ok(host), tree);
    let mut service =
        Service::new(Leases::new(journal, open), gpus, policy, audit).serving_packages(packages);
    if options.listener.is_some()
        && let Some(monitor) = &files.monitor
    {
        service.monitor = Some(start_monitor(files, monitor)?);
        service.processors = processors;
    }
    serve(&mut service, options).map_err(|problem| ServeError::System {
        what: "the service failed".to_owned(),
        problem,
    })
}

/// Listens on the TCP addresses, and starts the measuring process with them.
fn start_monitor(files: &ServiceFiles, monitor: &MonitorFiles) -> Result<Monitor, ServeError> {
    if let Some(link) = &monitor.link {
        return Ok(Monitor::connect(link.clone()));
    }
    let mut listeners = Vec::new();
    for address in &monitor.listen {
        listeners.extend(listen_tcp(address)?);
    }
    let mut arguments = monitor.arguments.clone();
    arguments.extend(path_argument("--nvml", &files.nvml));
    Ok(Monitor::start(MonitorOptions {
        arguments,
        listeners,
        token: monitor.token.clone(),
    }))
}
