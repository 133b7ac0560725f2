//! All commands count the same items, however the program reports its progress.

use std::process::Stdio;

use crate::host::TestHost;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The number of items that a command of the program counts.
fn items(host: &TestHost, verb: &str, pattern: &str, command: &[&str]) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("answer.json");
    let flags: &[&str] = match verb {
        // An earlier run must not influence this one.
        "tune" => &["--fresh"],
        "run" => &["--power-cap", "250W"],
        "sweep" => &["--power-cap", "300", "--repeat", "1", "--settle", "0s"],
        _ => &[],
    };
    let output = host
        .sweetspot()
        .arg(verb)
        .args(flags)
        .args(["--progress", pattern, "--export-json"])
        .arg(&file)
        .arg("--")
        .args(command)
        .env("XDG_STATE_HOME", folder.path())
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&file);
    let text = text.unwrap_or_else(|error| panic!("{verb}: {error}: {output:?}"));
    let answer: Value = serde_json::from_str(&text).unwrap();
    let items = match verb {
        "sweep" => &answer["points"][0]["items"],
        _ => &answer["items"],
    };
    items
        .as_f64()
        .unwrap_or_else(|| panic!("{verb}: {answer}: {output:?}"))
}

fn assert_all_verbs_count(expected: f64, pattern: &str, command: &[&str]) {
    let host = TestHost::new("v100");
    for verb in ["measure", "run", "tune", "sweep"] {
        assert_eq!(items(&host, verb, pattern, command), expected, "{verb}");
    }
}

const EPOCHS: &str =
    "for epoch in 1 2 3; do for step in $(seq 40); do echo step $step; done; sleep 0.2; done";

#[test]
fn a_count_that_restarts_each_epoch_is_summed() {
    assert_all_verbs_count(120.0, r"step (\d+)", &["sh", "-c", EPOCHS]);
}

#[test]
fn a_line_without_a_number_is_one_item() {
    assert_all_verbs_count(120.0, "^step", &["sh", "-c", EPOCHS]);
}

#[test]
fn the_link_has_priority_over_the_output() {
    // The stand-in workload reports every batch over the link, and prints a rate too.
    let training = "sim-workload --network resnet50 --batch 100 --items 800";
    let mut command = vec![PROGRAM];
    command.extend(training.split(' '));
    assert_all_verbs_count(800.0, r"images/sec: ([\d.]+)", &command);
}

#[test]
fn a_rate_gives_the_same_count_everywhere() {
    let host = TestHost::new("v100");
    let script = "for second in 1 2 3; do sleep 0.5; echo images/sec: 100; done; sleep 0.5";
    let counted = |verb| items(&host, verb, r"images/sec: ([\d.]+)", &["sh", "-c", script]);
    for verb in ["measure", "run", "tune", "sweep"] {
        let items = counted(verb);
        assert!((200.0..235.0).contains(&items), "{verb}: {items}");
    }
}
