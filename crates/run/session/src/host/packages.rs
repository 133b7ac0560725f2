//! The processor packages of this computer, and the energy of its host.

use sweetspot_device::{Descriptor, Device, HostDevice, Knob, SensorKind, Settings};
use sweetspot_hosts::{ENERGY_FIX, HostPart, SensorAccess, open_host_tree};

use super::{DevicesError, Gpu};
use crate::SessionError;
use crate::nearest_settings::nearest_settings;

/// The processor packages. It is an error if there is none, or if one of them has no power cap.
pub(crate) fn settable_packages() -> Result<Vec<Gpu>, SessionError> {
    let tree = open_host_tree();
    let packages = tree.packages()?;
    if packages.is_empty() {
        let root = tree.root().display().to_string();
        return Err(DevicesError::NoPackage(root).into());
    }
    for package in &packages {
        let device = package.descriptor();
        if device.knob(Knob::PowerCap).is_none() {
            return Err(DevicesError::NotSupported {
                device: device.name.clone(),
                problem: "the kernel offers no power cap for it (those of AMD have none)"
                    .to_owned(),
            }
            .into());
        }
    }
    Ok(packages.into_iter().map(boxed).collect())
}

/// The processor packages that a setting applies to; an error if one of them does not support it. None if nothing is to
/// be set.
pub(crate) fn packages_for(settings: &Settings) -> Result<Vec<Gpu>, SessionError> {
    if *settings == Settings::default() {
        return Ok(Vec::new());
    }
    let packages = settable_packages()?;
    for package in &packages {
        nearest_settings(package.descriptor(), settings)?;
    }
    Ok(packages)
}

/// The parts whose energies add up to that of the host: packages and the memory beside them. It is an error if one of
/// them cannot be read, because the sum of the others would be too low.
pub(crate) fn host_energy_parts() -> Result<Vec<Gpu>, SessionError> {
    let tree = open_host_tree();
    let parts = tree.host_energy_parts()?;
    if parts.is_empty() {
        let root = tree.root().display().to_string();
        return Err(DevicesError::NoHostEnergy(root).into());
    }
    for part in &parts {
        let device = part.descriptor().name.clone();
        let problem = match part.access(SensorKind::EnergyCounter) {
            Some(SensorAccess::Readable) => continue,
            Some(SensorAccess::Denied) => {
                format!("this user may not read its energy: {ENERGY_FIX}")
            }
            Some(SensorAccess::Failed(reason)) => format!("its energy cannot be read: {reason}"),
            None => "it has no energy counter".to_owned(),
        };
        return Err(DevicesError::NotSupported { device, problem }.into());
    }
    Ok(parts.into_iter().map(boxed).collect())
}

/// The descriptors of devices.
pub(crate) fn descriptors_of<'a>(devices: impl IntoIterator<Item = &'a Gpu>) -> Vec<Descriptor> {
    let devices = devices.into_iter();
    devices.map(|device| device.descriptor().clone()).collect()
}

/// A part of the host as any other device.
fn boxed(part: HostPart) -> Gpu {
    let device: Box<dyn HostDevice> = Box::new(part);
    device
}
