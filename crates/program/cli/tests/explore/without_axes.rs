//! Sweeps of a command whose user named no settings to try, and what a sweep says after its first run.

use std::io::Write;
use std::process::Stdio;

use super::common::{exported_study, settings, sweep, workload};
use crate::common::{text, words};
use crate::host::TestHost;

#[test]
fn the_best_cap_is_searched_for() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = [&words("--study st --")[..], &workload("256")].concat();
    let output = sweep(&host, folder.path(), &args);
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("the reference took ") && message.contains("; about 5 more runs: "),
        "{message}"
    );
    let shown = text(&output.stdout);
    assert!(shown.contains("runs by a guided search"), "{shown}");
    assert!(
        shown.contains("Run at this setting: sweetspot run --from st -- "),
        "{shown}"
    );
    let study = exported_study(folder.path(), "st");
    let evaluations = study["search"]["evaluations"].as_u64().unwrap();
    assert!((4..=16).contains(&evaluations), "{evaluations}");
    assert_eq!(settings(&host), [(300.0, false)]);
}

#[test]
fn flags_about_each_setting_ask_for_all_of_them() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let plan = |args: &str| {
        let output = sweep(&host, folder.path(), &words(args));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let all = plan("--repeat 3 --dry-run -- true");
    assert!(all.contains("93 runs"), "{all}");
    let searched = plan("--dry-run -- true");
    assert!(searched.contains("16 runs at most"), "{searched}");
}

#[test]
fn a_price_of_energy_is_searched_for_as_energy() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &str| sweep(&host, folder.path(), &words(args));
    let output = run("--objective cost --price-per-kwh 0.3 --write-study study.toml -- sleep 0.1");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let study = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    assert!(
        study.contains("objective = \"energy\"") && study.contains("strategy = \"guided\""),
        "{study}"
    );
    let output = run("--objective cost --price-per-gpu-hour 2 -- sleep 0.1");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(message.contains("--power-cap 150..300:25"), "{message}");
}

#[test]
fn a_sweep_ends_when_its_reference_fails() {
    let host = TestHost::new("v100");
    host.set_caps(250.0);
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "--power-cap",
        "150,200,300",
        "--study",
        "st",
        "--",
        "sh",
        "-c",
    ];
    let command = "echo run >> runs; exit 3";
    let output = sweep(&host, folder.path(), &[&args[..], &[command]].concat());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(
        message.contains("failed: the command exited with code 3; when the command works, resume with `sweetspot sweep --resume st --retry-failed`"),
        "{message}"
    );
    let runs = std::fs::read_to_string(folder.path().join("runs")).unwrap();
    assert_eq!(runs, "run\n");
    assert_eq!(settings(&host), [(250.0, false)]);
}

#[test]
fn a_sweep_of_more_than_an_hour_asks_on_a_terminal() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let line = format!(
        "{program} sweep --power-cap 150,200 --repeat 3000 --settle 500ms --study st -- sleep 0.2"
    );
    let mut terminal = host.command("script");
    let mut terminal = terminal
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The answer waits in the terminal until the question is asked.
    let mut keyboard = terminal.stdin.take().unwrap();
    keyboard.write_all(b"n\n").unwrap();
    let output = terminal.wait_with_output().unwrap();
    drop(keyboard);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("go on?"), "{shown}");
    assert!(
        shown.contains(
            "stopped after 1 of about 9000 runs; resume with `sweetspot sweep --resume st`"
        ),
        "{shown}"
    );
    assert_eq!(
        exported_study(folder.path(), "st")["points"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}
