//! The folders that contain the control sockets.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use super::ControlledVerb;
use crate::host::simulated_host;

/// The folders that may contain the sockets of this user's `hold` processes; a new socket goes into the first. There
/// are several because the environment variables of another shell may differ.
pub(super) fn socket_folders(verb: ControlledVerb) -> Vec<PathBuf> {
    let user = geteuid().as_raw();
    if let Some(host) = simulated_host() {
        return vec![host.join(format!("{verb}-{user}"))];
    }
    let run = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    folders_of_user(verb, user, run.filter(|run| run.is_dir()))
}

/// The folders for the sockets of one user's `hold` processes; `run` is the user's runtime folder, if it is known.
fn folders_of_user(verb: ControlledVerb, user: u32, run: Option<PathBuf>) -> Vec<PathBuf> {
    let default_run = Path::new("/run/user").join(user.to_string());
    let folder = format!("sweetspot-{verb}");
    let own = format!("{folder}-{user}");
    let mut folders: Vec<PathBuf> = run.map(|run| run.join(&folder)).into_iter().collect();
    folders.push(std::env::temp_dir().join(&own));
    folders.push(default_run.join(&folder));
    folders.push(Path::new("/tmp").join(own));
    folders
}

/// The folders that may contain the sockets of any user's `hold` processes, which root searches.
pub(super) fn folders_of_all_users(verb: ControlledVerb) -> Vec<PathBuf> {
    let entries_of = |folder: &Path, prefix: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let matches =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        matches.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    if let Some(host) = simulated_host() {
        return entries_of(&host, &verb.prefix());
    }
    let users = entries_of(Path::new("/run/user"), "").into_iter();
    let name = format!("sweetspot-{verb}");
    let mut folders: Vec<PathBuf> = users.map(|run| run.join(&name)).collect();
    for folder in [std::env::temp_dir(), PathBuf::from("/tmp")] {
        folders.extend(entries_of(&folder, &format!("{name}-")));
    }
    folders
}

/// Creates the folder for a new socket; no other user may have access to it.
pub(super) fn create_private_folder(verb: ControlledVerb) -> std::io::Result<PathBuf> {
    let folder = socket_folders(verb).swap_remove(0);
    match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = std::fs::symlink_metadata(&folder)?;
    let is_own = metadata.is_dir() && metadata.uid() == geteuid().as_raw();
    if !is_own || metadata.mode() & 0o077 != 0 {
        let problem = format!("{} is accessible to other users", folder.display());
        return Err(std::io::Error::other(problem));
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_of_shells_with_another_environment_are_found() {
        let run = PathBuf::from("/run/user/7");
        let of_user = |run| folders_of_user(ControlledVerb::Hold, 7, run);
        let (with, without) = (of_user(Some(run)), of_user(None));
        // Each shell also searches the folder in which the other creates its sockets.
        assert!(without.contains(&with[0]) && with.contains(&without[0]));
        assert_ne!(with[0], without[0]);
    }
}
