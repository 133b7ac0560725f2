//! The text of the systemd unit.

use std::path::{Component, Path};

use super::{InstallError, PROGRAM};
use crate::ownership::require_root_owned;

/// The unit as it is without options.
const UNIT_TEXT: &str = include_str!("../../../../../packaging/systemd/sweetspot.service");

/// The folders that the unit hides from the service.
const HIDDEN_FOLDERS: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// The unit of a service that loads this NVML library, or the driver's own.
pub(super) fn text(nvml: Option<&Path>) -> Result<String, InstallError> {
    let Some(library) = nvml else {
        return Ok(UNIT_TEXT.to_owned());
    };
    let name = check_library(library)?;
    let start = format!("ExecStart={PROGRAM} serve --no-monitor\n");
    // The unit lets the service load libraries from a few folders only. With the minus sign a missing library does not
    // keep the service from starting, so that its own message is seen.
    let with_library =
        format!("ExecStart={PROGRAM} serve --no-monitor --nvml {name}\nExecPaths=-{name}\n");
    Ok(UNIT_TEXT.replace(&start, &with_library))
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
