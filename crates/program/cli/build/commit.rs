//! Finds the commit that the program is built from.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files outside the crates' folders that the program is made of.
const SHARED_SOURCES: [&str; 5] = [
    "Cargo.lock",
    "Cargo.toml",
    "data/published",
    "packaging/policy.toml",
    "packaging/systemd/sweetspot.service",
];

/// Folders of a crate that are not part of the program.
const NOT_BUILT: [&str; 4] = ["benches", "examples", "include", "tests"];

/// Returns the short hash of the commit that is checked out, with `, modified` if one of the sources differs from it.
/// Outside a checkout, or without git, there is none.
pub fn find_commit(root: &Path, sources: &[PathBuf]) -> Option<String> {
    // An unpacked source archive may lie inside another repository, whose commit would be wrong.
    if !root.join(".git").exists() {
        return None;
    }
    let hash = git(root, &["rev-parse", "--short=7", "HEAD"], &[])?;
    let changes = git(root, &["status", "--porcelain", "--"], sources)?;
    match changes.is_empty() {
        true => Some(hash),
        false => Some(format!("{hash}, modified")),
    }
}

/// Lists the files and folders that the program is made of. If one of them changes, cargo builds the program again
/// anyway. Tests and documentation are not among them, nor is the repository itself, so a new commit alone builds
/// nothing: the program then names the earlier commit, from which it was built.
pub fn list_sources(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut sources: Vec<PathBuf> = SHARED_SOURCES.iter().map(|path| root.join(path)).collect();
    for layer in list_folders(&root.join("crates"))? {
        for package in list_folders(&layer)? {
            for entry in std::fs::read_dir(package)? {
                let entry = entry?;
                if !NOT_BUILT.iter().any(|name| entry.file_name() == *name) {
                    sources.push(entry.path());
                }
            }
        }
    }
    sources.retain(|path| path.exists());
    sources.sort();
    Ok(sources)
}

fn list_folders(parent: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// Runs git in a checkout and returns its output, or nothing if it fails.
fn git(root: &Path, args: &[&str], paths: &[PathBuf]) -> Option<String> {
    let output = Command::new("git")
        // A build must not wait for, or hold up, a git command that runs at the same time.
        .arg("--no-optional-locks")
        .args(args)
        .args(paths.iter().map(OsString::from))
        .current_dir(root)
        // A git hook sets these for its own repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
