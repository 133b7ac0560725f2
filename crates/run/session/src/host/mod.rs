//! The GPUs of this computer: lists and selects them, and runs the guard process that changes and restores their
//! settings.

mod access;
mod error;

pub use access::{GuardWriter, SettingsAccess, StartAsRoot, serve_as_guard};
pub use error::DevicesError;

use std::path::{Path, PathBuf};

use sweetspot_device::{
    ControllableDevice, Descriptor, Device, DeviceId, Host, HostDevice, MigSlices, OpenError,
    Selector, select_devices,
};
use sweetspot_guard::{Journal, JournalError, UnrestoredDevice, restore_device};
pub(crate) use sweetspot_hosts::open_host;
use sweetspot_service::JOURNAL_FOLDER;
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

/// The folder for the guards' journals of changed settings: the simulated host's own folder, the one of the system for
/// root, or a folder of the user.
pub fn guard_folder() -> PathBuf {
    if let Some(host) = simulated_host() {
        return host.join("guard");
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from(JOURNAL_FOLDER);
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("sweetspot"),
        None => {
            std::env::temp_dir().join(format!("sweetspot-{}", rustix::process::geteuid().as_raw()))
        }
    }
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
    let mut folders = vec![guard_folder()];
    if simulated_host().is_none() && folders[0] != Path::new(JOURNAL_FOLDER) {
        folders.push(PathBuf::from(JOURNAL_FOLDER));
    }
    let devices = folders.iter().flat_map(|folder| unrestored_in(folder));
    // Only root may look into the folder of the system, where the service restores by itself.
    devices
        .filter(|device| {
            !device
                .as_ref()
                .is_err_and(JournalError::is_permission_denied)
        })
        .collect()
}

/// The devices with journal files in a folder, or why the journal cannot be read.
fn unrestored_in(folder: &Path) -> Vec<Result<UnrestoredDevice, JournalError>> {
    if !folder.exists() {
        return Vec::new();
    }
    match Journal::open(folder).and_then(|journal| journal.unrestored_devices()) {
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
    let folder = guard_folder();
    let unrestored = unrestored_in(&folder);
    if unrestored.is_empty() {
        return Ok(Vec::new());
    }
    let journal = Journal::open(&folder)?;
    let mut open = device_opener(open_host()?);
    let mut lines = Vec::new();
    for device in unrestored {
        lines.push(match device {
            Ok(device) => restore_device(&journal, &device, &mut open)
                .map(|restored| restored.to_string())
                .map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_string()),
        });
    }
    Ok(lines)
}
