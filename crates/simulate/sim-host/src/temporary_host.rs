//! Creates a simulated host: a folder with GPUs and the simulated NVML library, and the environment variables that
//! point to them.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::process::geteuid;
use sweetspot_sim::{CatalogueError, GpuListError, find_node, gpu_text, node_text, parse_gpu_list};

use crate::remover::FolderRemover;
use crate::{ENVIRONMENT, Host, HostError, ProfileText};

/// A simulated host in a temporary folder; dropping this value deletes the folder.
#[derive(Debug)]
pub struct TemporaryHost {
    folder: PathBuf,
    library: PathBuf,
    /// The locked file that shows other processes that the host is in use.
    _owner: File,
    /// The process that deletes the folder if this one is killed.
    remover: Option<FolderRemover>,
}

/// Why a simulated host cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateHostError {
    /// Neither a GPU nor a node was named.
    #[error("no simulated GPU was named: name a GPU, or a node with GPUs")]
    NoGpu,
    /// The list of GPUs cannot be read.
    #[error(transparent)]
    List(#[from] GpuListError),
    /// A profile is missing or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The folder of the host cannot be created.
    #[error("cannot create a simulated host in {}: {problem}", folder.display())]
    Folder {
        /// The path of the folder.
        folder: PathBuf,
        /// The operating system's error.
        problem: String,
    },
    /// The files of the host cannot be written.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// The profiles of the GPUs of a new host, and of the node that contains them.
#[derive(Clone, Debug)]
pub struct HostParts {
    gpus: Vec<ProfileText>,
    node: Option<ProfileText>,
}

impl HostParts {
    /// Finds the profiles of a list of GPUs such as `v100:2,quadro_rtx_6000`, and of a node; without a list, the node's
    /// own GPUs.
    pub fn new(gpus: Option<&str>, node: Option<&str>) -> Result<Self, CreateHostError> {
        let of_node = node.map(find_node).transpose()?;
        let selector = match (gpus, &of_node) {
            (Some(gpus), _) => gpus,
            (None, Some((_, node))) => &node.gpus,
            (None, None) => return Err(CreateHostError::NoGpu),
        };
        let mut gpus = Vec::new();
        for name in parse_gpu_list(selector)? {
            let (name, profile) = gpu_text(&name)?;
            gpus.push(ProfileText { name, profile });
        }
        let node = node.map(|name| {
            let (name, profile) = node_text(name)?;
            Ok::<_, CreateHostError>(ProfileText { name, profile })
        });
        Ok(Self {
            gpus,
            node: node.transpose()?,
        })
    }
}

impl TemporaryHost {
    /// Creates a host from these profiles; `library` is the content of the simulated NVML library.
    pub fn new(parts: HostParts, library: &[u8], seed: u64) -> Result<Self, CreateHostError> {
        remove_abandoned_hosts();
        let folder = create_folder().map_err(|problem| cannot_create(&hosts_folder(), &problem))?;
        let owner = lock_owner_file(&folder).map_err(|problem| cannot_create(&folder, &problem))?;
        let host = Self {
            library: folder.join("lib/libnvidia-ml.so.1"),
            folder,
            _owner: owner,
            remover: None,
        };
        host.fill(library)
            .map_err(|problem| cannot_create(&host.folder, &problem))?;
        Host::create(&host.folder, parts.gpus, parts.node, seed)?;
        Ok(host)
    }

    /// Writes the simulated NVML library and a stand-in for `nvidia-smi` to the host's folder.
    fn fill(&self, library: &[u8]) -> io::Result<()> {
        std::fs::create_dir(self.folder.join("lib"))?;
        std::fs::write(&self.library, library)?;
        std::os::unix::fs::symlink("libnvidia-ml.so.1", self.folder.join("lib/libnvidia-ml.so"))?;
        // Some clients check only that a program `nvidia-smi` exists.
        let stand_in = self.folder.join("bin/nvidia-smi");
        std::fs::create_dir(self.folder.join("bin"))?;
        std::fs::write(
            &stand_in,
            "#!/bin/sh\necho 'nvidia-smi does not work on a simulated host: try sweetspot devices, nvitop or gpustat'\n",
        )?;
        std::fs::set_permissions(&stand_in, std::fs::Permissions::from_mode(0o755))
    }

    /// Starts a small process that deletes the folder as soon as this process is killed. Without it, the next program that
    /// creates a host deletes the folder.
    pub fn remove_when_killed(&mut self) -> Result<(), CreateHostError> {
        let remover = FolderRemover::start(&self.folder);
        self.remover = Some(remover.map_err(|problem| cannot_create(&self.folder, &problem))?);
        Ok(())
    }

    /// The folder of the simulated host.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The environment variables with which a process sees this host's GPUs instead of real ones.
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

impl Drop for TemporaryHost {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The error that a host's folder cannot be created.
fn cannot_create(folder: &Path, problem: &io::Error) -> CreateHostError {
    CreateHostError::Folder {
        folder: folder.to_owned(),
        problem: problem.to_string(),
    }
}

/// The beginning of the name of a simulated host's folder.
const PREFIX: &str = "sweetspot-sim-";
/// The name of the file that is locked while the host is in use.
const OWNER: &str = "owner";

/// Creates and locks the file that shows that the host is in use. The lock is taken before the file gets its name;
/// therefore no other process finds the file unlocked.
fn lock_owner_file(folder: &Path) -> io::Result<File> {
    let new = folder.join("owner.new");
    let lock = File::create(&new)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(new, folder.join(OWNER))?;
    Ok(lock)
}

/// The folder in which simulated hosts are created: in shared memory, if the computer has a folder for it.
fn hosts_folder() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() {
        shared.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Creates an empty folder with a unique name.
fn create_folder() -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let folder = hosts_folder().join(format!("{PREFIX}{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o755).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            other => return other.map(|()| folder),
        }
    }
}

/// Removes the simulated hosts of this user's killed programs, which are recognised by locks that the kernel has
/// released. Process ids cannot be used, because they differ between containers.
fn remove_abandoned_hosts() {
    let Ok(entries) = std::fs::read_dir(hosts_folder()) else {
        return;
    };
    for entry in entries.flatten() {
        let has_name = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_own = |found: Metadata| found.is_dir() && found.uid() == geteuid().as_raw();
        // Another user may have put anything there, which concerns that user alone.
        if has_name && entry.metadata().is_ok_and(is_own) && is_abandoned(&entry.path()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Whether no process uses a simulated host.
fn is_abandoned(folder: &Path) -> bool {
    let mut options = File::options();
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);
    let lock = options
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(folder.join(OWNER));
    lock.is_ok_and(|lock| {
        lock.metadata().is_ok_and(|found| found.is_file())
            && flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}
