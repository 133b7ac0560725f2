//! `docs/explanation/architecture.md` names files and crates that exist.

use std::path::{Path, PathBuf};

fn collect(folder: &Path, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            paths.push(format!("{}/", path.display()));
            collect(&path, paths);
        } else {
            paths.push(path.display().to_string());
        }
    }
}

#[test]
fn every_file_and_crate_of_the_architecture_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let text = std::fs::read_to_string(root.join("docs/explanation/architecture.md")).unwrap();
    let mut paths = Vec::new();
    for folder in ["crates", "docs", "python", "data", "benchmarks"] {
        paths.push(format!("{}/", root.join(folder).display()));
        collect(&root.join(folder), &mut paths);
    }
    let named = text.split('`').skip(1).step_by(2).filter(|name| {
        let is_path = name.ends_with(".rs") || name.ends_with('/');
        is_path && !name.contains("NAME") && !name.contains(' ')
    });
    let missing: Vec<String> = named
        .map(|name| name.replace("VERB", "hold"))
        .filter(|name| !paths.iter().any(|path| path.ends_with(&format!("/{name}"))))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let is_crate = |path: &&String| {
        let path = path.trim_start_matches(root.to_str().unwrap());
        path.starts_with("/crates/") && path.ends_with("/Cargo.toml")
    };
    for manifest in paths.iter().filter(is_crate) {
        let folder = Path::new(manifest).parent().unwrap();
        let name = folder.file_name().unwrap().to_string_lossy();
        assert!(text.contains(&format!("`{name}`")), "{name} has no row");
    }
}
