//! The journals of changed settings: opens this user's, and restores what dead guards left changed.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sweetspot_guard::{
    Journal, JournalError, RestoreOutcome, UnrestoredDevice, restore_device, service_responds,
};
use sweetspot_hosts::{device_opener, lock_scope, open_host_tree};
use sweetspot_service::{JOURNAL_FOLDER, SOCKET};
use sweetspot_sim_host::ENVIRONMENT;

use super::journal_folders::{all_folders, guard_folders, other_folders, remember_folder};
use super::open_host;
use crate::SessionError;

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
    remember_folder(journal.folder());
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
    let folders = all_folders();
    folders
        .iter()
        .flat_map(|folder| unrestored_in(folder))
        .collect()
}

/// Whether it is unknown to this user if GPUs were left changed by root: only root can read its journal, and the service,
/// which restores by itself, does not run or does not respond.
pub fn root_journal_is_hidden() -> bool {
    let folder = Path::new(JOURNAL_FOLDER);
    let is_hidden = || {
        let found = std::fs::read_dir(folder);
        found.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    };
    simulated_host().is_none() && is_hidden() && !service_responds(Path::new(SOCKET))
}

/// The devices with journal files in a folder, or why the journal cannot be read.
fn unrestored_in(folder: &Path) -> Vec<Result<UnrestoredDevice, JournalError>> {
    let user = rustix::process::geteuid();
    match folder.symlink_metadata() {
        // What other users have made, or hide, is not this user's to judge; see `root_journal_is_hidden` for root's.
        Ok(found) if !user.is_root() && found.uid() != user.as_raw() => return Vec::new(),
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::PermissionDenied
            ) =>
        {
            return Vec::new();
        }
        _ => {}
    }
    match Journal::inspect(folder).and_then(|journal| journal.unrestored_devices()) {
        Ok(devices) => devices,
        Err(problem) => vec![Err(problem)],
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
    let mut open = device_opener(open_host(), open_host_tree());
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
    lines.extend(left_elsewhere(&journal));
    Ok(lines)
}

/// What the other folders still hold after the journal has taken over what it could.
fn left_elsewhere(journal: &Journal) -> Vec<Result<String, String>> {
    let mut problems = Vec::new();
    for folder in all_folders() {
        if folder == journal.folder() {
            continue;
        }
        problems.extend(unrestored_in(&folder).into_iter().map(|left| match left {
            Ok(left) => Err(format!(
                "{} was left changed by {}, and its journal in {} cannot be taken over: run `sweetspot restore` again when no other command uses the GPU",
                left.name,
                left.owner,
                folder.display()
            )),
            Err(problem) => Err(problem.to_string()),
        }));
    }
    problems
}

/// The finding where root's journal cannot be read.
pub(crate) const HIDDEN_JOURNAL: &str = "unknown whether root's guards left GPUs changed: only root can read their journal, and the service does not run or does not respond: use `sudo sweetspot restore`";
