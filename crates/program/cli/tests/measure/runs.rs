//! Several runs, and runs that a signal interrupts.

use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{command, json, number, shell, start_measure, text};
use crate::host::TestHost;

#[test]
fn runs_stop_at_the_first_failure() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count").to_string_lossy().into_owned();
    let script = format!("echo >> {count}; sleep 0.05; [ $(wc -l < {count}) -ne 4 ] || exit 5");
    let (document, output) = json(
        &host,
        &[&["--warmup", "1", "--runs", "5"], shell(&script).as_slice()].concat(),
    );
    assert_eq!(output.status.code(), Some(5));
    let runs = document["runs"].as_array().unwrap();
    let codes: Vec<f64> = runs.iter().map(|run| number(&run["exit_code"])).collect();
    assert_eq!(codes, [0.0, 0.0, 5.0]);
    // The mean is that of the successful runs.
    let mean = (number(&runs[0]["time_s"]) + number(&runs[1]["time_s"])) / 2.0;
    assert!(
        (number(&document["summary"]["time_s"]["mean"]) - mean).abs() < 1e-9,
        "{document}"
    );
    // If the command before a run fails, the earlier runs are shown.
    let once = format!("rm {count}");
    let (document, output) = json(
        &host,
        &["--runs", "2", "--prepare", &once, "--", "sleep", "0.05"],
    );
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("the command that prepares each run failed"),
        "{message}"
    );
    assert!(
        message.contains("the runs before that are shown"),
        "{message}"
    );
    assert!(number(&document["energy_j"]) > 0.0);
    assert!(
        document["stopped"]
            .as_str()
            .unwrap()
            .contains("prepares each run"),
        "{document}"
    );
}

fn signal_and_wait(child: Child, signal: &str, after: Duration) -> (Output, Duration) {
    std::thread::sleep(after);
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap()
            .success()
    );
    let begun = Instant::now();
    (child.wait_with_output().unwrap(), begun.elapsed())
}

#[test]
fn a_signal_ends_the_measurement_and_its_results_are_saved() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let soon = Duration::from_millis(800);
    let (by_term, trapped, at_rest, preparing) = (file("1"), file("2"), file("3"), file("4"));
    let trap = "trap 'exit 0' TERM; sleep 9 >&- 2>&- & wait $!";
    let cases = [
        vec!["--export-json", &by_term, "--", "sleep", "20"],
        vec![
            "--runs",
            "3",
            "--export-json",
            &trapped,
            "--",
            "sh",
            "-c",
            trap,
        ],
        vec!["--idle", "--export-json", &at_rest, "--", "sleep", "20"],
        vec![
            "--prepare",
            "exec sleep 9",
            "--export-json",
            &preparing,
            "--",
            "sleep",
            "20",
        ],
    ];
    let children: Vec<Child> = cases
        .iter()
        .map(|args| start_measure(&host, args))
        .collect();
    std::thread::sleep(soon);
    for (child, args) in children.into_iter().zip(&cases) {
        let (output, took) = signal_and_wait(child, "-TERM", Duration::ZERO);
        assert_eq!(output.status.code(), Some(128 + 15), "{args:?}: {output:?}");
        assert!(took < Duration::from_secs(4), "{args:?}: {took:?}");
        let measured = !matches!(args[0], "--idle" | "--prepare");
        let shown = text(&output.stdout);
        assert_eq!(shown.contains("NVIDIA H200"), measured, "{args:?}: {shown}");
        let nothing = text(&output.stderr).contains("nothing was measured");
        assert_eq!(nothing, !measured, "{args:?}: {output:?}");
    }
    for saved in [by_term, trapped] {
        let document: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
        assert!(number(&document["energy_j"]) > 10.0, "{document}");
    }
    assert!(!Path::new(&at_rest).exists() && !Path::new(&preparing).exists());
    let (output, _) = signal_and_wait(start_measure(&host, &["--", "sleep", "20"]), "-INT", soon);
    assert_eq!(output.status.code(), Some(128 + 2), "{output:?}");
    assert!(
        text(&output.stdout).contains("ended by signal 2"),
        "{output:?}"
    );
}

/// Three million progress lines need no more memory than a few.
#[test]
fn memory_does_not_grow_with_progress_lines() {
    let host = TestHost::new("v100");
    let lines = "yes 'step 1 of 5' | head -n 3000000";
    let mut tool = command(
        &host,
        &["--progress", "step ([0-9]+)", "--", "sh", "-c", lines],
    )
    .stdout(std::process::Stdio::null())
    .stderr(std::process::Stdio::null())
    .spawn()
    .unwrap();
    let status = format!("/proc/{}/status", tool.id());
    let mut peak = 0;
    while tool.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let found = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let found = found.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(found.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(tool.wait().unwrap().success());
    assert!((1_000..100_000).contains(&peak), "{peak} kB");
}
