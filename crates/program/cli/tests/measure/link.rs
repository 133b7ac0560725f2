//! Phases, items and values reported over the link.

use std::path::PathBuf;

use serde_json::Value;

use super::common::{PROGRAM, command, number, warnings, words};
use crate::host::TestHost;

fn python(kind: &[&str]) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/marks.py");
    let words = [&["--", "python3", script], kind].concat();
    words.into_iter().map(str::to_owned).collect()
}

fn with_link(host: &TestHost, args: &[&str]) -> Value {
    let client = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src"));
    let output = command(host, &[&["--export-json", "-"], args].concat())
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn phases_that_add_up(document: &Value) -> &serde_json::Map<String, Value> {
    let phases = document["phases"].as_object();
    let phases = phases.unwrap_or_else(|| panic!("{document}"));
    let energies = phases.values().map(|phase| number(&phase["energy_j"]));
    let sum: f64 = energies.sum();
    let off = sum / number(&document["energy_j"]) - 1.0;
    assert!(off.abs() < 1e-6, "{document}");
    phases
}

#[test]
fn phases_add_up_and_separate_load_from_idle() {
    let run = python(&["training", PROGRAM]);
    let host = TestHost::new("nvidia_h200");
    let document = with_link(&host, &words(&run));
    let phases = phases_that_add_up(&document);
    let (busy, pause) = (&phases["busy"], &phases["pause"]);
    assert_eq!(
        (number(&busy["count"]), number(&pause["count"])),
        (4.0, 4.0)
    );
    assert!((1.2..1.5).contains(&number(&pause["time_s"])), "{document}");
    // The phase contains the start of a process, so the GPU is not busy all the time.
    assert!(
        (400.0..620.0).contains(&number(&busy["power_w"])),
        "{document}"
    );
    assert!(
        (60.0..140.0).contains(&number(&pause["power_w"])),
        "{document}"
    );
    assert_eq!(number(&document["items"]), 512.0);
    assert_eq!(document["values"], serde_json::json!({"accuracy": 0.76}));
    assert_eq!(warnings(&document), ["value 'loss' is NaN: it is ignored"]);
}

#[test]
fn a_window_of_a_phase_is_from_its_first_begin_to_its_last_end() {
    let run = python(&["workers"]);
    let host = TestHost::new("nvidia_h200");
    let document = with_link(
        &host,
        &[&["--window", "phase:load"], words(&run).as_slice()].concat(),
    );
    assert_eq!(document["window"], "phase:load");
    let (window, run) = (number(&document["time_s"]), number(&document["run_time_s"]));
    assert!((0.08..run).contains(&window), "{document}");
    // Three forked workers with a ring each; the phases are too short for more checks.
    assert!(document["phases"].is_object() || document["phases_refused"].is_string());
    assert!(warnings(&document).is_empty(), "{document}");
}

#[test]
fn irregular_phase_marks_are_reported() {
    let run = python(&["irregular"]);
    let host = TestHost::new("nvidia_h200");
    let shown = warnings(&with_link(&host, &words(&run)));
    let expected = [
        "phase 'a' ended within phase 'b', which began later: the overlap counts in both phases",
        "phase 'c' ended without having begun: it is ignored",
        "phase 'd' began and never ended: it is ignored",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn phases_of_several_ranks_add_up() {
    let run = python(&["ranks"]);
    let host = TestHost::new("v100:2");
    let document = with_link(&host, &words(&run));
    let phases = phases_that_add_up(&document);
    // Only one rank evaluates.
    assert_eq!(number(&phases["evaluate"]["count"]), 30.0, "{document}");
    assert_eq!(number(&phases["step"]["count"]), 30.0, "{document}");
    assert_eq!(number(&document["items"]), 600.0);
}

/// The ranks of a simulated program wait for each other and mark it.
#[test]
fn a_simulated_job_marks_the_phases_of_each_rank() {
    let host = TestHost::new("titan_x_pascal,titan_x_maxwell");
    let run = [
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        "caffenet",
        "--ranks",
        "2",
        "--batch",
        "256",
        "--items",
        "5120",
    ];
    let document = with_link(&host, &run);
    let phases = phases_that_add_up(&document);
    for name in ["copy", "forward", "backward", "wait", "exchange", "update"] {
        let phase = phases.get(name);
        let phase = phase.unwrap_or_else(|| panic!("{name}: {document}"));
        let count = number(&phase["count"]);
        assert!((19.0..=20.0).contains(&count), "{name}: {document}");
    }
    // The slower GPU needs 90 ms for the backward pass of 128 items, and the faster one waits for it.
    assert!(number(&phases["wait"]["time_s"]) > 0.5, "{document}");
    assert_eq!(number(&document["items"]), 5120.0);
    assert!(warnings(&document).is_empty(), "{document}");
}

/// Ranks with different batches and phases, and one that dies.
#[test]
fn ranks_that_disagree_or_die_are_named() {
    let host = TestHost::new("v100:2");
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let measure = |kind: &str| {
        let run = python(&[kind]);
        let output = command(
            &host,
            &[&["--export-json", "-"], words(&run).as_slice()].concat(),
        )
        .env("PYTHONPATH", client)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), warnings(&document).join("\n"))
    };
    let (code, shown) = measure("unequal");
    assert_eq!(code, Some(1), "{shown}");
    assert!(
        shown.contains("rank 1 reported a batch of 32, but rank 0 64"),
        "{shown}"
    );
    assert!(
        shown.contains("rank 1 marked step, but rank 0 save, step"),
        "{shown}"
    );
    let (code, shown) = measure("dying");
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("rank 1 stopped reporting"), "{shown}");
}
