//! The texts of the systemd units.

use std::path::{Component, Path};

use super::{InstallError, MONITOR_SOCKET_UNIT, MONITOR_UNIT, UNIT};
use crate::ownership::require_root_owned;

/// The units as they are without options, with their paths.
const UNIT_TEXTS: [(&str, &str); 3] = [
    (
        UNIT,
        include_str!("../../../../../packaging/systemd/sweetspot.service"),
    ),
    (
        MONITOR_UNIT,
        include_str!("../../../../../packaging/systemd/sweetspot-monitor.service"),
    ),
    (
        MONITOR_SOCKET_UNIT,
        include_str!("../../../../../packaging/systemd/sweetspot-monitor.socket"),
    ),
];

/// The folders that the unit hides from the service.
const HIDDEN_FOLDERS: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// The paths and texts of the units of a service that loads this NVML library, or the driver's own.
pub(super) fn texts(nvml: Option<&Path>) -> Result<Vec<(&'static str, String)>, InstallError> {
    let name = nvml.map(check_library).transpose()?;
    let with_library = |text: &str| match name {
        None => text.to_owned(),
        Some(name) => text
            .lines()
            .map(|line| match line.starts_with("ExecStart=") {
                // The unit lets the service load libraries from a few folders only. With the minus sign a missing library
                // does not keep the service from starting, so that its own message is seen.
                true => format!("{line} --nvml {name}\nExecPaths=-{name}\n"),
                false => format!("{line}\n"),
            })
            .collect(),
    };
    let units = UNIT_TEXTS.iter();
    Ok(units
        .map(|(path, text)| (*path, with_library(text)))
        .collect())
}

/// Checks that a library can be named in the unit, that the service can see it, and that only root can change it.
fn check_library(library: &Path) -> Result<&str, InstallError> {
    let unusable = |reason: &'static str| InstallError::UnusableLibrary {
        path: library.to_owned(),
        reason,
    };
    let is_plain = |text: &&str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c))
    };
    // Other characters may have a meaning in units.
    let name = library
        .to_str()
        .filter(is_plain)
        .ok_or_else(|| unusable("use a path of letters, digits and the characters /._+- only"))?;
    if !library.is_absolute()
        || library
            .components()
            .any(|part| part == Component::ParentDir)
    {
        return Err(unusable("give its absolute path, without `..`"));
    }
    require_root_owned(library)?;
    let target = std::fs::canonicalize(library)
        .map_err(|error| InstallError::file("open", library, error))?;
    let is_hidden = |path: &Path| HIDDEN_FOLDERS.iter().any(|folder| path.starts_with(folder));
    if is_hidden(library) || is_hidden(&target) {
        return Err(unusable(
            "the service sees no home folders and no temporary files: copy it to /usr/local/lib",
        ));
    }
    if !target.is_file() {
        return Err(unusable("it is not a file"));
    }
    Ok(name)
}
