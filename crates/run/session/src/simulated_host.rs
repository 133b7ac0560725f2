//! A simulated host: a folder with GPUs, the NVML library, and the environment that leads to them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sweetspot_quantity::{BytesPerSecond, Ratio, Seconds};
use sweetspot_sim::{AllReduce, find_node, gpu_text, node_text};
use sweetspot_sim_host::{ENVIRONMENT, Host, Spec};

use crate::SessionError;

/// GPUs of a host at most.
const MOST_GPUS: u64 = 64;

/// A simulated host for as long as this value lives.
#[derive(Debug)]
pub struct SimulatedHost {
    folder: PathBuf,
    library: PathBuf,
    /// Locked for as long as the host is in use.
    _owner: File,
}

/// The GPUs that `v100:2,quadro_rtx_6000` names, one by one.
pub(crate) fn gpu_names(selector: &str) -> Result<Vec<String>, SessionError> {
    let bad = |problem: String| SessionError::SimulatedGpus {
        selector: selector.to_owned(),
        problem,
    };
    let mut names = Vec::new();
    for part in selector.split(',') {
        let (name, count) = match part.rsplit_once(':') {
            Some((name, count)) => {
                let count = count.parse::<u64>().map_err(|_| {
                    bad(format!(
                        "`{count}` is not a number of GPUs: write NAME or NAME:N"
                    ))
                })?;
                (name, count)
            }
            None => (part, 1),
        };
        if count == 0 || count > MOST_GPUS || count + names.len() as u64 > MOST_GPUS {
            return Err(bad(format!("a host has 1 to {MOST_GPUS} GPUs")));
        }
        names.extend((0..count).map(|_| name.to_owned()));
    }
    Ok(names)
}

/// What a host is made of.
#[derive(Clone, Debug)]
pub struct HostParts {
    gpus: Vec<Spec>,
    node: Option<Spec>,
}

impl HostParts {
    /// The GPUs that `v100:2,quadro_rtx_6000` names, in the node of that name; the node's own GPUs where
    /// none are named.
    pub fn new(gpus: Option<&str>, node: Option<&str>) -> Result<Self, SessionError> {
        let of_node = node.map(find_node).transpose()?;
        let selector = match (gpus, &of_node) {
            (Some(gpus), _) => gpus,
            (None, Some((_, node))) => &node.gpus,
            (None, None) => return Err(SessionError::NoSimulatedGpu),
        };
        let mut gpus = Vec::new();
        for name in gpu_names(selector)? {
            let (name, profile) = gpu_text(&name)?;
            gpus.push(Spec { name, profile });
        }
        let node = node.map(|name| {
            let (name, profile) = node_text(name)?;
            Ok::<_, SessionError>(Spec { name, profile })
        });
        Ok(Self {
            gpus,
            node: node.transpose()?,
        })
    }
}

/// Between GPUs of which no node is known: PCI Express 3.0, nothing hidden.
pub(crate) fn usual_all_reduce() -> AllReduce {
    AllReduce {
        bandwidth: BytesPerSecond::new(10e9),
        latency: Seconds::new(20e-6),
        overlap: Ratio::ZERO,
        activity: Ratio::ZERO,
    }
}

impl SimulatedHost {
    /// Makes a host of these parts; `library` is the simulated NVML, which travels in the program.
    pub fn new(parts: HostParts, library: &[u8], seed: u64) -> Result<Self, SessionError> {
        remove_those_left_behind();
        let folder = fresh_folder().map_err(|problem| cannot_make(&base(), &problem))?;
        let owner = locked(&folder).map_err(|problem| cannot_make(&folder, &problem))?;
        let host = Self {
            library: folder.join("lib/libnvidia-ml.so.1"),
            folder,
            _owner: owner,
        };
        host.fill(library)
            .map_err(|problem| cannot_make(&host.folder, &problem))?;
        Host::create(&host.folder, parts.gpus, parts.node, seed)?;
        Ok(host)
    }

    fn fill(&self, library: &[u8]) -> io::Result<()> {
        std::fs::create_dir(self.folder.join("lib"))?;
        std::fs::write(&self.library, library)?;
        std::os::unix::fs::symlink("libnvidia-ml.so.1", self.folder.join("lib/libnvidia-ml.so"))?;
        // Some clients look whether there is such a program, and ask no more of it.
        let stand_in = self.folder.join("bin/nvidia-smi");
        std::fs::create_dir(self.folder.join("bin"))?;
        std::fs::write(
            &stand_in,
            "#!/bin/sh\necho 'a stand-in on a simulated host: try sweetspot devices, nvitop or gpustat'\n",
        )?;
        std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variables that put a process on this host.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let before = |folder: &str, variable: &str| {
            let mut paths = vec![self.folder.join(folder)];
            if let Some(others) = std::env::var_os(variable) {
                paths.extend(std::env::split_paths(&others));
            }
            std::env::join_paths(paths).unwrap_or_default()
        };
        vec![
            (ENVIRONMENT, self.folder.clone().into()),
            ("SWEETSPOT_NVML", self.library.clone().into()),
            ("LD_LIBRARY_PATH", before("lib", "LD_LIBRARY_PATH")),
            ("PATH", before("bin", "PATH")),
        ]
    }
}

impl Drop for SimulatedHost {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn cannot_make(folder: &Path, problem: &io::Error) -> SessionError {
    SessionError::HostFolder {
        folder: folder.to_owned(),
        problem: problem.to_string(),
    }
}

const PREFIX: &str = "sweetspot-sim-";
const OWNER: &str = "owner";

/// The lock is taken before the file has its name, so that nobody finds it free.
fn locked(folder: &Path) -> io::Result<File> {
    let new = folder.join("owner.new");
    let lock = File::create(&new)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(new, folder.join(OWNER))?;
    Ok(lock)
}

/// Shared memory where there is some.
fn base() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    }
}

fn fresh_folder() -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let folder = base().join(format!("{PREFIX}{}-{number}", std::process::id()));
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            other => return other.map(|()| folder),
        }
    }
}

/// A killed program could not tidy up. Its lock is gone with it; its process number would tell nothing to
/// those who see other numbers, in containers.
fn remove_those_left_behind() {
    let Ok(entries) = std::fs::read_dir(base()) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let lock = File::open(entry.path().join(OWNER));
        let is_left =
            lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_left {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
