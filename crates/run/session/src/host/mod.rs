//! The GPUs of this computer: lists and selects them, and runs the guard process that changes and restores their
//! settings.

mod access;
mod bounded;
mod error;
mod journal_folders;
mod journals;
mod packages;

pub use access::{GuardWriter, SettingsAccess, StartAsRoot, serve_as_guard, service_socket};
pub(crate) use bounded::open_host;
pub use error::DevicesError;
pub(crate) use journals::{HIDDEN_JOURNAL, open_journal, root_journal_is_hidden, simulated_host};
pub use journals::{restore_all, unrestored_devices};
pub(crate) use packages::{descriptors_of, host_energy_parts, packages_for, settable_packages};

use sweetspot_device::{Descriptor, Device, Host, HostDevice, MigSlices, Selector, select_devices};

use crate::SessionError;

/// A GPU of this computer, real or simulated, or a part of its host.
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
