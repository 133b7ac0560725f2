//! What is told, refused and written, and the exit code of each.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::common::{
    begin, command, json, measure, number, shell, text, warnings, words, workload,
};
use crate::host::TestHost;

#[test]
fn the_commands_own_code_comes_back() {
    let host = TestHost::new("nvidia_h200");
    let ends = |args: &[&str], code: i32, expected: &str| {
        let output = measure(&host, args);
        let said = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    ends(
        &["--", "no-such-command"],
        127,
        "sweetspot: cannot run no-such-command: No such file",
    );
    ends(
        &["--", "/etc/passwd"],
        126,
        "sweetspot: cannot run /etc/passwd: Permission denied",
    );
    ends(&shell("exit 7"), 7, "exit code 7");
    ends(&shell("kill -9 $$"), 128 + 9, "ended by signal 9");
    ends(&["--", "sleep", "0.01"], 0, "NVIDIA H200");
    let begun = Instant::now();
    // What it leaves may hold the pipe that is listened to, but not that of this test.
    let leaves = shell("sleep 9 >&- 2>&- & echo gone");
    ends(&leaves, 0, "left processes behind");
    let pattern = [
        "--progress",
        "gone",
        "--",
        "sh",
        "-c",
        "sleep 9 & echo gone",
    ];
    ends(&pattern, 0, "left processes behind");
    assert!(
        begun.elapsed() < Duration::from_secs(7),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn wrong_input_is_refused_in_one_line_before_the_command_runs() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let refused = |args: &[&str], expected: &str| {
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
    refused(
        &["--method", "guess"],
        "use auto, counter, buffer or poll:TIME",
    );
    refused(&["--method", "poll:0"], "method 'poll:0' is unknown");
    refused(&["--window", "phase:"], "use run, progress or phase:NAME");
    refused(
        &["--window", "run", "--iterations", "5"],
        "they cannot go with --window run",
    );
    refused(&["--progress", "("], "invalid pattern `(`");
    refused(
        &["--progress", r"(\d+) of (\d+)"],
        "name the one that counts",
    );
    refused(&["--runs", "0"], "0 is not in 1..=10000");
    refused(
        &["--device", "7"],
        "device 7: there is no GPU `7`; the GPUs here are 0 (GPU-",
    );
    refused(&["--device", "0,0"], "`0` is given twice");
    refused(
        &["--export-json", "/no/such/folder/x"],
        "cannot write /no/such/folder/x",
    );
    refused(&["--export-samples", "/"], "it is a folder");
    refused(
        &["--export-json", "-", "--export-csv", "-"],
        "two documents cannot go to standard output",
    );
    refused(
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
fn the_document_has_its_keys_and_standard_output_to_itself() {
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
    // What an idle GPU draws is not part of what is above that.
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
fn what_cannot_be_saved_is_told_and_the_rest_is_saved() {
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
    // A reader that went away keeps nothing from being saved, nor the code from being passed on.
    let args = [&["--export-csv", &csv], shell("exit 5").as_slice()].concat();
    let mut child = begin(&host, &args);
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    assert!(Path::new(&csv).exists());
}

#[test]
fn the_command_is_left_as_it_is() {
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
    // No terminal: no line that is drawn again and again.
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
