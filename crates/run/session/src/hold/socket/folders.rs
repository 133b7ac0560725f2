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

/// Creates the folder for a new socket; no other user may have access to it. Anybody can make the one in the temporary
/// directory first, so the next one is used if the first cannot be.
pub(super) fn create_private_folder(verb: ControlledVerb) -> std::io::Result<PathBuf> {
    first_private_folder(socket_folders(verb))
}

/// Creates the first folder that can belong to this user alone; the error is that of the preferred one.
fn first_private_folder(folders: Vec<PathBuf>) -> std::io::Result<PathBuf> {
    let mut problem = None;
    for folder in folders {
        match make_private(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => {
                let text = format!("{}: {error}", folder.display());
                problem.get_or_insert(std::io::Error::other(text));
            }
        }
    }
    Err(problem.unwrap_or_else(|| std::io::ErrorKind::NotFound.into()))
}

/// Creates a folder, or checks that an existing one belongs to this user alone.
fn make_private(folder: &Path) -> std::io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let metadata = std::fs::symlink_metadata(folder)?;
    let problem = match () {
        () if !metadata.is_dir() => "it is not a folder",
        () if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
        () if metadata.mode() & 0o077 != 0 => "it is accessible to other users",
        () => return Ok(()),
    };
    Err(std::io::Error::other(problem))
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

    #[test]
    fn a_folder_that_is_not_private_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let (open, own) = (folder.path().join("open"), folder.path().join("own"));
        std::fs::create_dir(&open).unwrap();
        let others = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&open, others).unwrap();
        let chosen = first_private_folder(vec![open.clone(), own.clone()]);
        assert_eq!(chosen.unwrap(), own);
        let problem = first_private_folder(vec![open]).unwrap_err();
        assert!(
            problem
                .to_string()
                .ends_with("it is accessible to other users"),
            "{problem}"
        );
    }
}
