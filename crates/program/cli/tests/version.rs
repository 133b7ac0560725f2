//! `sweetspot --version` names the commit that the program is built from.

#[path = "../build/commit.rs"]
mod commit;

use std::path::Path;
use std::process::Command;

use crate::common::{sweetspot, text};
use commit::{find_commit, list_sources};

/// Runs git in a folder, without the settings of the user, and returns its output.
fn git(folder: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=test", "-c", "user.email=test"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

/// Makes a folder with the layout of the workspace: a crate with a source and a test, and a document.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in [
        "Cargo.toml",
        "crates/program/cli/src/main.rs",
        "crates/program/cli/tests/main.rs",
        "docs/sweep.md",
    ] {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "first\n").unwrap();
    }
    folder
}

fn commit_all(folder: &Path) -> String {
    git(folder, &["add", "--all"]);
    git(folder, &["commit", "--quiet", "--message=test"]);
    git(folder, &["rev-parse", "--short=7", "HEAD"])
}

fn commit_of(root: &Path) -> Option<String> {
    find_commit(root, &list_sources(root).unwrap())
}

#[test]
fn version_is_that_of_the_package_and_of_a_commit() {
    let output = sweetspot(&std::env::temp_dir(), &["--version"]);
    let version = text(&output.stdout);
    let package = concat!("sweetspot ", env!("CARGO_PKG_VERSION"));
    let rest = version.trim_end().strip_prefix(package).unwrap();
    // A build from a source archive has no commit.
    if !rest.is_empty() {
        let commit = rest.strip_prefix(" (").unwrap().strip_suffix(')').unwrap();
        let hash = commit.strip_suffix(", modified").unwrap_or(commit);
        let is_hash = hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit());
        assert!(is_hash, "{version}");
    }
}

#[test]
#[ignore = "needs git"]
fn commit_is_that_of_the_checkout() {
    let folder = workspace();
    let root = folder.path();
    git(root, &["init", "--quiet"]);
    let hash = commit_all(root);
    assert_eq!(commit_of(root), Some(hash.clone()));
    std::fs::write(root.join("docs/sweep.md"), "second\n").unwrap();
    std::fs::write(root.join("crates/program/cli/tests/main.rs"), "second\n").unwrap();
    assert_eq!(commit_of(root), Some(hash.clone()));
    std::fs::write(root.join("crates/program/cli/src/main.rs"), "second\n").unwrap();
    assert_eq!(commit_of(root), Some(format!("{hash}, modified")));
    let second = commit_all(root);
    assert_ne!(second, hash);
    assert_eq!(commit_of(root), Some(second.clone()));
    std::fs::write(root.join("crates/program/cli/src/new.rs"), "new\n").unwrap();
    assert_eq!(commit_of(root), Some(format!("{second}, modified")));
}

#[test]
#[ignore = "needs git"]
fn source_archive_has_no_commit_even_inside_another_repository() {
    let folder = workspace();
    let outer = folder.path();
    git(outer, &["init", "--quiet"]);
    commit_all(outer);
    let unpacked = workspace();
    let inner = outer.join("unpacked");
    std::fs::rename(unpacked.keep(), &inner).unwrap();
    assert_eq!(commit_of(&inner), None);
}
