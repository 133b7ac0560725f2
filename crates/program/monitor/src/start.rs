//! Starts the measuring process.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit, setrlimit};
use sweetspot_device::{
    HostDevice, HostError, MigSlices, OpenError, SelectError, Selector, select_devices,
};
use sweetspot_hosts::{open_host, open_host_with};
use sweetspot_service::privileges::{PrivilegeError, renounce};
use sweetspot_service::{TcpError, listen_tcp};

use crate::access::TcpRules;
use crate::gpus::whole_gpus;
use crate::meter::{Meter, MeterError};
use crate::server::Server;
use crate::state::State;

/// The number of files that the process may have open.
const MAX_OPEN_FILES: u64 = 4096;

/// What the measuring process is started with.
#[derive(Clone, Debug, Default)]
pub struct MonitorRequest {
    /// The NVML library; the default one if `None`.
    pub nvml: Option<PathBuf>,
    /// Whether metrics have the names of DCGM too.
    pub dcgm_names: bool,
    /// Further names by which clients may call this machine.
    pub hosts: Vec<String>,
    /// The addresses on which it serves pages and metrics, if it was not started by the privileged process.
    pub listen: Vec<String>,
    /// The token of clients of other addresses than loopback.
    pub token: Option<String>,
    /// The GPUs to measure, if the process measures for the one that started it alone.
    pub private: Option<PrivateGpus>,
}

/// The GPUs that a process measures for the one that started it: those that the user's program uses.
#[derive(Clone, Debug, Default)]
pub struct PrivateGpus {
    /// The devices that the user named; `None` stands for those in `CUDA_VISIBLE_DEVICES`, or else all.
    pub devices: Option<String>,
}

impl PrivateGpus {
    /// Selects these GPUs.
    fn select(
        &self,
        gpus: Vec<Box<dyn HostDevice>>,
    ) -> Result<Vec<Box<dyn HostDevice>>, MonitorError> {
        if gpus.is_empty() {
            return Err(MonitorError::NoGpu);
        }
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let selector = Selector::new(self.devices.as_deref(), visible.as_deref());
        let named = match selector {
            Selector::CudaVisibleDevices(list) => format!("CUDA_VISIBLE_DEVICES={list}"),
            Selector::Flag(list) => format!("device {list}"),
            Selector::All => "all GPUs".to_owned(),
        };
        let selected = select_devices(gpus, selector, MigSlices::Exclude);
        selected.map_err(|problem| MonitorError::Select {
            selector: named,
            problem,
        })
    }
}

/// Why the measuring process cannot run.
#[derive(Debug, thiserror::Error)]
pub enum MonitorError {
    /// The process has rights that it must not have.
    #[error(transparent)]
    Privilege(#[from] PrivilegeError),
    /// The driver cannot be reached.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A GPU cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A list of devices, such as `0,1` or a UUID, names none that can be measured.
    #[error("{selector}: {problem}")]
    Select {
        /// The list and where it comes from.
        selector: String,
        /// What is wrong with it.
        problem: SelectError,
    },
    /// This computer has no GPU.
    #[error("there is no NVIDIA GPU on this machine")]
    NoGpu,
    /// The GPUs cannot be measured.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// It cannot listen on a TCP address.
    #[error(transparent)]
    Tcp(#[from] TcpError),
    /// The operating system refused something.
    #[error("the measuring process failed: {0}")]
    System(#[from] io::Error),
}

/// Measures and serves clients. Standard input is the link to the process that started this one, with whose end this one
/// ends too: the privileged one, or a program that measures itself. Or it is the socket at which the privileged process
/// connects.
pub fn run_monitor(request: &MonitorRequest) -> Result<(), MonitorError> {
    // A private process has the rights of the program that asks it, and no other program can ask.
    if request.private.is_none() {
        renounce()?;
    }
    raise_file_limit();
    let link: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    let library = request.nvml.as_deref().map(Path::as_os_str).map(OsStr::new);
    let host = match (library, &request.private) {
        // The environment of a private process is that of the user's program, which may be on a simulated host.
        (None, Some(_)) => open_host()?,
        _ => open_host_with(library)?,
    };
    let gpus = match &request.private {
        Some(private) => private.select(host.list()?)?,
        None => whole_gpus(host.as_ref())?,
    };
    let measured = gpus
        .iter()
        .filter(|gpu| !gpu.is_lost())
        .map(|gpu| gpu.reopen());
    let measured = measured.collect::<Result<Vec<_>, _>>()?;
    let gpus = gpus.into_iter().filter(|gpu| !gpu.is_lost()).collect();
    let state = State::new(gpus, Meter::start(measured)?, request.dcgm_names);
    let rules = TcpRules {
        token: request.token.clone(),
        hosts: request.hosts.clone(),
    };
    let mut listeners = Vec::new();
    for address in &request.listen {
        listeners.extend(listen_tcp(address)?);
    }
    let mut server = match rustix::net::sockopt::socket_acceptconn(&link) {
        Ok(true) => {
            rustix::io::ioctl_fionbio(&link, true).map_err(io::Error::from)?;
            Server::new(state, rules, None, listeners).with_link_listener(link)
        }
        _ => Server::new(state, rules, Some(link), listeners),
    };
    server.serve()?;
    Ok(())
}

/// Raises the limit of open files, which may be lower than all connections together need.
fn raise_file_limit() {
    let mut limits = getrlimit(Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX).min(MAX_OPEN_FILES);
    if limits.current.is_none_or(|current| current >= most) {
        return;
    }
    limits.current = Some(most);
    if let Err(error) = setrlimit(Resource::Nofile, limits) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
