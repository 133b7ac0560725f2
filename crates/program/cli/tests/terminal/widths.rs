//! Every text fits the terminal, and a narrow terminal shows every number that a wide one shows.

use std::path::Path;
use std::process::Command;

use crate::common::{sweetspot, text};
use crate::host::TestHost;
use crate::pseudo_terminal::{Shown, run_on_terminal, without_escapes};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The commands that print tables and work without a host.
const COMMANDS: [&str; 21] = [
    "sweep --simulate v100 --network resnet50 --repeat 2 --no-study",
    "sweep --simulate v100 --network resnet50 --repeat 2 --no-study --objective gain-minus-loss --limit time<=+5%",
    "sweep --simulate v100:2 --network resnet50 --power-cap 200,250 --gpus 1,2 --axis batch=64,128 --repeat 1 --no-study",
    "sweep --simulate v100 --network resnet50 --dry-run",
    "report first",
    "report first --by power-cap",
    "compare first second",
    "tune --simulate v100 --network resnet50",
    "study list .",
    "study show first",
    "simulate --list",
    "simulate --errors power-capping-2022",
    "simulate --errors multi-gpu-2018",
    "network --list",
    "network resnet50",
    "network resnet50 --by kind --simulate v100",
    "network resnet50 --simulate nvidia_h200 --train --batch 64",
    "reproduce power-capping-2022",
    "reproduce batch-sizer-2021",
    "replay --study first --strategy guided",
    "fit first",
];

/// Makes two studies in a folder.
fn make_studies(folder: &Path) {
    for (network, study) in [("resnet50", "first"), ("vgg19", "second")] {
        let line = format!(
            "sweep --simulate v100 --network {network} --power-cap 150..300:10 --repeat 3 --study {study}"
        );
        let output = sweetspot(folder, &line.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

/// The numbers in a text, in order and without duplicates.
fn numbers(text: &str) -> std::collections::BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let words = text.split(|letter| !is_part(letter));
    let numbers = words.map(|word| word.trim_matches('.').to_owned());
    numbers.filter(|word| !word.is_empty()).collect()
}

/// What a command shows on a terminal with this many columns. No line may be longer.
fn shown(command: Command, columns: u16) -> String {
    let line = format!("{command:?} with {columns} columns");
    let (shown, _) = run_on_terminal(command, columns, Shown::Output);
    let shown = without_escapes(&shown);
    for shown in shown.lines() {
        let width = shown.chars().count();
        assert!(width <= columns.into(), "{line}: {width}: {shown:?}");
    }
    shown
}

/// Checks a command on terminals of 60, 80 and 200 columns.
fn check(make: impl Fn() -> Command, is_repeatable: bool) {
    let [narrow, usual, wide] = [60, 80, 200].map(|columns| shown(make(), columns));
    assert!(!wide.trim().is_empty(), "{:?}", make());
    if is_repeatable {
        for other in [&narrow, &usual] {
            let lost: Vec<String> = numbers(&wide)
                .difference(&numbers(other))
                .cloned()
                .collect();
            assert!(lost.is_empty(), "{:?} lost {lost:?}:\n{other}", make());
        }
    }
}

#[test]
fn texts_fit_terminals_and_lose_no_number() {
    let folder = tempfile::tempdir().unwrap();
    make_studies(folder.path());
    for line in COMMANDS {
        check(
            || {
                let mut command = Command::new(PROGRAM);
                command.args(line.split(' ')).current_dir(folder.path());
                command.env("TERM", "xterm");
                command
            },
            true,
        );
    }
}

#[test]
fn texts_about_devices_fit_terminals() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let job = format!("{PROGRAM} sim-workload --network resnet50 --items 400");
    let serving = format!("{PROGRAM} sim-workload --network resnet50 --infer --serve --seconds 4");
    for (line, is_repeatable) in [
        ("devices".to_owned(), false),
        ("doctor".to_owned(), false),
        ("policy check --user nobody".to_owned(), true),
        (format!("measure -- {job}"), false),
        (format!("measure --runs 2 -- {job}"), false),
        (format!("hold --device 0 --below 250W -- {serving}"), false),
        (
            format!("sweep --device 0 --power-cap 250 --repeat 1 --settle 0s --no-study -- {job}"),
            false,
        ),
    ] {
        check(
            || {
                let mut command = host.sweetspot();
                command.args(line.split(' ')).current_dir(folder.path());
                command
                    .env("TERM", "xterm")
                    .env("XDG_STATE_HOME", folder.path());
                command
            },
            is_repeatable,
        );
    }
}

#[test]
fn output_without_a_terminal_does_not_depend_on_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let line = "sweep --simulate v100 --network resnet50 --repeat 2 --no-study";
    let plain = text(&sweetspot(folder.path(), &line.split(' ').collect::<Vec<_>>()).stdout);
    let mut command = Command::new(PROGRAM);
    command.args(line.split(' ')).current_dir(folder.path());
    let output = command.env("COLUMNS", "60").env("TERM", "xterm").output();
    assert_eq!(text(&output.unwrap().stdout), plain);
    let table = plain.lines().filter(|line| line.starts_with([' ', '─']));
    assert!(table.clone().count() > 5, "{plain}");
    for line in table {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // A sentence is one line, so that grep finds all of it.
    let sentence = plain
        .lines()
        .find(|line| line.starts_with("Recommendation: "));
    assert!(sentence.is_some_and(|line| line.ends_with('.')), "{plain}");
}
