//! The GPUs of this machine: finding them, choosing among them, and the guard that sets them.

mod error;

pub use error::DevicesError;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use sweetspot_device::{
    ControllableDevice, Descriptor, Device, DeviceId, Host, HostDevice, MigSlices, OpenError,
    Selector, select_devices,
};
use sweetspot_guard::{Journal, JournalError, UnrestoredDevice, restore_device, serve};
pub(crate) use sweetspot_hosts::open_host;
use sweetspot_sim_host::ENVIRONMENT;

use crate::SessionError;

/// A GPU of this machine.
pub(crate) type Gpu = Box<dyn HostDevice>;

/// Lists every GPU and slice; at least one.
pub(crate) fn all_gpus(host: &dyn Host) -> Result<Vec<Gpu>, SessionError> {
    let gpus = host.list()?;
    if gpus.is_empty() {
        return Err(DevicesError::NoGpu.into());
    }
    Ok(gpus)
}

/// The GPUs that a selector names; without one, those that `CUDA_VISIBLE_DEVICES` leaves.
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

/// The GPUs that the user means, each of which answers.
pub(crate) fn select_answering(
    selector: Option<&str>,
    slices: MigSlices,
) -> Result<Vec<Gpu>, SessionError> {
    let gpus = select(all_gpus(open_host()?.as_ref())?, selector, slices)?;
    reject_lost(&gpus)?;
    Ok(gpus)
}

/// Refuses GPUs that were found but no longer answer.
pub(crate) fn reject_lost(gpus: &[Gpu]) -> Result<(), SessionError> {
    match gpus.iter().find(|gpu| gpu.is_lost()) {
        Some(lost) => Err(DevicesError::Lost(lost.descriptor().name.clone()).into()),
        None => Ok(()),
    }
}

/// The same GPUs once more, for somebody else to read.
pub(crate) fn reopen_for_reading<'a>(
    gpus: impl IntoIterator<Item = &'a Gpu>,
) -> Result<Vec<Box<dyn Device + Send>>, SessionError> {
    let opened = gpus.into_iter().map(|gpu| {
        let device: Box<dyn Device + Send> = gpu.reopen()?;
        Ok(device)
    });
    opened.collect()
}

/// The variables that tell a job which GPUs it has, in the order of the driver.
pub(crate) fn visible<'a>(gpus: impl IntoIterator<Item = &'a Gpu>) -> [(String, String); 2] {
    let indices = gpus.into_iter().map(|gpu| gpu.index().to_string());
    [
        (
            "CUDA_VISIBLE_DEVICES".to_owned(),
            indices.collect::<Vec<_>>().join(","),
        ),
        ("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned()),
    ]
}

/// How each GPU describes itself.
pub(crate) fn descriptors(gpus: &[Gpu]) -> Vec<Descriptor> {
    gpus.iter().map(|gpu| gpu.descriptor().clone()).collect()
}

/// Where guards of the whole machine keep their journals.
const SYSTEM_FOLDER: &str = "/run/sweetspot";

/// Where guards keep their journals: on a simulated host its own folder, else the system's, or the user's
/// where the user may not write there.
pub fn guard_folder() -> PathBuf {
    if let Some(host) = simulated_host() {
        return host.join("guard");
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from(SYSTEM_FOLDER);
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("sweetspot"),
        None => {
            std::env::temp_dir().join(format!("sweetspot-{}", rustix::process::geteuid().as_raw()))
        }
    }
}

/// The folder of the simulated host whose library is in use.
pub(crate) fn simulated_host() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os(ENVIRONMENT)?);
    match std::env::var_os("SWEETSPOT_NVML") {
        Some(library) if !Path::new(&library).starts_with(&folder) => None,
        _ => Some(folder),
    }
}

/// What guards that are gone left changed, on the whole machine as well where that is another folder.
pub fn left_changed() -> Vec<Result<UnrestoredDevice, JournalError>> {
    let mut folders = vec![guard_folder()];
    if simulated_host().is_none() && folders[0] != Path::new(SYSTEM_FOLDER) {
        folders.push(PathBuf::from(SYSTEM_FOLDER));
    }
    folders.iter().flat_map(|folder| left_in(folder)).collect()
}

fn left_in(folder: &Path) -> Vec<Result<UnrestoredDevice, JournalError>> {
    if !folder.exists() {
        return Vec::new();
    }
    match Journal::open(folder).and_then(|journal| journal.unrestored_devices()) {
        Ok(left) => left,
        Err(problem) => vec![Err(problem)],
    }
}

/// Opens a device for writing.
fn opener(
    host: Box<dyn Host>,
) -> impl FnMut(&DeviceId) -> Result<Box<dyn ControllableDevice>, OpenError> {
    move |id| {
        let gpu: Box<dyn ControllableDevice> = host.open(id)?;
        Ok(gpu)
    }
}

/// What the guard's process does: serves the client behind the socket.
pub fn serve_as_guard(socket: &Path) -> Result<(), SessionError> {
    let stream = UnixStream::connect(socket).map_err(|problem| SessionError::System {
        what: "the guard cannot reach its client",
        problem,
    })?;
    let host = open_host()?;
    let journal = Journal::open(&guard_folder())?;
    serve(stream, journal, &mut opener(host)).map_err(|problem| SessionError::System {
        what: "the guard cannot serve",
        problem,
    })
}

/// Puts back everything that was left changed: a line about each, good or bad.
pub fn restore_all() -> Result<Vec<Result<String, String>>, SessionError> {
    let folder = guard_folder();
    let left = left_in(&folder);
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let journal = Journal::open(&folder)?;
    let mut open = opener(open_host()?);
    let mut lines = Vec::new();
    for left in left {
        lines.push(match left {
            Ok(left) => restore_device(&journal, &left, &mut open)
                .map(|restored| restored.to_string())
                .map_err(|error| error.to_string()),
            Err(problem) => Err(problem.to_string()),
        });
    }
    Ok(lines)
}
