//! After a signal, every wait ends in time.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use sweetspot_sim_host::Host;

use crate::host::TestHost;

fn send_term(pid: u32) {
    let sent = Command::new("kill").arg(pid.to_string()).status();
    assert!(sent.unwrap().success());
}

fn exit_code_within(child: &mut Child, limit: Duration) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            panic!("the program did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn second_signal_ends(verb: &[&str]) {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    // Neither the shell nor its child reacts to the first signal.
    let script = format!("trap '' TERM; touch {}; sleep 61", ready.display());
    let mut child = host
        .sweetspot()
        .args(verb)
        .args(["--", "sh", "-c", &script])
        .env("XDG_STATE_HOME", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !ready.exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    send_term(child.id());
    // A second signal within half a second would count as the same request.
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(child.try_wait().unwrap(), None, "{verb:?}");
    send_term(child.id());
    let code = exit_code_within(&mut child, Duration::from_secs(4));
    assert_eq!(code, Some(128 + 15), "{verb:?}");
    let shared = Host::open(host.folder()).unwrap();
    let cap = shared.gpus()[0].with_gpu(|gpu| gpu.power_cap().get());
    assert_eq!(cap.unwrap(), 300.0, "{verb:?}");
}

#[test]
fn a_second_signal_ends_a_measured_command_that_ignores_the_first() {
    second_signal_ends(&["measure"]);
}

#[test]
fn a_second_signal_ends_a_run_that_ignores_the_first() {
    second_signal_ends(&["run", "--power-cap", "200W"]);
}

#[test]
fn a_second_signal_ends_a_tuned_command_that_ignores_the_first() {
    second_signal_ends(&["tune", "--fresh"]);
}

#[test]
fn a_second_signal_ends_a_held_command_that_ignores_the_first() {
    second_signal_ends(&["hold", "--below", "200W"]);
}

#[test]
fn results_before_a_signal_are_written() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("run.json");
    let mut child = host
        .sweetspot()
        .args(["run", "--power-cap", "200W", "--export-json"])
        .arg(&document)
        .args(["--", "sleep", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(2));
    let sent = Command::new("kill").arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let text = std::fs::read_to_string(&document).unwrap();
    assert!(text.contains("\"energy_j\""), "{text}");
}

/// The work is done and the devices are restored, so a document that waits for its reader must not block a signal.
#[test]
fn a_signal_ends_the_tool_while_a_document_waits_for_its_reader() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut child = host
        .sweetspot()
        .args(["measure", "--export-json"])
        .arg(&pipe)
        .args(["--", "true"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(child.try_wait().unwrap(), None, "nothing reads the pipe");
    send_term(child.id());
    // The signal kills the program, as by default.
    assert_eq!(exit_code_within(&mut child, Duration::from_secs(4)), None);
}

/// Nothing is changed before the guard has started, so nothing needs to be waited for.
#[test]
fn a_signal_ends_the_wait_for_a_guard_that_is_stopped_as_it_starts() {
    let host = TestHost::new("v100");
    let mut child = host
        .sweetspot()
        .args(["run", "--power-cap", "200W", "--", "sleep", "60"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let guard = loop {
        let found = std::fs::read_to_string(&children).unwrap();
        if let Some(guard) = found.split_whitespace().next() {
            break guard.to_owned();
        }
    };
    let stopped = Command::new("kill").args(["-STOP", &guard]).status();
    assert!(stopped.unwrap().success());
    std::thread::sleep(Duration::from_millis(300));
    send_term(child.id());
    // A guard that had started meanwhile is given five seconds to restore.
    let code = exit_code_within(&mut child, Duration::from_secs(9));
    assert_eq!(code, Some(128 + 15));
    let shared = Host::open(host.folder()).unwrap();
    let cap = shared.gpus()[0].with_gpu(|gpu| gpu.power_cap().get());
    assert_eq!(cap.unwrap(), 300.0);
}
