//! Faulty counters of what limits a load: `measure`, `doctor`, `tune` and `sweep` say what is unknown, or nothing, and
//! never name a limit that is not the one of the simulated load.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::knob::{memory_bound, tune_briefly};
use crate::common::text;
use crate::host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");
const H200: &str = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");

/// The keys of a fault in a profile, and what `doctor` says about it.
const FAULTS: [(&str, &str); 6] = [
    ("kind = \"no-throttle-times\"", "no throttle times"),
    (
        "kind = \"throttle-times-reset\"\nevery = \"2.5 s\"",
        "throttle times and the use of cores and memory (GPM) are supported",
    ),
    ("kind = \"no-unit-use\"", "needs Hopper or newer"),
    ("kind = \"unit-use-in-use\"", "(GPM) cannot be read: "),
    ("kind = \"unit-use-no-data\"", "(GPM) has no values"),
    ("kind = \"unit-use-nan\"", "(GPM) has no values"),
];

/// Runs the program on a host, with its arguments and a stand-in workload of some seconds.
fn run(host: &TestHost, folder: &Path, args: &[&str], network: &str, seconds: &str) -> Output {
    let workload = ["--", PROGRAM, "sim-workload", "--network", network];
    let output = host
        .sweetspot()
        .args(args)
        .args(workload)
        .args(["--seconds", seconds])
        .env("XDG_STATE_HOME", folder.join("state"))
        .current_dir(folder)
        .output();
    output.unwrap()
}

/// Checks what a document says about a load that is limited by `truth`.
fn check_limits(limits: &Value, truth: &str, name: &str) {
    let said = limits["limited_by"].as_str().unwrap_or("unknown");
    assert!([truth, "unknown"].contains(&said), "{name}: {limits}");
    if let Some(binds) = limits["power_cap_binds"].as_bool() {
        assert_eq!(binds, truth == "power-cap", "{name}: {limits}");
    }
    let text = limits["text"].as_str().unwrap_or_default();
    assert!(!text.contains("NaN"), "{name}: {limits}");
}

/// Runs all verbs on a GPU with this fault.
fn check_fault(fault: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let gpu = folder.join("gpu.toml");
    std::fs::write(&gpu, format!("{H200}\n[[fault]]\n{fault}\n")).unwrap();
    let host = TestHost::new(&gpu.to_string_lossy());
    let memory = memory_bound(folder);
    let doctor = host.sweetspot().arg("doctor").output().unwrap();
    let found = text(&doctor.stdout);
    assert!(found.contains(expected), "{fault}: {found}");
    for (network, truth) in [(memory.as_str(), "memory"), ("vgg19", "power-cap")] {
        let output = run(
            &host,
            folder,
            &["measure", "--export-json", "-"],
            network,
            "4",
        );
        assert_eq!(output.status.code(), Some(0), "{fault}: {output:?}");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let limits = &document["devices"][0]["limits"];
        check_limits(limits, truth, &format!("measure, {fault}"));
    }
    let (document, output) = tune_briefly(&host, folder, &memory);
    // The job is too short for a choice, with and without faults.
    assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
    assert_eq!(document["status"], "ended-early", "{fault}: {document}");
    let limits = &document["loads"][0]["limits"];
    check_limits(limits, "memory", &format!("tune, {fault}"));
    let args = ["sweep", "--power-cap", "600,700", "--repeat", "1"];
    let output = run(&host, folder, &args, &memory, "3.5");
    let notes = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{fault}: {notes}");
    assert!(!notes.contains("limits this load"), "{fault}: {notes}");
    for wrong in [
        "limited by the cores",
        "no work runs",
        "waits for the program",
        "NaN",
    ] {
        assert!(!notes.contains(wrong), "{fault}: {notes}");
    }
}

#[test]
fn faulty_counters_lead_to_no_wrong_claim() {
    std::thread::scope(|scope| {
        for (fault, expected) in FAULTS {
            scope.spawn(move || check_fault(fault, expected));
        }
    });
}
