//! Memory clocks of a board that cannot lock them: they are set by an offset, and the earlier offset is restored.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sweetspot_quantity::Megahertz;
use sweetspot_sim_host::Host;

use super::failures::{guard_of, kill, kill_client_and_guard, wait_for_command};
use super::{run, text};
use crate::common::{own_group, sweetspot};
use crate::host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The longest wait for a setting to change; an idle machine needs milliseconds.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The memory clock of the GPU.
fn memory_clock(host: &TestHost) -> f64 {
    let shared = Host::open(host.folder()).unwrap();
    shared.gpus()[0]
        .with_gpu(|gpu| gpu.memory_clock().get())
        .unwrap()
}

/// A host whose user has lowered the memory clock from 6800 to 6600 MHz.
fn host_with_offset() -> TestHost {
    let host = TestHost::new("gtx_2080ti");
    let shared = Host::open(host.folder()).unwrap();
    shared.gpus()[0]
        .with_gpu(|gpu| gpu.set_memory_clock_offset(Megahertz::new(-200.0)))
        .unwrap()
        .unwrap();
    assert_eq!(memory_clock(&host), 6600.0);
    host
}

fn wait_for_clock(host: &TestHost, megahertz: f64) {
    let begin = Instant::now();
    while memory_clock(host) != megahertz {
        let now = memory_clock(host);
        assert!(begin.elapsed() < LONGEST_WAIT, "it is still {now} MHz");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a run at 5800 MHz and waits until the clock is in force.
fn running(host: &TestHost) -> Child {
    let mut command = host.sweetspot();
    command
        .args(["run", "--memory-clock", "5800MHz", "--", "sleep", "20"])
        .stderr(Stdio::null());
    let child = own_group(&mut command).spawn().unwrap();
    wait_for_clock(host, 5800.0);
    wait_for_command(&child);
    child
}

#[test]
fn a_run_sets_the_offset_and_restores_the_earlier_one() {
    let host = host_with_offset();
    let script = format!("{PROGRAM} devices --export-json -; exit 7");
    let output = run(
        &host,
        &["--memory-clock", "5800MHz", "--", "sh", "-c", &script],
    );
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let devices: Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = &devices["devices"][0];
    let expected = serde_json::json!({"min": 5800.0, "max": 7300.0, "default": 6800.0});
    assert_eq!(device["memory_clock_range_mhz"], expected);
    assert_eq!(device["memory_clocks_mhz"], Value::Null);
    let sensors = device["sensors"].as_array().unwrap();
    let clock = sensors.iter().find(|one| one["kind"] == "memory-clock");
    assert_eq!(clock.unwrap()["clock_mhz"], 5800.0, "{device}");
    assert_eq!(
        host.writes(),
        "gpu0 memory_clock_offset -2000 MHz\ngpu0 memory_clock_offset -400 MHz\n"
    );
    assert_eq!(memory_clock(&host), 6600.0);
    let shown = host.sweetspot().arg("devices").output().unwrap();
    let shown = text(&shown.stdout);
    let line = "  memory clocks: 5800 MHz to 7300 MHz, 6800 MHz by default\n";
    assert!(shown.contains(line), "{shown}");
}

#[test]
fn read_only_mode_and_unsupported_clocks_write_nothing() {
    let host = host_with_offset();
    let rejections: [(&[&str], &str); 3] = [
        (&["--read-only", "--memory-clock", "5800"], "read-only"),
        (
            &["--memory-clock", "5799"],
            "memory clock 5799 MHz is not supported: choose 5800 MHz to 7300 MHz",
        ),
        (&["--memory-clock", "7301"], "choose 5800 MHz to 7300 MHz"),
    ];
    for (args, expected) in rejections {
        let output = run(&host, &[args, &["--", "true"]].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = host.sweetspot();
    sweep
        .args(["sweep", "--memory-clock", "5800,6800", "--study", "st"])
        .args(["--", "true"])
        .env("SWEETSPOT_READ_ONLY", "1")
        .current_dir(folder.path());
    let output = sweep.output().unwrap();
    let message = text(&output.stderr);
    assert!(!output.status.success(), "{message}");
    assert!(message.contains("read-only mode forbids"), "{message}");
    assert_eq!(host.writes(), "");
    assert_eq!(memory_clock(&host), 6600.0);
}

#[test]
fn the_offset_is_restored_if_the_client_is_killed() {
    let host = host_with_offset();
    for signal in ["-KILL", "-TERM", "-INT"] {
        let mut client = running(&host);
        kill(signal, &client.id().to_string());
        wait_for_clock(&host, 6600.0);
        client.wait().unwrap();
    }
}

#[test]
fn the_offset_is_restored_if_the_guard_is_killed() {
    let host = host_with_offset();
    let mut client = running(&host);
    kill("-KILL", &guard_of(&client));
    assert_eq!(client.wait().unwrap().code(), Some(125));
    assert_eq!(memory_clock(&host), 6600.0);
}

#[test]
fn the_journal_knows_the_earlier_offset_if_client_and_guard_are_killed() {
    let host = host_with_offset();
    let mut client = running(&host);
    kill_client_and_guard(&mut client);
    assert_eq!(memory_clock(&host), 5800.0);
    // The kernel frees the guard's lock a moment after the process has ended.
    let restore = || {
        let output = host.sweetspot().arg("restore").output().unwrap();
        text(&output.stdout).contains("are now restored")
    };
    let begin = Instant::now();
    while !restore() {
        assert!(begin.elapsed() < LONGEST_WAIT, "it cannot be restored");
    }
    assert_eq!(memory_clock(&host), 6600.0);
}

#[test]
fn all_memory_clocks_of_a_range_are_every_100_mhz() {
    let host = TestHost::new("gtx_2080ti");
    let mut sweep = host.sweetspot();
    sweep.args(["sweep", "--memory-clock", "all", "--dry-run", "--", "true"]);
    let output = sweep.output().unwrap();
    let shown = text(&output.stdout);
    assert!(
        shown.contains("memory_clock_mhz: 16 (5800, 5900 ... 7300)"),
        "{shown}"
    );
    assert_eq!(host.writes(), "");
}

#[test]
fn a_sweep_over_the_memory_clocks_of_dvfs_2019_restores_the_offset() {
    let host = host_with_offset();
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = host.sweetspot();
    sweep
        .args(["sweep", "--memory-clock", "5800,6300,6800,7300"])
        .args(["--settle", "100ms", "--study", "st", "--", PROGRAM])
        .args(["sim-workload", "--network", "resnet50", "--items", "200"])
        .current_dir(folder.path());
    let output = sweep.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(memory_clock(&host), 6600.0);
    let mut written: Vec<String> = host.writes().lines().map(str::to_owned).collect();
    assert_eq!(
        written.pop().as_deref(),
        Some("gpu0 memory_clock_offset -400 MHz")
    );
    for offset in [-2000, -1000, 0, 1000] {
        let line = format!("gpu0 memory_clock_offset {offset} MHz");
        assert!(written.contains(&line), "{line}: {written:?}");
    }
    let export = ["study", "export", "st", "--export-json", "-"];
    let study = sweetspot(folder.path(), &export);
    let study: Value = serde_json::from_slice(&study.stdout).unwrap();
    let points = study["points"].as_array().unwrap();
    let clocks: Vec<f64> = points
        .iter()
        .filter(|point| point["status"] == "ok")
        .map(|point| point["settings"]["memory_clock_mhz"].as_f64().unwrap())
        .collect();
    assert_eq!(clocks, [5800.0, 6300.0, 6800.0, 7300.0]);
}
