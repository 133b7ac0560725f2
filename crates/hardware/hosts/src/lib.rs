//! Opens the GPUs of this machine, its processor packages and its power probes.
//!
//! Only this crate knows all backends: a new backend is a crate that implements [`Host`], and a line here.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::ffi::OsStr;

pub use sweetspot_backend_host::{
    CAP_FIX, DEFAULT_ROOT, ENERGY_FIX, HostPart, HostTree, SensorAccess,
};
use sweetspot_backend_meter::Purpose;
pub use sweetspot_backend_meter::{MeterError, MetersFile, meters_path};
use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{ControllableDevice, DeviceId, Host, HostError, Meter, OpenError};

/// The name, shown to users, of the library through which the GPUs are accessed.
pub const LIBRARY: &str = "NVML library";

/// Opens the GPUs of this machine through the default NVML library, or through the one at the path in
/// `SWEETSPOT_NVML`.
pub fn open_host() -> Result<Box<dyn Host>, HostError> {
    open_host_with(std::env::var_os("SWEETSPOT_NVML").as_deref())
}

/// Opens the GPUs of this machine through the NVML library at this path, or through the default one. The environment is
/// not looked at.
pub fn open_host_with(library: Option<&OsStr>) -> Result<Box<dyn Host>, HostError> {
    Ok(Box::new(Nvml::open(library)?))
}

/// The processor packages, memory and power probes of this machine: the tree of sysfs at `SWEETSPOT_SYSFS`, or at `/sys`.
pub fn open_host_tree() -> HostTree {
    HostTree::from_environment()
}

/// Opens meters by their names in the user's `meters.toml`, or by what they are (`wt310:/dev/usbtmc0`). All of them are
/// checked before the first is opened.
pub fn open_meters(texts: &[String]) -> Result<Vec<Box<dyn Meter>>, MeterError> {
    open_meters_for(texts, Purpose::Measure)
}

/// Opens meters to look at them: none of their settings is changed.
pub fn observe_meters(texts: &[String]) -> Result<Vec<Box<dyn Meter>>, MeterError> {
    open_meters_for(texts, Purpose::Observe)
}

fn open_meters_for(texts: &[String], purpose: Purpose) -> Result<Vec<Box<dyn Meter>>, MeterError> {
    let file = MetersFile::load()?;
    sweetspot_backend_meter::resolve_meters(texts, &file)?;
    let open = |text: &String| -> Result<Box<dyn Meter>, MeterError> {
        Ok(Box::new(sweetspot_backend_meter::open_meter(
            text, &file, purpose,
        )?))
    };
    texts.iter().map(open).collect()
}

/// Returns a function that opens a device of this machine for writing: a part of the host, or a GPU of `gpus`. Where the
/// GPUs cannot be listed, parts of the host can still be opened.
pub fn device_opener(
    gpus: Result<Box<dyn Host>, HostError>,
    tree: HostTree,
) -> impl FnMut(&DeviceId) -> Result<Box<dyn ControllableDevice>, OpenError> {
    move |id| {
        let device: Box<dyn ControllableDevice> = match (HostTree::owns(id), &gpus) {
            (true, _) => tree.open(id)?,
            (false, Ok(gpus)) => gpus.open(id)?,
            (false, Err(error)) => {
                return Err(OpenError::Failed {
                    device: id.clone(),
                    reason: error.to_string(),
                });
            }
        };
        Ok(device)
    }
}

/// Distinguishes GPUs of this machine that have the same identity: those of different simulated hosts. Locks on GPUs for
/// the whole machine have this text in their names.
pub fn lock_scope() -> String {
    use std::os::unix::fs::MetadataExt;
    let folder = std::env::var_os("SWEETSPOT_SIM");
    match folder.and_then(|folder| std::fs::metadata(folder).ok()) {
        Some(found) => format!("simulated-{}-{}", found.dev(), found.ino()),
        None => String::new(),
    }
}
