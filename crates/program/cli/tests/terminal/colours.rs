//! Colours: on a terminal by default, and elsewhere only on request.

use std::path::Path;
use std::process::Command;

use crate::common::text;
use crate::pseudo_terminal::{Shown, run_on_terminal, without_escapes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");
const SWEEP: &str =
    "sweep --simulate v100 --network resnet50 --power-cap 150..300:50 --repeat 2 --no-study";

/// The program with these arguments, on a terminal that has colours unless `TERM` is changed.
fn program(line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(line.split(' '))
        .current_dir(std::env::temp_dir());
    command.env("TERM", "xterm").env_remove("NO_COLOR");
    command
}

/// What the program shows on a terminal.
fn on_terminal(command: Command) -> String {
    run_on_terminal(command, 100, Shown::OutputAndErrors).0
}

/// What the program writes into a pipe.
fn in_pipe(mut command: Command) -> String {
    let output = command.output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

/// Whether a text has escape codes for colours; those that move the cursor are others.
fn has_colours(text: &str) -> bool {
    text.contains("\u{1b}[3") || text.contains("\u{1b}[1m")
}

#[test]
fn terminals_have_colours_unless_the_user_or_the_environment_forbids_them() {
    for line in [
        SWEEP,
        "--help",
        "sweep --help",
        "sweep --objective nonsense",
    ] {
        let with = |flag: &str| program(&format!("{line} --color {flag}"));
        let environment = |name: &str, value: &str| {
            let mut command = program(line);
            command.env(name, value);
            command
        };
        assert!(has_colours(&on_terminal(program(line))), "{line}");
        assert!(
            has_colours(&on_terminal(environment("NO_COLOR", ""))),
            "{line}"
        );
        for plain in [
            environment("NO_COLOR", "1"),
            environment("TERM", "dumb"),
            with("never"),
        ] {
            let shown = on_terminal(plain);
            assert!(!has_colours(&shown), "{line}: {shown:?}");
        }
        assert!(!has_colours(&in_pipe(program(line))), "{line}");
        assert!(!has_colours(&in_pipe(with("auto"))), "{line}");
        assert!(has_colours(&in_pipe(with("always"))), "{line}");
        let mut forced = with("always");
        forced.env("NO_COLOR", "1").env("TERM", "dumb");
        assert!(has_colours(&in_pipe(forced)), "{line}");
    }
}

#[test]
fn colours_only_repeat_what_the_words_say() {
    let coloured = in_pipe(program(&format!("{SWEEP} --color always")));
    assert_eq!(without_escapes(&coloured), in_pipe(program(SWEEP)));
    // A saving is green, a loss yellow.
    assert!(coloured.contains("\u{1b}[32m-"), "{coloured:?}");
    assert!(coloured.contains("\u{1b}[33m+"), "{coloured:?}");
}

#[test]
fn errors_have_a_red_name() {
    let shown = on_terminal(program("report no-such-study"));
    assert!(
        shown.starts_with("\u{1b}[31msweetspot:\u{1b}[0m "),
        "{shown:?}"
    );
}

#[test]
fn documents_never_have_colours() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["a.json", "a.csv", "a.md", "a.html"];
    let exports: String = files
        .iter()
        .map(|file| format!(" --export-{} {file}", &file[2..]))
        .collect();
    let mut command = program(&format!("{SWEEP} --color always{exports}"));
    command.current_dir(folder.path());
    on_terminal(command);
    for file in files {
        let document = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(
            document.len() > 100 && !document.contains('\u{1b}'),
            "{file}"
        );
    }
    let to_stdout = in_pipe(program(&format!("{SWEEP} --color always --export-md -")));
    assert!(!to_stdout.contains('\u{1b}'), "{to_stdout}");
    let markdown = in_pipe(program("simulate --list --markdown --color always"));
    assert!(!markdown.contains('\u{1b}'), "{markdown}");
    assert!(Path::new(&folder.path().join("a.md")).exists());
}
