//! Rejected writes, lost GPUs, killed guards and clients.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{cap, run, text};
use crate::common::own_group;
use crate::host::TestHost;
use sweetspot_quantity::Megahertz;
use sweetspot_sim_host::Host;

/// Writes the profile of a V100 with a fault, or of another generation.
fn odd_gpu(folder: &Path, from: &str, to: &str, more: &str) -> String {
    let v100 = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
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
    wait_for_command(&child);
    child
}

/// Waits until the guard of a client has started `sleep`. Until the new process executes the command, it holds the files
/// and locks of the guard.
pub(super) fn wait_for_command(client: &Child) {
    let is_started = |child: &str| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep")
    };
    while !children(&guard_of(client)).split(' ').any(is_started) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn children(pid: &str) -> String {
    let path = format!("/proc/{pid}/task/{pid}/children");
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

pub(super) fn guard_of(client: &Child) -> String {
    children(&client.id().to_string())
}

pub(super) fn kill(signal: &str, pid: &str) {
    assert!(
        Command::new("kill")
            .args([signal, pid])
            .status()
            .unwrap()
            .success()
    );
}

/// Kills a client and its guard, so that neither can restore anything.
pub(super) fn kill_client_and_guard(client: &mut Child) {
    // The client is stopped first, so that it cannot start another guard.
    let guard = guard_of(client);
    kill("-STOP", &client.id().to_string());
    kill("-9", &guard);
    while is_alive(&guard) {
        std::thread::sleep(Duration::from_millis(5));
    }
    client.kill().unwrap();
    client.wait().unwrap();
}

/// Whether a process still runs: a killed one takes a moment to end, and keeps its locks until then.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z")
}

#[test]
fn a_rejected_write_leaves_nothing_to_restore() {
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
    let shown = text(&restore.stdout);
    assert!(
        shown.starts_with("nothing to restore: no setting was left changed\n"),
        "{shown}"
    );
}

#[test]
fn a_gpu_lost_during_the_run_is_reported_and_remembered() {
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
        message.contains("its settings could not be restored: try `sweetspot restore`"),
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
fn application_clocks_are_restored() {
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
        .with_gpu(|gpu| gpu.set_application_clocks(set))
        .unwrap()
        .unwrap();
    let output = run(&host, &["--core-clock", "1200MHz", "--", "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(
        host.writes(),
        "gpu0 application_clocks 877 1200 MHz\ngpu0 application_clocks 877 1005 MHz\n"
    );
    // A Pascal GPU has no energy counter, so none is shown, not even as 0.
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
        message.contains("the guard process ended unexpectedly")
            && message.contains("are now restored"),
        "{message}"
    );
    assert_eq!(cap(&host), 240.0);
    // Signals alone do not end a guard.
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
fn a_program_that_was_deleted_still_restores() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("sweetspot");
    std::fs::copy(env!("CARGO_BIN_EXE_sweetspot"), &copy).unwrap();
    let mut command = host.command(copy.to_str().unwrap());
    command
        .args(["run", "--power-cap", "200", "--", "sleep", "20"])
        .stderr(Stdio::piped());
    let client = own_group(&mut command).spawn().unwrap();
    while cap(&host) != 200.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::remove_file(&copy).unwrap();
    kill("-9", &guard_of(&client));
    let output = client.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert!(message.contains("are now restored"), "{message}");
    assert_eq!(cap(&host), 300.0);
}

#[test]
fn one_lost_gpu_leaves_the_others_usable() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[fault]]\nkind = \"lost\"\nafter = \"0 s\"";
    let host = TestHost::new(&format!("{},v100", odd_gpu(folder.path(), "", "", fault)));
    let devices = host.sweetspot().arg("devices").output().unwrap();
    assert_eq!(devices.status.code(), Some(1), "{devices:?}");
    assert!(text(&devices.stdout).contains("Tesla V100"), "{devices:?}");
    assert!(text(&devices.stderr).contains("GPU 0 (Tesla V100-SXM2-16GB) is lost"));
    for verb in [&["measure"][..], &["run", "--power-cap", "200"]] {
        let mut command = host.sweetspot();
        command.args(verb).args(["--device", "1", "--", "true"]);
        assert_eq!(command.output().unwrap().status.code(), Some(0), "{verb:?}");
    }
    let all = host
        .sweetspot()
        .args(["measure", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(all.status.code(), Some(125), "{all:?}");
}

#[test]
fn settings_left_by_guard_and_client_are_reported_and_restored() {
    let host = TestHost::new("v100");
    host.set_cap(0, 240.0);
    let mut client = running(&host, "200");
    kill_client_and_guard(&mut client);
    assert_eq!(cap(&host), 200.0);
    // The kernel frees the guard's lock when its last thread is gone, a moment after the process itself.
    let is_reported = || {
        let list = host.sweetspot().args(["simulate", "--list"]).output();
        text(&list.unwrap().stderr).contains("was left changed by process")
    };
    assert!((0..100).any(|_| is_reported()));
    // A damaged journal does not prevent the others from being restored.
    std::fs::write(host.folder().join("guard/GPU-x.journal"), "{ half").unwrap();
    let restored = host.sweetspot().arg("restore").output().unwrap();
    assert_eq!(restored.status.code(), Some(1));
    assert!(
        text(&restored.stdout).contains("are now restored"),
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
    let shown = text(&again.stdout);
    assert!(
        shown.starts_with("nothing to restore: no setting was left changed\n"),
        "{shown}"
    );
}

#[test]
fn a_signal_during_startup_gives_its_exit_code_and_no_message() {
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
        // Before the handlers are installed, the signal itself ends the process.
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
