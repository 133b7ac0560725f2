//! Flags, messages, documents and exit codes of `sweetspot measure`.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::common::{
    command, json, measure, number, shell, start_measure, text, warnings, words, workload,
};
use crate::host::TestHost;

#[test]
fn the_exit_code_of_the_command_is_returned() {
    let host = TestHost::new("nvidia_h200");
    let assert_ends = |args: &[&str], code: i32, expected: &str| {
        let output = measure(&host, args);
        let message = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(expected), "{message}");
    };
    assert_ends(
        &["--", "no-such-command"],
        127,
        "sweetspot: cannot run no-such-command: No such file",
    );
    assert_ends(
        &["--", "/etc/passwd"],
        126,
        "sweetspot: cannot run /etc/passwd: Permission denied",
    );
    assert_ends(&shell("exit 7"), 7, "exit code 7");
    assert_ends(&shell("kill -9 $$"), 128 + 9, "ended by signal 9");
    assert_ends(&["--", "sleep", "0.01"], 0, "NVIDIA H200");
    let begun = Instant::now();
    // A leftover process may keep the pipe of the tool open, but not that of this test.
    let leaves = shell("sleep 9 >&- 2>&- & echo gone");
    assert_ends(&leaves, 0, "left processes running");
    let pattern = [
        "--progress",
        "gone",
        "--",
        "sh",
        "-c",
        "sleep 9 & echo gone",
    ];
    assert_ends(&pattern, 0, "left processes running");
    assert!(
        begun.elapsed() < Duration::from_secs(7),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn bad_input_is_rejected_before_the_command_runs() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let expect_rejection = |args: &[&str], expected: &str| {
        let output = measure(
            &host,
            &[args, &["--", "touch", ran.to_str().unwrap()]].concat(),
        );
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{args:?}: {message}");
        assert!(message.starts_with("sweetspot: "), "{message}");
        assert!(message.contains(expected), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(text(&output.stdout), "");
        assert!(!ran.exists(), "{args:?}");
    };
    expect_rejection(
        &["--method", "guess"],
        "use auto, counter, buffer or poll:TIME",
    );
    expect_rejection(&["--method", "poll:0"], "method 'poll:0' is unknown");
    expect_rejection(
        &["--window", "phase:"],
        "use run, progress, phase:NAME or steady",
    );
    expect_rejection(
        &["--window", "run", "--iterations", "5"],
        "they cannot be combined with --window run",
    );
    expect_rejection(&["--progress", "("], "invalid pattern `(`");
    expect_rejection(
        &["--progress", r"(\d+) of (\d+)"],
        "name the group that contains the number",
    );
    expect_rejection(&["--runs", "0"], "0 is not in 1..=10000");
    expect_rejection(
        &["--device", "7"],
        "device 7: there is no GPU `7`; the GPUs here are 0 (GPU-",
    );
    expect_rejection(&["--device", "0,0"], "`0` is given twice");
    expect_rejection(
        &["--export-json", "/no/such/folder/x"],
        "cannot write /no/such/folder/x",
    );
    expect_rejection(&["--export-samples", "/"], "it is a folder");
    expect_rejection(
        &["--export-json", "-", "--export-csv", "-"],
        "two documents cannot be written to standard output",
    );
    expect_rejection(
        &["--prepare", "exit 3"],
        "the command that prepares each run failed (exit status: 3)",
    );
    let output = command(&host, &["--", "touch", ran.to_str().unwrap()])
        .env("SWEETSPOT_NVML", "/no/such/library")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
    assert!(!ran.exists());
}

#[test]
fn the_document_is_complete_and_alone_on_standard_output() {
    let host = TestHost::new("v100:2");
    let run = workload("resnet50", "1");
    let script = [&["--idle"], words(&run).as_slice()].concat();
    let (document, output) = json(&host, &script);
    assert!(text(&output.stderr).contains("done: "), "{output:?}");
    assert_eq!(document["schema"], "sweetspot.run/1");
    assert_eq!(document["exit_code"], 0);
    assert_eq!(document["command"][1], "sim-workload");
    assert_eq!(document["window"], "run");
    assert_eq!(document["machine"]["simulated"], true);
    for key in ["kernel", "driver", "sweetspot", "processors"] {
        assert!(!document["machine"][key].is_null(), "{key}: {document}");
    }
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    for device in devices {
        let (low, high) = (&device["interval95_j"][0], &device["interval95_j"][1]);
        let energy = number(&device["energy_j"]);
        assert!(number(low) <= energy && energy <= number(high), "{device}");
        assert!(
            device["uuid"].as_str().unwrap().starts_with("GPU-"),
            "{device}"
        );
        assert!(
            device["method"].is_string() && device["checks"].is_array(),
            "{device}"
        );
        assert!(
            device.get("missing").is_none() && device.get("covered_s").is_none(),
            "{device}"
        );
    }
    let sum: f64 = devices
        .iter()
        .map(|device| number(&device["energy_j"]))
        .sum();
    assert!(
        (number(&document["energy_j"]) / sum - 1.0).abs() < 1e-9,
        "{document}"
    );
    // The energy above idle does not contain the idle power.
    let idle = number(&document["idle"]["energy_j"]) / number(&document["idle"]["time_s"]);
    assert!((75.0..90.0).contains(&idle), "{idle} W");
    let above = sum - idle * number(&document["time_s"]);
    assert!(
        (number(&document["above_idle"]["energy_j"]) - above).abs() < 0.01 * sum,
        "{document}"
    );
    assert!(warnings(&document).is_empty(), "{document}");
}

#[test]
fn a_failed_write_is_reported_and_others_succeed() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("a.csv").to_string_lossy().into_owned();
    let output = measure(
        &host,
        &[
            "--export-json",
            "/dev/full",
            "--export-csv",
            &csv,
            "--",
            "sleep",
            "0.05",
        ],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("NVIDIA H200"), "{output:?}");
    let message = text(&output.stderr);
    assert!(
        message.starts_with("sweetspot: cannot write /dev/full: No space left"),
        "{message}"
    );
    let lines = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(lines.lines().count(), 3, "{lines}");
    std::fs::remove_file(&csv).unwrap();
    // A closed pipe prevents neither the document nor the exit code of the command.
    let args = [&["--export-csv", &csv], shell("exit 5").as_slice()].concat();
    let mut child = start_measure(&host, &args);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(Path::new(&csv).exists());
}

#[test]
fn input_and_arguments_of_the_command_are_unchanged() {
    let host = TestHost::new("nvidia_h200");
    let mut child = command(&host, &["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .env("SWEETSPOT_READ_ONLY", "1")
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"for the command\n").unwrap();
    let shown = text(&child.wait_with_output().unwrap().stdout);
    assert!(shown.starts_with("for the command\n\ncat: "), "{shown}");
    // Without a terminal there is no status line.
    let odd = [
        "--",
        "sh",
        "-c",
        "echo \"$1\"\n sleep 0.5",
        "sh",
        "ä 'b'  \"c\"",
    ];
    let output = measure(&host, &odd);
    let shown = text(&output.stdout);
    let expected = "ä 'b'  \"c\"\n\nsh -c 'echo \"$1\" sleep 0.5' sh 'ä '\\''b'\\'' \"c\"': ";
    assert!(shown.starts_with(expected), "{shown}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn devices_are_chosen_by_index_and_uuid() {
    let host = TestHost::new("v100,gtx_2080ti");
    let chosen = |device: &str| -> Vec<String> {
        let (document, _) = json(&host, &["--device", device, "--", "true"]);
        let devices = document["devices"].as_array().unwrap();
        devices
            .iter()
            .map(|one| one["uuid"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = chosen("all");
    assert_eq!(all.len(), 2);
    assert_eq!(chosen("1"), [all[1].as_str()]);
    assert_eq!(chosen(&all[0]), [all[0].as_str()]);
    assert_eq!(chosen(&format!("{},{}", all[1], all[0])).len(), 2);
}
