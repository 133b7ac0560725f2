//! The power and energy channels of hwmon: probes on rails such as the INA219, power supplies, ACPI power meters.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sweetspot_device::{
    Clock, Descriptor, DeviceId, DeviceKind, Scope, SensorDescriptor, SensorKind,
};
use sweetspot_quantity::Seconds;

use crate::counter::EnergyCounter;
use crate::part::{HostPart, SensorAccess, SensorFile};
use crate::sysfs::{entries, read_number, read_text};

/// How the identities of channels begin.
pub(crate) const PREFIX: &str = "hwmon:";

/// Lists the channels of all chips. Power and energy of one number are different channels: nothing says that they are
/// on the same rail.
pub(crate) fn list(root: &Path, clock: &Arc<dyn Clock>) -> io::Result<Vec<HostPart>> {
    let mut parts: Vec<HostPart> = Vec::new();
    for (folder, path) in entries(&root.join("class/hwmon"))? {
        let Ok(chip) = read_text(&path.join("name")) else {
            continue;
        };
        let address = address(&path).unwrap_or_else(|| folder.clone());
        for channel in channels(&path)? {
            let files = files(&path, &folder, &channel);
            if files.is_empty() {
                continue;
            }
            let label = read_text(&path.join(format!("{channel}_label"))).ok();
            let label = label.filter(|label| !label.is_empty());
            let name = match label {
                Some(label) => format!("{chip} {label}"),
                None => format!("{chip} {channel}"),
            };
            let sensors = files
                .iter()
                .filter(|file| file.access == SensorAccess::Readable);
            parts.push(HostPart {
                descriptor: Descriptor {
                    id: DeviceId::new(format!("{PREFIX}{chip}:{address}:{channel}")),
                    name,
                    kind: DeviceKind::Probe,
                    backend: "hwmon".to_owned(),
                    parent: None,
                    memory: None,
                    sensors: sensors.map(|file| file.descriptor.clone()).collect(),
                    knobs: Vec::new(),
                },
                files,
                cap: None,
                counter: EnergyCounter::new(None, None),
                clock: Arc::clone(clock),
                driver: chip.clone(),
                index: parts.len() as u32,
                zone: format!("{folder}/{channel}"),
            });
        }
    }
    Ok(parts)
}

/// The address of a chip on its bus, such as `0-0040`, which stays the same after a reboot, unlike the number of hwmon.
fn address(chip: &Path) -> Option<String> {
    let device: PathBuf = std::fs::read_link(chip.join("device")).ok()?;
    Some(device.file_name()?.to_str()?.to_owned())
}

/// The names of the channels of a chip, such as `power1` and `energy1`.
fn channels(chip: &Path) -> io::Result<Vec<String>> {
    let mut channels: Vec<String> = Vec::new();
    for (name, _) in entries(chip)? {
        let Some((channel, item)) = name.split_once('_') else {
            continue;
        };
        let number = channel
            .strip_prefix("power")
            .or(channel.strip_prefix("energy"));
        let is_number = number.is_some_and(|number| number.parse::<u32>().is_ok());
        let is_sensor = matches!(item, "input" | "average");
        if is_number && is_sensor && !channels.iter().any(|one| one == channel) {
            channels.push(channel.to_owned());
        }
    }
    Ok(channels)
}

/// The sensors of a channel.
fn files(chip: &Path, folder: &str, channel: &str) -> Vec<SensorFile> {
    let kinds: &[(SensorKind, &str)] = match channel.starts_with("power") {
        true => &[
            (SensorKind::InstantPower, "input"),
            (SensorKind::AveragePower, "average"),
        ],
        false => &[(SensorKind::EnergyCounter, "input")],
    };
    let file = |(kind, item): &(SensorKind, &str)| {
        let path = chip.join(format!("{channel}_{item}"));
        path.symlink_metadata().ok()?;
        // The interval is in milliseconds.
        let interval = read_number(&chip.join(format!("{channel}_{item}_interval"))).ok();
        let window = interval.map(|millis| Seconds::new(millis as f64 / 1e3));
        Some(SensorFile {
            descriptor: SensorDescriptor {
                kind: *kind,
                scope: Scope::Device,
                source: format!("{folder}/{channel}_{item}"),
                update_period: None,
                window: window.filter(|_| *kind == SensorKind::AveragePower),
            },
            access: SensorAccess::of(&path),
            path,
        })
    };
    kinds.iter().filter_map(file).collect()
}
