//! Installs the service: program, group, folders, policy, systemd unit.
//!
//! Nothing that the service trusts may be changed by others than root, so the program is copied to a folder of root's,
//! every folder above it is checked, and files are replaced by renaming complete ones. A second installation upgrades
//! the first.

use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use sweetspot_guard::Journal;

use crate::ownership::require_owned;

mod error;
mod files;
mod host;
#[cfg(test)]
mod tests;
mod unit;

pub use error::InstallError;

use host::Host;

/// The path of the installed program.
pub const PROGRAM: &str = "/usr/local/libexec/sweetspot/sweetspot";

/// The path of the policy.
pub const POLICY: &str = "/etc/sweetspot/policy.toml";

/// The path of the systemd unit.
pub const UNIT: &str = "/etc/systemd/system/sweetspot.service";

/// The path of the systemd unit of the measuring process.
pub const MONITOR_UNIT: &str = "/etc/systemd/system/sweetspot-monitor.service";

/// The path of the systemd unit of the socket on which the measuring process is reached by the service.
pub const MONITOR_SOCKET_UNIT: &str = "/etc/systemd/system/sweetspot-monitor.socket";

/// The folder with what the service keeps.
const STATE_FOLDER: &str = "/var/lib/sweetspot";

/// The folder with the settings that are to be restored. It must survive a stop of the service, after which systemd
/// deletes folders below /run.
pub const JOURNAL_FOLDER: &str = "/var/lib/sweetspot/journal";

/// The folder with the audit log.
pub const LOG_FOLDER: &str = "/var/log/sweetspot";

/// The group whose members may use the service.
pub const GROUP: &str = "sweetspot";

/// The policy of a new installation.
const EXAMPLE_POLICY: &str = include_str!("../../../../packaging/policy.toml");

/// What to install, and where.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The folder that takes the place of `/`. In any other folder than `/` files are installed and nothing else, as
    /// packages need it.
    pub root: PathBuf,
    /// The program to copy: `/proc/self/exe` is the running one.
    pub program: PathBuf,
    /// The NVML library that the service loads, if not the driver's own.
    pub nvml: Option<PathBuf>,
    /// Whether to start the service, now and at each boot.
    pub start: bool,
}

impl Default for Installation {
    /// Installs and starts the running program on this machine.
    fn default() -> Self {
        Self {
            root: PathBuf::from("/"),
            program: PathBuf::from("/proc/self/exe"),
            nvml: None,
            start: true,
        }
    }
}

impl Installation {
    /// Whether the service is installed on this machine, rather than into a folder.
    fn is_for_this_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The user to whom everything must belong.
    fn owner(&self) -> u32 {
        match self.is_for_this_machine() {
            true => 0,
            false => geteuid().as_raw(),
        }
    }

    /// Where an absolute path is below the root.
    fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Checks that this process may install on this machine.
    fn require_permission(&self, action: &'static str) -> Result<(), InstallError> {
        match self.is_for_this_machine() && !geteuid().is_root() {
            true => Err(InstallError::NotRoot { action }),
            false => Ok(()),
        }
    }
}

/// Installs the service, or upgrades it, and returns sentences that say what was done.
pub fn install(options: &Installation) -> Result<Vec<String>, InstallError> {
    install_on(options, &Host::of(options))
}

/// Installs the service on a machine with these tools.
fn install_on(options: &Installation, host: &Host) -> Result<Vec<String>, InstallError> {
    options.require_permission("install")?;
    // What can be wrong is checked before anything is changed.
    let units = unit::texts(options.nvml.as_deref())?;
    let program = std::fs::read(&options.program)
        .map_err(|error| InstallError::file("read", &options.program, error))?;

    let mut done = Vec::new();
    done.extend(host.make_group()?);
    for folder in [STATE_FOLDER, JOURNAL_FOLDER, LOG_FOLDER] {
        files::make_folder(options, Path::new(folder), 0o700)?;
    }
    require_owned(&options.root, Path::new(JOURNAL_FOLDER), options.owner())?;
    let program = files::install_file(options, PROGRAM, 0o755, &program)?;
    done.push(describe("program", PROGRAM, program));
    done.push(install_policy(options)?);
    let mut unit = false;
    for (path, text) in units {
        unit |= files::install_file(options, path, 0o644, text.as_bytes())?;
    }
    done.push(describe("systemd unit", UNIT, unit));
    done.push(host.start(options, program || unit)?);
    Ok(done)
}

/// The sentence about an installed file.
fn describe(what: &str, path: &str, has_changed: bool) -> String {
    match has_changed {
        true => format!("The {what} is installed: {path}."),
        false => format!("The {what} is up to date: {path}."),
    }
}

/// Writes the example policy, unless there is a policy.
fn install_policy(options: &Installation) -> Result<String, InstallError> {
    if std::fs::symlink_metadata(options.place(POLICY)).is_ok() {
        return Ok(format!("The policy is kept as it is: {POLICY}."));
    }
    files::install_file(options, POLICY, 0o644, EXAMPLE_POLICY.as_bytes())?;
    Ok(format!(
        "The policy lets members of the group {GROUP} change settings: {POLICY}. Add a user with `usermod -aG {GROUP} NAME`; the user must log in again."
    ))
}

/// Removes the service, and returns sentences that say what was done. The policy, the journal, the log and the group
/// are kept. The program and the library of `options` do not matter.
pub fn uninstall(options: &Installation) -> Result<Vec<String>, InstallError> {
    uninstall_on(options, &Host::of(options))
}

/// Removes the service from a machine with these tools.
fn uninstall_on(options: &Installation, host: &Host) -> Result<Vec<String>, InstallError> {
    options.require_permission("uninstall")?;
    let mut done = Vec::new();
    let has_unit = std::fs::symlink_metadata(options.place(UNIT)).is_ok();
    if has_unit {
        done.extend(host.stop()?);
    }
    let removed_unit = files::remove_file(&options.place(UNIT))?;
    for path in [MONITOR_UNIT, MONITOR_SOCKET_UNIT] {
        files::remove_file(&options.place(path))?;
    }
    if removed_unit {
        host.reload()?;
    }
    let program = options.place(PROGRAM);
    let removed_program = files::remove_file(&program)?;
    if let Some(folder) = program.parent() {
        // It stays if somebody put other files there.
        let _ = std::fs::remove_dir(folder);
    }
    done.push(match (removed_unit, removed_program) {
        (false, false) => "The service was not installed.".to_owned(),
        _ => format!("The service is removed: {PROGRAM} and {UNIT}."),
    });
    done.extend(unrestored(options));
    done.push(format!(
        "Kept: {POLICY}, {JOURNAL_FOLDER}, {LOG_FOLDER} and the group {GROUP}. Delete them if you do not need them."
    ));
    Ok(done)
}

/// Says which devices may still have changed settings.
fn unrestored(options: &Installation) -> Option<String> {
    let folder = options.place(JOURNAL_FOLDER);
    if !folder.is_dir() {
        return None;
    }
    let devices = Journal::open(&folder).and_then(|journal| journal.unrestored_devices());
    let names: Vec<String> = match devices {
        Ok(devices) => devices
            .into_iter()
            .filter_map(|device| match device {
                Ok(device) => device.is_this_boot.then(|| device.device.to_string()),
                Err(error) => Some(error.to_string()),
            })
            .collect(),
        Err(error) => vec![error.to_string()],
    };
    (!names.is_empty()).then(|| {
        format!(
            "Warning: these may still have changed settings, which the service restores when it starts: {}.",
            names.join(", ")
        )
    })
}
