//! Every command of the program that a document shows in an `sh` block is understood by the program.
//! Commands in `console` blocks are run by tests/documents.rs; these are not, because they need a real GPU or hours.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};

use super::Cli;

/// What ends a command within a line of a shell.
const ENDS: [&str; 8] = ["|", "||", "&&", ";", "&", ">", ">>", "#"];

/// Adds the Markdown files below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
}

/// The words of a line as a shell divides it: quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The commands of the program in the `sh` blocks of a document.
fn commands(document: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    let (mut in_block, mut line) = (false, String::new());
    for text in document.lines() {
        if text.trim_start().starts_with("```") {
            in_block = text.trim() == "```sh";
            line.clear();
            continue;
        }
        if !in_block {
            continue;
        }
        if let Some(begun) = text.strip_suffix('\\') {
            line += begun;
            continue;
        }
        line += text;
        let all = words(&std::mem::take(&mut line));
        let own = all
            .iter()
            .skip_while(|word| *word == "sudo" || word.contains('='));
        let own: Vec<String> = own
            .take_while(|word| !ENDS.contains(&word.as_str()))
            .map(|word| match word.as_str() {
                "$!" | "PID" => "1".to_owned(),
                _ => word.clone(),
            })
            .collect();
        if own.first().is_some_and(|program| program == "sweetspot") {
            commands.push(own);
        }
    }
    commands
}

#[test]
fn the_program_understands_every_documented_command() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut files = vec![root.join("README.md")];
    collect(&root.join("docs"), &mut files);
    collect(&root.join("examples"), &mut files);
    let (mut wrong, mut count) = (Vec::new(), 0);
    for file in files {
        let document = std::fs::read_to_string(&file).unwrap();
        for command in commands(&document) {
            count += 1;
            let parsed = Cli::command().try_get_matches_from(&command);
            let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
            match parsed {
                Err(error) if error.use_stderr() => {
                    let reason = error.to_string();
                    let reason = reason.lines().next().unwrap_or_default().to_owned();
                    wrong.push(format!(
                        "{}: {}: {reason}",
                        file.display(),
                        command.join(" ")
                    ));
                }
                _ => {}
            }
        }
    }
    assert!(count > 100, "only {count} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_are_divided_as_by_a_shell() {
    let expected = ["a", "b c", "--x=d e", ""];
    assert_eq!(words("a 'b c'  --x=\"d e\" ''"), expected);
}
