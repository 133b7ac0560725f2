//! `--log LEVEL` and `SWEETSPOT_LOG`: the contents of the log, and no log without them.

use std::fs::File;
use std::process::Output;

use crate::common::{sweetspot, text};
use crate::host::TestHost;

/// A run at a cap, whose command prints the variable of the log level.
const RUN: [&str; 6] = [
    "--power-cap",
    "180W",
    "--",
    "sh",
    "-c",
    "echo \"log: ${SWEETSPOT_LOG-unset}\"",
];

fn run(host: &TestHost, flags: &[&str], variable: Option<&str>) -> Output {
    let mut command = host.sweetspot();
    command.arg("run").args(flags).args(RUN);
    match variable {
        Some(level) => command.env("SWEETSPOT_LOG", level),
        None => command.env_remove("SWEETSPOT_LOG"),
    };
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

fn line_with<'a>(log: &'a str, words: &[&str]) -> &'a str {
    let found = log
        .lines()
        .find(|line| words.iter().all(|word| line.contains(word)));
    found.unwrap_or_else(|| panic!("no line with {words:?} in\n{log}"))
}

/// The process id in a line of the log.
fn process(line: &str) -> &str {
    line.split(['[', ']']).nth(1).unwrap()
}

#[test]
fn the_library_and_each_write_are_logged() {
    let host = TestHost::new("v100");
    let output = run(&host, &["--log", "debug"], None);
    assert_eq!(text(&output.stdout), "log: unset\n");
    let log = text(&output.stderr);
    let opened = line_with(
        &log,
        &["NVML library opened", "libnvidia-ml.so.1", "driver="],
    );
    assert!(opened.contains("path=\"/"), "{opened}");
    let at = |cap: &str| {
        let read_back = format!("read_back={cap}");
        line_with(
            &log,
            &["power cap written", &format!("written={cap}"), &read_back],
        )
    };
    let (set, restored) = (at("180 W"), at("300 W"));
    assert!(set.contains("device=GPU-"), "{set}");
    assert_eq!(process(set), process(restored));
    let finished = log.lines().rfind(|line| line.contains("finished"));
    assert!(finished.unwrap().contains("code=0"), "{log}");
    // Only the guard writes to devices, and it logs to the same standard error.
    let started = line_with(&log, &["started", "\"run\""]);
    assert_ne!(process(started), process(set));
    for line in log.lines() {
        let time = line.split(' ').next().unwrap();
        assert_eq!(time.len(), "2026-01-01T00:00:00.000Z".len(), "{line}");
        assert!(time.ends_with('Z'), "{line}");
    }
}

#[test]
fn the_flag_overrides_the_variable() {
    let host = TestHost::new("v100");
    let output = run(&host, &[], Some("info"));
    let log = text(&output.stderr);
    line_with(&log, &["power cap written", "written=180 W"]);
    assert!(!log.contains("DEBUG"), "{log}");
    assert_eq!(text(&output.stdout), "log: info\n");
    let output = run(&host, &["--log", "off"], Some("trace"));
    assert_eq!(text(&output.stderr), "");
    // The command still sees the variable that the user set.
    assert_eq!(text(&output.stdout), "log: trace\n");
    let output = run(&host, &["--log", "debug"], Some(""));
    line_with(&text(&output.stderr), &["power cap written"]);
}

#[test]
fn nothing_is_logged_by_default() {
    let host = TestHost::new("v100");
    let output = run(&host, &[], None);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(text(&output.stdout), "log: unset\n");
}

#[test]
fn studies_sensors_and_the_link_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let line = "--simulate v100 --network resnet50 --power-cap 150,300 --repeat 1 --study kept";
    let args = [
        &["sweep", "--log", "debug"],
        &crate::common::words(line)[..],
    ]
    .concat();
    let output = sweetspot(folder.path(), &args);
    let log = text(&output.stderr);
    line_with(&log, &["study opened", "kept", "writable=true"]);
    line_with(&log, &["runs committed", "ok=true"]);
    let host = TestHost::new("nvidia_h200");
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let output = host
        .sweetspot()
        .args(["--log", "debug", "measure", "--export-json", "-", "--"])
        .args([program, "sim-workload", "--network", "resnet50", "--infer"])
        .args(["--seconds", "1"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    let log = text(&output.stderr);
    line_with(
        &log,
        &["power sensors chosen", "counter=true", "buffer=true"],
    );
    line_with(&log, &["ring opened", "pid"]);
    line_with(
        &log,
        &["document written", "JSON", "standard output", "ok=true"],
    );
}

#[test]
fn an_unknown_level_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "`loud` is not a log level: use off, error, warn, info, debug or trace";
    let output = sweetspot(folder.path(), &["devices", "--log", "loud"]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(expected), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let host = TestHost::new("v100");
    let output = host
        .sweetspot()
        .env("SWEETSPOT_LOG", "loud")
        .args(["run", "--power-cap", "180W", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        text(&output.stderr),
        format!("sweetspot: SWEETSPOT_LOG: {expected}\n")
    );
    assert_eq!(host.writes(), "");
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_run() {
    let host = TestHost::new("v100");
    let mut command = host.sweetspot();
    let full = File::create("/dev/full").unwrap();
    let output = command
        .args(["run", "--log", "trace", "--measure"])
        .args(RUN)
        .stderr(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text(&output.stdout).starts_with("log: unset\n"));
}
