//! Every `console` block of the README and of docs/ shows what really happens.
//!
//! Lines that begin with `$ ` are commands; what follows is what they print. Commands of the program run
//! in a copy of docs/examples; others are left alone. `SNAPSHOTS=overwrite` writes what happens into the documents.

use std::path::{Path, PathBuf};

use crate::common::{sweetspot, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md")];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
    documents
}

/// The program's arguments, if the command is one of its own.
fn arguments(command: &str) -> Option<Vec<&str>> {
    let rest = command
        .strip_prefix("cargo run --release -- ")
        .or_else(|| command.strip_prefix("sweetspot "))?;
    Some(rest.split_whitespace().collect())
}

/// A folder of its own for a document's commands.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(root().join("docs/examples")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// The document as it should be, and how many commands it runs.
fn renewed(document: &str) -> (String, usize) {
    let folder = examples();
    let (mut lines, mut commands) = (Vec::new(), 0);
    let (mut in_block, mut skipping) = (false, false);
    for line in document.lines() {
        if line.starts_with("```") {
            in_block = line == "```console";
            skipping = false;
        } else if in_block && let Some(command) = line.strip_prefix("$ ") {
            skipping = false;
            lines.push(line.to_owned());
            if let Some(arguments) = arguments(command) {
                let output = sweetspot(folder.path(), &arguments);
                let shown = text(&output.stdout) + &text(&output.stderr);
                lines.extend(shown.lines().map(str::to_owned));
                commands += 1;
                skipping = true;
            }
            continue;
        }
        if !skipping {
            lines.push(line.to_owned());
        }
    }
    (lines.join("\n") + "\n", commands)
}

#[test]
fn documents_show_what_happens() {
    let overwrite = std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite");
    let mut all = 0;
    for path in documents() {
        let document = std::fs::read_to_string(&path).unwrap();
        let (renewed, commands) = renewed(&document);
        all += commands;
        if overwrite {
            std::fs::write(&path, renewed).unwrap();
        } else {
            snapbox::assert_data_eq!(document, snapbox::Data::text(renewed).raw());
        }
    }
    assert!(all >= 3, "only {all} commands in all documents");
}
