//! The folders that may contain journals of changed settings.
//!
//! Where a user's guard keeps its journal depends on environment variables, which differ between shells. A folder that
//! another shell would not search is therefore written into a list in the user's state folder.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Uid, geteuid};
use sweetspot_service::{EARLIER_JOURNAL_FOLDER, JOURNAL_FOLDER};

use super::journals::simulated_host;

/// The file, in the user's state folder, with the paths of journals' folders.
const LIST: &str = "journal-folders";
/// The longest list that is read.
const LONGEST_LIST: u64 = 1 << 20;

/// The folders that may hold the guards' journals of changed settings, the preferred one first: the simulated host's own
/// folder, the one of the system for root, or folders of the user.
pub(super) fn guard_folders() -> Vec<PathBuf> {
    let user = geteuid();
    match simulated_host() {
        Some(host) => vec![host.join("guard")],
        None if user.is_root() => vec![PathBuf::from(JOURNAL_FOLDER)],
        None => UserFolders::of_environment(user).preferred(),
    }
}

/// The folders in which earlier versions, or shells with other environment variables, may have left journals of this
/// user.
pub(super) fn other_folders() -> Vec<PathBuf> {
    let user = geteuid();
    match (simulated_host(), user.is_root()) {
        (Some(_), _) => Vec::new(),
        (None, true) => vec![PathBuf::from(EARLIER_JOURNAL_FOLDER)],
        (None, false) => UserFolders::of_environment(user).all(),
    }
}

/// All folders that may hold journals of this user's guards or of root's, each once.
pub(super) fn all_folders() -> Vec<PathBuf> {
    let mut folders = guard_folders();
    folders.extend(other_folders());
    if simulated_host().is_none() {
        folders.push(PathBuf::from(JOURNAL_FOLDER));
    }
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

/// Makes sure that this user's other shells find a folder that is about to contain a journal.
pub(super) fn remember_folder(folder: &Path) {
    let user = geteuid();
    if simulated_host().is_none() && !user.is_root() {
        // A state folder that cannot be written to must not keep the user from working.
        let _ = UserFolders::of_environment(user).remember(folder);
    }
}

/// What a user's folders depend on.
struct UserFolders {
    user: Uid,
    /// `XDG_RUNTIME_DIR`.
    run: Option<PathBuf>,
    /// `TMPDIR`, or what takes its place.
    temp: PathBuf,
    /// `XDG_STATE_HOME`, or its default below the user's home.
    state: Option<PathBuf>,
}

impl UserFolders {
    fn of_environment(user: Uid) -> Self {
        let named = |variable: &str| {
            let value = std::env::var_os(variable).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        Self {
            user,
            run: named("XDG_RUNTIME_DIR"),
            temp: std::env::temp_dir(),
            state: named("XDG_STATE_HOME")
                .or(named("HOME").map(|home| home.join(".local/state")))
                .map(|state| state.join("sweetspot")),
        }
    }

    /// The folders that this shell uses, the preferred one first.
    fn preferred(&self) -> Vec<PathBuf> {
        let own = format!("sweetspot-{}", self.user.as_raw());
        let run = self.run.as_ref().map(|run| run.join("sweetspot"));
        let state = self.state.as_ref().map(|state| state.join("guard"));
        let folders = [run, Some(self.temp.join(own)), state];
        folders.into_iter().flatten().collect()
    }

    /// The folders that every shell of this user searches, whatever its variables.
    fn usual(&self) -> Vec<PathBuf> {
        let user = self.user.as_raw();
        vec![
            PathBuf::from(format!("/run/user/{user}/sweetspot")),
            PathBuf::from(format!("/tmp/sweetspot-{user}")),
        ]
    }

    /// All folders that may contain journals of this user.
    fn all(&self) -> Vec<PathBuf> {
        let mut folders = self.preferred();
        folders.extend(self.usual());
        folders.extend(self.remembered().unwrap_or_default());
        folders
    }

    /// The folders in the list.
    fn remembered(&self) -> io::Result<Vec<PathBuf>> {
        let Some(state) = &self.state else {
            return Ok(Vec::new());
        };
        let mut text = Vec::new();
        let list = open_own(&state.join(LIST), self.user, File::options().read(true))?;
        list.take(LONGEST_LIST).read_to_end(&mut text)?;
        let lines = text.split(|byte| *byte == b'\n');
        let paths = lines.map(|line| PathBuf::from(OsStr::from_bytes(line)));
        Ok(paths.filter(|path| path.is_absolute()).collect())
    }

    /// Adds a folder to the list, unless every shell finds it without.
    fn remember(&self, folder: &Path) -> io::Result<()> {
        let path = folder.as_os_str().as_bytes();
        let is_found = self.usual().iter().any(|usual| usual == folder)
            || self
                .remembered()
                .is_ok_and(|all| all.iter().any(|one| one == folder));
        let Some(state) = self
            .state
            .as_ref()
            .filter(|_| !is_found && !path.contains(&b'\n'))
        else {
            return Ok(());
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(state)?;
        let mut options = File::options();
        options.append(true).create(true).mode(0o600);
        let mut list = open_own(&state.join(LIST), self.user, &mut options)?;
        list.write_all(&[path, b"\n"].concat())
    }
}

/// Opens a file of this user. Links are not followed, and a pipe is not waited for.
fn open_own(path: &Path, user: Uid, options: &mut std::fs::OpenOptions) -> io::Result<File> {
    let safe = OFlags::NOFOLLOW.union(OFlags::NONBLOCK);
    let file = options.custom_flags(safe.bits() as i32).open(path)?;
    let found = file.metadata()?;
    match found.is_file() && found.uid() == user.as_raw() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file of this user")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders_of(state: &Path, run: Option<&Path>, temp: &Path) -> UserFolders {
        UserFolders {
            user: geteuid(),
            run: run.map(Path::to_owned),
            temp: temp.to_owned(),
            state: Some(state.join("sweetspot")),
        }
    }

    #[test]
    fn a_shell_with_other_variables_searches_the_same_folders() {
        let home = tempfile::tempdir().unwrap();
        let (run, temp) = (home.path().join("run"), home.path().join("temp"));
        let first = folders_of(home.path(), Some(&run), &temp);
        let second = folders_of(home.path(), None, Path::new("/tmp"));
        for used in first.preferred() {
            first.remember(&used).unwrap();
            assert!(second.all().contains(&used), "{}", used.display());
        }
        // Each folder is in the list once.
        first.remember(&run.join("sweetspot")).unwrap();
        assert_eq!(second.remembered().unwrap().len(), 3);
    }

    #[test]
    fn usual_folders_need_no_list() {
        let home = tempfile::tempdir().unwrap();
        let folders = folders_of(home.path(), None, Path::new("/tmp"));
        folders.remember(&folders.preferred()[0]).unwrap();
        assert!(folders.remembered().is_err());
    }

    #[test]
    fn links_and_pipes_in_place_of_the_list_are_not_used() {
        let home = tempfile::tempdir().unwrap();
        let folders = folders_of(home.path(), None, Path::new("/var/tmp"));
        let state = home.path().join("sweetspot");
        std::fs::create_dir(&state).unwrap();
        let target = home.path().join("target");
        std::fs::write(&target, "").unwrap();
        std::os::unix::fs::symlink(&target, state.join(LIST)).unwrap();
        assert!(folders.remember(Path::new("/elsewhere")).is_err());
        assert_eq!(std::fs::read(&target).unwrap(), b"");
        std::fs::remove_file(state.join(LIST)).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(state.join(LIST))
            .status();
        assert!(pipe.unwrap().success());
        assert!(folders.remembered().is_err());
    }
}
