//! Every `console` block of README.md and docs/ shows the real output of its commands.
//!
//! Lines that begin with `$ ` are commands, and the lines after them their output. Commands of the program run in a copy
//! of docs/examples; others are not run. A file that a block shows with `$ cat FILE` is there for the commands after it.
//! `SNAPSHOTS=overwrite` updates the documents, and the pictures that `report` draws for them.

use std::path::{Path, PathBuf};

use crate::common::{sweetspot, text};

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md")];
    collect_markdown(&root().join("docs"), &mut documents);
    documents
}

/// Adds the Markdown files of a folder and of the folders in it, in the order of their names.
pub fn collect_markdown(folder: &Path, documents: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_markdown(&path, documents);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            documents.push(path);
        }
    }
}

/// The arguments of a command of the program, or `None` for other commands. An argument may be in single quotes, which a
/// shell needs for some of them.
fn arguments(command: &str) -> Option<Vec<&str>> {
    let rest = command
        .strip_prefix("cargo run --release -- ")
        .or_else(|| command.strip_prefix("sweetspot "))?;
    let words = rest.split_whitespace();
    Some(words.map(|word| word.trim_matches('\'')).collect())
}

/// A new folder with the examples, in which the commands of a document run.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(root().join("docs/examples")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
    }
    folder
}

/// The lines that a block shows after a command.
fn shown_after<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines
        .take_while(|line| !line.starts_with("$ ") && !line.starts_with("```"))
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Whether a line is the progress that a sweep prints every 30 s: how often depends on how busy the machine is.
fn is_progress(line: &str) -> bool {
    line.starts_with("sweetspot: ") && line.contains(" runs  ") && line.contains(" left  ")
}

/// The document with the real output of its commands, and their number.
fn update(document: &str) -> (String, usize) {
    let folder = examples();
    let (mut lines, mut commands) = (Vec::new(), 0);
    let (mut in_block, mut skipping) = (false, false);
    for (number, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            in_block = line == "```console";
            skipping = false;
        } else if in_block && let Some(command) = line.strip_prefix("$ ") {
            skipping = false;
            lines.push(line.to_owned());
            if let Some(arguments) = arguments(command) {
                let output = sweetspot(folder.path(), &arguments);
                let shown = text(&output.stdout) + &text(&output.stderr);
                let shown = shown.lines().filter(|line| !is_progress(line));
                lines.extend(shown.map(str::to_owned));
                commands += 1;
                skipping = true;
            } else if let Some(file) = command.strip_prefix("cat ") {
                let content = shown_after(document.lines().skip(number + 1));
                std::fs::write(folder.path().join(file), content).unwrap();
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
fn console_blocks_match_the_program() {
    let overwrite = std::env::var("SNAPSHOTS").is_ok_and(|value| value == "overwrite");
    let mut all = 0;
    for path in documents() {
        let document = std::fs::read_to_string(&path).unwrap();
        let (updated, commands) = update(&document);
        all += commands;
        if overwrite {
            std::fs::write(&path, updated).unwrap();
        } else {
            snapbox::assert_data_eq!(document, snapbox::Data::text(updated).raw());
        }
    }
    assert!(all >= 3, "only {all} commands in all documents");
}

/// The README says by which commands its picture is made.
#[test]
fn the_pictures_are_those_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        "sweetspot sweep --simulate v100 --network resnet50",
        "sweetspot report studies/resnet50-v100 --export-figures figures",
    ] {
        let output = sweetspot(folder.path(), &arguments(command).unwrap());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.contains("`sweetspot report studies/resnet50-v100 --export-figures figures`"));
    for entry in std::fs::read_dir(root().join("docs/figures")).unwrap() {
        let path = entry.unwrap().path();
        let drawn = folder
            .path()
            .join("figures")
            .join(path.file_name().unwrap());
        let drawn = std::fs::read_to_string(drawn).unwrap();
        snapbox::assert_data_eq!(drawn, snapbox::Data::read_from(&path, None).raw());
    }
}
