//! Every command ends with a command to type next, and that command works as it is printed.

use std::path::Path;
use std::process::{Command, Output};

use crate::common::text;
use crate::host::TestHost;
use crate::pseudo_terminal::{Shown, run_on_terminal, without_escapes};

/// The commands in the order of a user's day; each works with what those before it have left.
const COMMANDS: [&str; 27] = [
    "doctor",
    "devices",
    "measure -- sweetspot sim-workload --network resnet50 --items 200",
    "run --power-cap 200W --measure -- sweetspot sim-workload --network resnet50 --items 200",
    "restore",
    "sweep --simulate v100 --network resnet50 --power-cap 200..300:50 --repeat 2 --study first",
    "sweep --simulate v100 --network resnet50 --power-cap 200..300:50 --repeat 2 --seed 2 --study 'second study'",
    "report first",
    "compare first 'second study'",
    "compare first 'second study' --export-html compare.html",
    "study list .",
    "study show first",
    "study export 'second study'",
    "study export first --export-csv rows.csv",
    "study gather first",
    "study merge first 'second study' --output both",
    "study delete both --yes",
    "study list",
    "fit first",
    "fit first --output copy.toml",
    "replay --study first --strategy guided",
    "simulate --list",
    "simulate --errors power-capping-2022 --summary",
    "network --list",
    "network resnet50",
    "network resnet50 --simulate v100 --by kind",
    "tune --simulate v100 --network resnet50",
];

/// Runs a line as a shell reads it, on a host.
fn run_line(host: &TestHost, folder: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_sweetspot"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut command: Command = host.command("sh");
    command
        .args(["-c", line])
        .current_dir(folder)
        .env("PATH", path);
    command.output().unwrap()
}

/// The command at the end of a text, after the words that introduce it; `None` if there is none.
fn next_step(shown: &str) -> Option<&str> {
    let last = shown.lines().rev().find(|line| !line.trim().is_empty())?;
    let (_, command) = last.split_once(": sweetspot ")?;
    Some(command)
}

#[test]
fn every_command_ends_with_the_next_one() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    for line in COMMANDS {
        let output = run_line(&host, folder.path(), &format!("sweetspot {line}"));
        let (shown, errors) = (text(&output.stdout), text(&output.stderr));
        let step = next_step(&shown);
        let step = step.unwrap_or_else(|| panic!("`{line}` ends without it: {shown}{errors}"));
        // The user's own script is not here.
        if step.contains("train.py") {
            continue;
        }
        let step = format!("sweetspot {step}");
        let next = run_line(&host, folder.path(), &step);
        assert!(
            next.status.success(),
            "after `{line}`, `{step}`: {}",
            text(&next.stderr)
        );
    }
}

#[test]
fn a_hold_ends_with_the_next_command() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let typed = "sweetspot hold --below 400W";
    let program = "-- sweetspot sim-workload --network resnet50 --infer --serve --seconds 2";
    let step = |line: &str| {
        let output = run_line(&host, folder.path(), line);
        let shown = text(&output.stdout);
        let step = next_step(&shown).map(|step| format!("sweetspot {step}"));
        step.unwrap_or_else(|| panic!("{shown}{}", text(&output.stderr)))
    };
    let next = step(&format!("{typed} {program}"));
    assert_eq!(next, format!("{typed} --export-svg hold.svg {program}"));
}

/// The output of a run belongs to its command, so that the next step goes to the terminal alone.
#[test]
fn a_run_ends_with_the_next_command_on_a_terminal() {
    let host = TestHost::new("v100");
    let command = || {
        let mut command = host.sweetspot();
        command.args(["run", "--power-cap", "200W", "--", "true"]);
        command
    };
    let (shown, _) = run_on_terminal(command(), 80, Shown::OutputAndErrors);
    let shown = without_escapes(&shown).replace('\r', "");
    let step = next_step(&shown);
    assert_eq!(
        step,
        Some("run --power-cap 200W --measure -- true"),
        "{shown}"
    );
    let output = command().output().unwrap();
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}
