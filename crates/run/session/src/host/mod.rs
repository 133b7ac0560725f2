//! The GPUs of this computer: lists and selects them, and runs the guard process that changes and restores their
//! settings.

mod access;
mod bounded;
mod error;

pub use access::{GuardWriter, SettingsAccess, StartAsRoot, serve_as_guard, service_socket};
pub(crate) use bounded::open_host;
pub use error::DevicesError;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use sweetspot_device::{
    ControllableDevice, Descriptor, Device, DeviceId, Host, HostDevice, MigSlices, OpenError,
    Selector, select_devices,
};
use sweetspot_guard::{Journal, JournalError, RestoreOutcome, UnrestoredDevice, restore_device};
use sweetspot_hosts::lock_scope;
use sweetspot_service::{EARLIER_JOURNAL_FOLDER, JOURNAL_FOLDER, SOCKET};
use sweetspot_sim_host::ENVIRONMENT;

use crate::SessionError;

/// A GPU of this computer, real or simulated.
pub(crate) type Gpu = Box<dyn HostDevice>;

/// Lists every GPU and MIG slice. It is an error if there is none.
pub(crate) fn all_gpus(host: &dyn Host) -> Result<Vec<Gpu>, SessionError> {
    let gpus = host.list()?;
    if gpus.is_empty() {
        return Err(DevicesError::NoGpu.into());
    }
    Ok(gpus)
}

/// The GPUs that a selector names; without a selector, those of `CUDA_VISIBLE_DEVICES`, or else all GPUs.
pub(crate) fn select(
    gpus: Vec<Gpu>,
    selector: Option<&str>,
    slices: MigSlices,
) -> Result<Vec<Gpu>, SessionError> {
    let given = selector;
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let selector = Selector::new(given, visible.as_deref());
    let named = match selector {
        Selector::CudaVisibleDevices(list) => format!("CUDA_VISIBLE_DEVICES={list}"),
        _ => format!("device {}", given.unwrap_or("all")),
    };
    let selected = select_devices(gpus, selector, slices);
    selected.map_err(|problem| {
        let selector = named;
        DevicesError::Select { selector, problem }.into()
    })
}

/// The GPUs that a selector names; a GPU that no longer responds is an error.
pub(crate) fn select_working(
    selector: Option<&str>,
    slices: MigSlices,
) -> Result<Vec<Gpu>, SessionError> {
    let gpus = select(all_gpus(open_host()?.as_ref())?, selector, slices)?;
    reject_lost(&gpus)?;
    Ok(gpus)
}

/// Rejects GPUs that were found but no longer respond.
pub(crate) fn reject_lost(gpus: &[Gpu]) -> Result<(), SessionError> {
    match gpus.iter().find(|gpu| gpu.is_lost()) {
        Some(lost) => Err(DevicesError::Lost(lost.descriptor().name.clone()).into()),
        None => Ok(()),
    }
}

/// Opens the same GPUs again, for another thread to read.
pub(crate) fn reopen_for_reading<'a>(
    gpus: impl IntoIterator<Item = &'a Gpu>,
) -> Result<Vec<Box<dyn Device + Send>>, SessionError> {
    let opened = gpus.into_iter().map(|gpu| {
        let device: Box<dyn Device + Send> = gpu.reopen()?;
        Ok(device)
    });
    opened.collect()
}

/// The environment variables that restrict a job to these GPUs.
pub(crate) fn visibility_variables<'a>(
    gpus: impl IntoIterator<Item = &'a Gpu>,
) -> [(String, String); 2] {
    let indices = gpus.into_iter().map(|gpu| gpu.index().to_string());
    [
        (
            "CUDA_VISIBLE_DEVICES".to_owned(),
            indices.collect::<Vec<_>>().join(","),
        ),
        ("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned()),
    ]
}

/// The descriptors of the GPUs: identity, name, sensors and knobs.
pub(crate) fn descriptors(gpus: &[Gpu]) -> Vec<Descriptor> {
    gpus.iter().map(|gpu| gpu.descriptor().clone()).collect()
}

/// The folders that may hold the guards' journals of changed settings, the preferred one first: the simulated host's own
/// folder, the one of the system for root, or folders of the user.
fn guard_folders() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    match simulated_host() {
        Some(host) => vec![host.join("guard")],
        None if user.is_root() => vec![PathBuf::from(JOURNAL_FOLDER)],
        None => user_folders(user.as_raw()),
    }
}

/// The folders in which guards of a user may keep their journals, the preferred one first.
fn user_folders(user: u32) -> Vec<PathBuf> {
    let named = |variable: &str| {
        let value = std::env::var_os(variable).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let state = named("XDG_STATE_HOME").or(named("HOME").map(|home| home.join(".local/state")));
    let folders = [
        named("XDG_RUNTIME_DIR").map(|run| run.join("sweetspot")),
        Some(std::env::temp_dir().join(format!("sweetspot-{user}"))),
        state.map(|state| state.join("sweetspot/guard")),
    ];
    folders.into_iter().flatten().collect()
}

/// The folders in which earlier versions, or shells with other environment variables, may have left journals of this
/// user.
fn other_folders() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    match (simulated_host(), user.is_root()) {
        (Some(_), _) => Vec::new(),
        (None, true) => vec![PathBuf::from(EARLIER_JOURNAL_FOLDER)],
        (None, false) => user_folders(user.as_raw()),
    }
}

/// Opens the journal of this user's guards, and takes over what is left in other places.
pub(crate) fn open_journal() -> Result<Journal, JournalError> {
    let mut opened = guard_folders()
        .into_iter()
        .map(|folder| Journal::open(&folder));
    // Anybody can make the folder in the temporary directory first, which must not stop this user.
    let journal = match opened.next() {
        Some(Err(problem)) => opened.find(Result::is_ok).unwrap_or(Err(problem)),
        Some(opened) => opened,
        None => Journal::open(Path::new(JOURNAL_FOLDER)),
    }?;
    let journal = journal.locking_machine(lock_scope());
    for earlier in other_folders() {
        journal.take_over(&earlier);
    }
    Ok(journal)
}

/// The folder of the simulated host, if the NVML library in use is the simulated one.
pub(crate) fn simulated_host() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(ENVIRONMENT)?);
    match std::env::var_os("SWEETSPOT_NVML") {
        Some(library) if !Path::new(&library).starts_with(&folder) => None,
        _ => Some(folder),
    }
}

/// The devices whose settings were left changed by dead guards: by those of this user and by those that ran
/// as root.
pub fn unrestored_devices() -> Vec<Result<UnrestoredDevice, JournalError>> {
    let mut folders = guard_folders();
    folders.extend(other_folders());
    if simulated_host().is_none() {
        folders.push(PathBuf::from(JOURNAL_FOLDER));
    }
    let mut seen = Vec::new();
    folders.retain(|folder| {
        !seen.contains(folder) && {
            seen.push(folder.clone());
            true
        }
    });
    let devices = folders.iter().flat_map(|folder| unrestored_in(folder));
    // Folders of other users are not this user's to judge; see `root_journal_is_hidden` for that of root.
    devices
        .filter(|device| {
            !device
                .as_ref()
                .is_err_and(JournalError::is_permission_denied)
        })
        .collect()
}

/// Whether it is unknown to this user if GPUs were left changed by root: only root can read its journal, and the service,
/// which restores by itself, does not run.
pub fn root_journal_is_hidden() -> bool {
    let folder = Path::new(JOURNAL_FOLDER);
    let is_hidden = || {
        let found = std::fs::read_dir(folder);
        found.is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
    };
    simulated_host().is_none() && is_hidden() && UnixStream::connect(SOCKET).is_err()
}

/// The devices with journal files in a folder, or why the journal cannot be read.
fn unrestored_in(folder: &Path) -> Vec<Result<UnrestoredDevice, JournalError>> {
    match folder.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        _ => {}
    }
    match Journal::inspect(folder).and_then(|journal| journal.unrestored_devices()) {
        Ok(devices) => devices,
        Err(problem) => vec![Err(problem)],
    }
}

/// Returns a function that opens a device for writing.
fn device_opener(
    host: Box<dyn Host>,
) -> impl FnMut(&DeviceId) -> Result<Box<dyn ControllableDevice>, OpenError> {
    move |id| {
        let gpu: Box<dyn ControllableDevice> = host.open(id)?;
        Ok(gpu)
    }
}

/// Restores every device that a dead guard has left changed. Returns a message for each device, or why it
/// failed.
pub fn restore_all() -> Result<Vec<Result<String, String>>, SessionError> {
    let mut lines = Vec::new();
    if root_journal_is_hidden() {
        lines.push(Err(HIDDEN_JOURNAL.to_owned()));
    }
    if unrestored_devices().is_empty() {
        return Ok(lines);
    }
    let journal = open_journal()?;
    let mut open = device_opener(open_host()?);
    for device in journal.unrestored_devices()? {
        lines.push(match device {
            Ok(device) => match restore_device(&journal, &device, &mut open) {
                Ok(change @ RestoreOutcome::ChangedByOther(_)) => Err(change.to_string()),
                Ok(restored) => Ok(restored.to_string()),
                Err(error) => Err(error.to_string()),
            },
            Err(problem) => Err(problem.to_string()),
        });
    }
    Ok(lines)
}

/// The finding where root's journal cannot be read.
pub(crate) const HIDDEN_JOURNAL: &str = "unknown whether root's guards left GPUs changed: only root can read their journal, and the service does not run: use `sudo sweetspot restore`";
