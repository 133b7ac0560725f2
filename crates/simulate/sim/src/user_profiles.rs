//! A folder of the user's profiles, which replace built-in ones of the same name in the whole program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use include_dir::{Dir, DirEntry};

use crate::catalogue::{CatalogueError, PROFILES, nearest, read};
use crate::profile::{parse_gpu, parse_node, parse_workload};

/// The texts of the user's profiles by their path in the folder, such as `gpus/tesla_p100.toml`.
static TEXTS: OnceLock<BTreeMap<PathBuf, String>> = OnceLock::new();

/// Uses the profiles in a folder in place of the built-in ones of the same name: `gpus/NAME.toml`, `nodes/NAME.toml` and
/// `workloads/STUDY/NETWORK.toml`. They are read and checked once, when a program starts; a second call has no effect.
pub fn use_profiles(folder: &Path) -> Result<(), CatalogueError> {
    let texts = read_folder(folder)?;
    TEXTS.get_or_init(|| texts);
    Ok(())
}

/// The text of the user's profile with this path in the folder; `None` if the built-in one is used.
pub(crate) fn user_text(path: &Path) -> Option<&'static str> {
    TEXTS.get()?.get(path).map(String::as_str)
}

/// Reads and checks all profiles in a folder.
fn read_folder(folder: &Path) -> Result<BTreeMap<PathBuf, String>, CatalogueError> {
    let mut texts = BTreeMap::new();
    for path in profile_files(folder)? {
        let shown = path.display().to_string();
        let own = path.strip_prefix(folder).unwrap_or(&path).to_owned();
        if PROFILES.get_file(&own).is_none() {
            let name = own.display().to_string();
            let near = nearest(&name, built_in_paths(&PROFILES).into_iter());
            return Err(CatalogueError::NotBuiltIn { path: shown, near });
        }
        let text = read(&shown)?;
        match own.iter().next().and_then(|kind| kind.to_str()) {
            Some("gpus") => drop(parse_gpu(&shown, &text)?),
            Some("nodes") => drop(parse_node(&shown, &text)?),
            _ => drop(parse_workload(&shown, &text)?),
        }
        texts.insert(own, text);
    }
    match texts.is_empty() {
        true => Err(CatalogueError::NoProfiles {
            folder: folder.display().to_string(),
        }),
        false => Ok(texts),
    }
}

/// The paths of all files that end in `.toml` in a folder and the folders in it, in alphabetical order.
fn profile_files(folder: &Path) -> Result<Vec<PathBuf>, CatalogueError> {
    let unreadable = |error: std::io::Error| CatalogueError::Unreadable {
        path: folder.display().to_string(),
        reason: error.to_string(),
    };
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        // A link to a folder is not followed: a folder that contains itself would have no end.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            found.extend(profile_files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The paths of all built-in profiles in a folder.
fn built_in_paths(dir: &Dir) -> Vec<String> {
    let entries = dir.entries().iter();
    entries
        .flat_map(|entry| match entry {
            DirEntry::Dir(dir) => built_in_paths(dir),
            DirEntry::File(file) => vec![file.path().display().to_string()],
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(path: &str, text: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        folder
    }

    fn error_of(path: &str, text: &str) -> String {
        let folder = folder_with(path, text);
        read_folder(folder.path()).unwrap_err().to_string()
    }

    #[test]
    fn profiles_are_read_by_their_path_in_the_folder() {
        let path = Path::new("gpus/tesla_p100.toml");
        let text = PROFILES.get_file(path).unwrap().contents_utf8().unwrap();
        let folder = folder_with("gpus/tesla_p100.toml", text);
        std::fs::write(folder.path().join("notes.txt"), "").unwrap();
        let texts = read_folder(folder.path()).unwrap();
        assert_eq!(texts.keys().collect::<Vec<_>>(), [path]);
    }

    #[test]
    fn folders_that_replace_nothing_are_refused() {
        assert!(error_of("notes.txt", "").contains("there are no profiles in"));
        let error = error_of("gpus/tesla_p10.toml", "");
        assert!(error.contains("replaces no built-in profile"), "{error}");
        assert!(error.contains("gpus/tesla_p100.toml"), "{error}");
        let error = error_of("gpus/tesla_p100.toml", "name = 1");
        assert!(error.contains("tesla_p100.toml"), "{error}");
        let error = read_folder(Path::new("missing")).unwrap_err().to_string();
        assert!(error.contains("missing"), "{error}");
    }
}
