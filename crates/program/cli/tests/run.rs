//! `sweetspot run` on simulated GPUs: what is written, what comes back, what is refused.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::own_group;
use crate::host::TestHost;
use sweetspot_quantity::Megahertz;
use sweetspot_sim_host::Host;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run(host: &TestHost, args: &[&str]) -> Output {
    host.sweetspot().arg("run").args(args).output().unwrap()
}

fn cap(host: &TestHost) -> f64 {
    let shared = Host::open(host.folder()).unwrap();
    shared.gpus()[0].look(|gpu| gpu.power_cap().get()).unwrap()
}

#[test]
fn the_writes_of_a_run_in_order() {
    let host = TestHost::new("v100:2");
    host.set_cap(0, 250.0);
    let output = run(
        &host,
        &[
            "--power-cap",
            "180W",
            "--core-clock",
            "1200MHz",
            "--",
            "true",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    snapbox::assert_data_eq!(
        host.writes(),
        snapbox::file!["snapshots/run-writes.txt"].raw()
    );
    assert_eq!(cap(&host), 250.0);
    let journals = std::fs::read_dir(host.folder().join("guard")).unwrap();
    let left = journals.filter(|file| {
        file.as_ref()
            .unwrap()
            .path()
            .extension()
            .is_some_and(|e| e != "lock")
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn the_command_runs_at_the_setting_and_its_code_comes_back() {
    let host = TestHost::new("v100");
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let script = format!("{program} devices --export-json -; exit 7");
    let output = run(&host, &["--power-cap", "190", "--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7));
    let devices: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(devices["devices"][0]["power_cap_w"]["requested"], 190.0);
    assert_eq!(devices["devices"][0]["power_cap_w"]["default"], 300.0);
    assert_eq!(cap(&host), 300.0);
    let output = run(
        &host,
        &["--power-cap", "190", "--", "sh", "-c", "kill -9 $$"],
    );
    assert_eq!(output.status.code(), Some(128 + 9));
}

#[test]
fn a_command_that_ends_at_once_is_no_surprise() {
    let host = TestHost::new("v100");
    for number in 0..40 {
        let output = run(&host, &["--power-cap", "190", "--", "false"]);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{number}: {}",
            text(&output.stderr)
        );
    }
    assert_eq!(cap(&host), 300.0);
}

#[test]
fn wrong_input_is_refused_before_anything_is_written() {
    let host = TestHost::new("v100");
    let refused = |args: &[&str], code: i32, expected: &str| {
        let output = run(&host, args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    refused(
        &["--power-cap", "90", "--", "true"],
        125,
        "power cap 90 W is not offered: it goes from 150 W to 300 W",
    );
    refused(
        &["--core-clock", "1000", "--", "true"],
        125,
        "the nearest are 997 MHz and 1005 MHz",
    );
    refused(
        &["--memory-clock", "877", "--", "true"],
        125,
        "it has no memory clock that can be set",
    );
    refused(
        &["--device", "3", "--power-cap", "200", "--", "true"],
        125,
        "there is no GPU `3`; the GPUs here are 0 (GPU-",
    );
    refused(&["--", "true"], 125, "nothing to set");
    refused(
        &["--read-only", "--power-cap", "200", "--", "true"],
        125,
        "read-only",
    );
    refused(
        &["--power-cap", "200J", "--", "true"],
        125,
        "`200J` is not a power",
    );
    refused(
        &["--power-cap", "200", "--", "/no/such/program"],
        127,
        "cannot run /no/such/program",
    );
    assert_eq!(cap(&host), 300.0);
    let caps: Vec<String> = host.writes().lines().map(str::to_owned).collect();
    // Only the last of them got as far as a guard, which put things back.
    assert_eq!(
        caps,
        ["gpu0 power_cap 200000 mW", "gpu0 power_cap 300000 mW"]
    );
}

#[test]
fn no_library_no_driver_no_gpu() {
    let run = |library: &str| {
        Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["run", "--power-cap", "200", "--", "true"])
            .env("SWEETSPOT_NVML", library)
            .env_remove("SWEETSPOT_SIM")
            .output()
            .unwrap()
    };
    let missing = run("/no/such/lib.so");
    assert_eq!(missing.status.code(), Some(125));
    assert!(
        text(&missing.stderr).contains("cannot load NVIDIA's management library /no/such/lib.so")
    );
    let broken = run("/etc/hostname");
    assert_eq!(broken.status.code(), Some(125));
    let host = TestHost::new("v100");
    let no_driver = host
        .sweetspot()
        .args(["devices"])
        .env_remove("SWEETSPOT_SIM")
        .output()
        .unwrap();
    assert_eq!(no_driver.status.code(), Some(2));
    assert!(
        text(&no_driver.stderr).contains("driver is not loaded"),
        "{}",
        text(&no_driver.stderr)
    );
}

#[test]
fn the_devices_that_are_meant_are_set_and_no_others() {
    let host = TestHost::new("v100:3");
    let uuids: Vec<String> = Host::open(host.folder())
        .unwrap()
        .gpus()
        .iter()
        .map(|gpu| gpu.uuid())
        .collect();
    let set = |device: Option<&str>, visible: Option<&str>| {
        let mut command = host.sweetspot();
        command.args(["run", "--power-cap", "200"]);
        device.map(|device| command.args(["--device", device]));
        visible.map(|visible| command.env("CUDA_VISIBLE_DEVICES", visible));
        let before = host.writes().len();
        let output = command.args(["--", "true"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let log = host.writes()[before..].to_owned();
        let set = log.lines().filter(|line| line.contains("200000"));
        set.map(|line| line[..4].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(set(None, None), ["gpu0", "gpu1", "gpu2"]);
    assert_eq!(set(Some("1"), None), ["gpu1"]);
    assert_eq!(set(Some("2,0"), None), ["gpu2", "gpu0"]);
    assert_eq!(set(Some(&uuids[1]), Some("0")), ["gpu1"]);
    assert_eq!(set(None, Some("2")), ["gpu2"]);
    assert_eq!(set(None, Some(&uuids[0][..12])), ["gpu0"]);
    // CUDA ends its list at the first name it does not know.
    assert_eq!(set(None, Some("1,9,0")), ["gpu1"]);
    assert_eq!(set(Some("all"), Some("1")), ["gpu0", "gpu1", "gpu2"]);
}

#[test]
fn one_writer_at_a_time_and_the_second_is_told_who() {
    let host = TestHost::new("v100");
    let mut first = host
        .sweetspot()
        .args(["run", "--power-cap", "200", "--", "sleep", "20"])
        .spawn()
        .unwrap();
    while cap(&host) != 200.0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = run(&host, &["--power-cap", "250", "--", "true"]);
    assert_eq!(second.status.code(), Some(125));
    let message = text(&second.stderr);
    assert!(
        message.contains(&format!("is held by process {}", first.id())),
        "{message}"
    );
    assert!(
        message.contains("run --power-cap 200 -- sleep 20"),
        "{message}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
}

/// A V100 with something wrong about it, or of another generation.
fn odd_gpu(folder: &Path, from: &str, to: &str, more: &str) -> String {
    let v100 = include_str!("../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let path = folder.join("gpu.toml");
    std::fs::write(&path, format!("{}\n{more}\n", v100.replace(from, to))).unwrap();
    path.to_string_lossy().into_owned()
}

/// Starts a run and waits until its setting is in force.
fn running(host: &TestHost, watts: &str) -> Child {
    let mut command = host.sweetspot();
    command
        .args(["run", "--power-cap", watts, "--", "sleep", "20"])
        .stderr(Stdio::piped());
    let child = own_group(&mut command).spawn().unwrap();
    while cap(host) != watts.parse::<f64>().unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Until the command is the program that was asked for, it holds what the guard holds.
    let is_started = |child: &str| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep")
    };
    while !children(&guard_of(&child)).split(' ').any(is_started) {
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn children(pid: &str) -> String {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

fn guard_of(client: &Child) -> String {
    children(&client.id().to_string())
}

fn kill(signal: &str, pid: &str) {
    assert!(
        Command::new("kill")
            .args([signal, pid])
            .status()
            .unwrap()
            .success()
    );
}

/// A killed process takes a moment to go, and keeps its locks until then.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

#[test]
fn a_write_that_is_refused_leaves_nothing_to_restore() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"";
    let host = TestHost::new(&odd_gpu(folder.path(), "", "", fault));
    let output = run(
        &host,
        &["--power-cap", "200", "--core-clock", "1200", "--", "true"],
    );
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(
        text(&output.stderr),
        "sweetspot: Tesla V100-SXM2-16GB: no permission to set power cap: it needs root\n"
    );
    assert_eq!(
        host.writes(),
        "gpu0 lock_core_clock 1200 1200 MHz\ngpu0 reset_core_clock\n"
    );
    let restore = host.sweetspot().arg("restore").output().unwrap();
    assert_eq!(text(&restore.stdout), "nothing was left changed\n");
}

#[test]
fn a_gpu_lost_in_the_middle_is_told_and_not_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = \"lost\"\nafter = \"1.5 s\"";
    let host = TestHost::new(&odd_gpu(folder.path(), "", "", fault));
    let output = run(&host, &["--power-cap", "200", "--", "sleep", "2"]);
    let message = text(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the command went well, restoring did not: {message}"
    );
    assert!(
        message.contains("its settings could not be put back: try `sweetspot restore`"),
        "{message}"
    );
    let doctor = host.sweetspot().arg("doctor").output().unwrap();
    assert!(
        text(&doctor.stderr).contains("was left changed by"),
        "{}",
        text(&doctor.stderr)
    );
    assert!(
        text(&doctor.stdout).contains("fail  GPU 0 is lost"),
        "{}",
        text(&doctor.stdout)
    );
    let devices = host.sweetspot().arg("devices").output().unwrap();
    assert_eq!(devices.status.code(), Some(2));
    assert!(
        text(&devices.stderr).contains("the device is lost"),
        "{}",
        text(&devices.stderr)
    );
}

#[test]
fn application_clocks_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let pascal = odd_gpu(
        folder.path(),
        "sensors = \"volta\"",
        "sensors = \"pascal\"",
        "",
    );
    let host = TestHost::new(&pascal);
    let shared = Host::open(host.folder()).unwrap();
    let set = Some((Megahertz::new(877.0), Megahertz::new(1005.0)));
    shared.gpus()[0]
        .look(|gpu| gpu.set_application_clocks(set))
        .unwrap()
        .unwrap();
    let output = run(&host, &["--core-clock", "1200MHz", "--", "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        host.writes(),
        "gpu0 application_clocks 877 1200 MHz\ngpu0 application_clocks 877 1005 MHz\n"
    );
    // A Pascal has no energy counter: it is not shown, and not as 0.
    let devices = host.sweetspot().arg("devices").output().unwrap();
    assert!(
        !text(&devices.stdout).contains("energy counter"),
        "{}",
        text(&devices.stdout)
    );
}

#[test]
fn a_guard_that_is_killed_is_replaced() {
    let host = TestHost::new("v100");
    host.set_cap(0, 240.0);
    let client = running(&host, "200");
    kill("-9", &guard_of(&client));
    let output = client.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(
        message.contains("the guard is gone") && message.contains("it is as before now"),
        "{message}"
    );
    assert_eq!(cap(&host), 240.0);
    // Signals alone do not make a guard go.
    let client = running(&host, "200");
    for signal in ["-USR1", "-TERM", "-INT", "-HUP"] {
        kill(signal, &guard_of(&client));
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(cap(&host), 200.0);
    kill("-TERM", &client.id().to_string());
    assert_eq!(
        client.wait_with_output().unwrap().status.code(),
        Some(128 + 15)
    );
    assert_eq!(cap(&host), 240.0);
}

#[test]
fn what_guard_and_client_left_is_said_and_restored() {
    let host = TestHost::new("v100");
    host.set_cap(0, 240.0);
    let mut client = running(&host, "200");
    // Both at once: the client is stopped, so that it cannot start another guard.
    let guard = guard_of(&client);
    kill("-STOP", &client.id().to_string());
    kill("-9", &guard);
    while is_alive(&guard) {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.kill().unwrap();
    client.wait().unwrap();
    assert_eq!(cap(&host), 200.0);
    let said = host
        .sweetspot()
        .args(["simulate", "--list"])
        .output()
        .unwrap();
    assert!(
        text(&said.stderr).contains("was left changed by process"),
        "{}",
        text(&said.stderr)
    );
    // A journal that nobody can read does not keep the others from being restored.
    std::fs::write(host.folder().join("guard/GPU-x.journal"), "{ half").unwrap();
    let restored = host.sweetspot().arg("restore").output().unwrap();
    assert_eq!(restored.status.code(), Some(1));
    assert!(
        text(&restored.stdout).contains("it is as before now"),
        "{}",
        text(&restored.stdout)
    );
    assert!(
        text(&restored.stderr).contains("GPU-x.journal is damaged"),
        "{}",
        text(&restored.stderr)
    );
    assert_eq!(cap(&host), 240.0);
    std::fs::remove_file(host.folder().join("guard/GPU-x.journal")).unwrap();
    let again = host.sweetspot().arg("restore").output().unwrap();
    assert_eq!(text(&again.stdout), "nothing was left changed\n");
}

#[test]
fn a_signal_at_any_moment_of_the_start_gives_its_own_code_and_no_noise() {
    let host = TestHost::new("v100:2");
    host.set_cap(0, 240.0);
    for milliseconds in (5..60).step_by(4) {
        let client = host
            .sweetspot()
            .args(["run", "--power-cap", "200", "--", "sleep", "20"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        kill("-TERM", &client.id().to_string());
        let output = client.wait_with_output().unwrap();
        // Before its handlers are there, the signal itself ends the process.
        let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
        let ended = output.status.code().or(signal.map(|signal| 128 + signal));
        assert_eq!(
            ended,
            Some(128 + 15),
            "{milliseconds} ms: {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stderr), "", "{milliseconds} ms");
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(cap(&host), 240.0);
}

#[test]
fn nohup_is_respected() {
    let host = TestHost::new("v100");
    let mut command = host.command("nohup");
    command.args([
        env!("CARGO_BIN_EXE_sweetspot"),
        "run",
        "--power-cap",
        "200",
        "--",
        "sleep",
        "1",
    ]);
    let client = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while cap(&host) != 200.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill("-HUP", &client.id().to_string());
    assert_eq!(client.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(cap(&host), 300.0);
}
