//! Every wait has an end once a signal has come, and nothing that a command started outlives it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::host::TestHost;
use sweetspot_sim_host::Host;

/// Longer than any wait may take; shorter than what the commands sleep.
const SOON: Duration = Duration::from_secs(15);

fn start(host: &TestHost, args: &[&str], script: &str) -> Child {
    let mut command = host.sweetspot();
    command
        .args(args)
        .args(["--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_there() {
        assert!(begun.elapsed() < SOON, "{what} takes too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn exit_within(child: &mut Child, limit: Duration) -> i32 {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if begun.elapsed() > limit {
            let _ = child.kill();
            panic!("the program did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes whose command line has this in it.
fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line)
            .replace('\0', " ")
            .contains(text)
        {
            found.push(pid);
        }
    }
    found
}

fn guard_of(pid: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    children.split_whitespace().find_map(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).ok()?;
        let is_guard = line.split(|byte| *byte == 0).nth(1) == Some(b"guard");
        is_guard.then(|| child.parse().ok())?
    })
}

fn cap(host: &TestHost) -> f64 {
    let host = Host::open(host.folder()).unwrap();
    let cap = host.gpus()[0].look(|gpu| gpu.power_cap().get());
    cap.unwrap()
}

/// A file that the command makes when it is ready for a signal.
fn ready() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ready");
    (folder, file)
}

const VERBS: [&[&str]; 3] = [
    &["measure"],
    &["run", "--power-cap", "200W"],
    &["tune", "--fresh"],
];

#[test]
fn a_second_signal_ends_a_command_that_ignores_the_first() {
    let host = TestHost::new("v100");
    for verb in VERBS {
        let (_folder, file) = ready();
        let script = format!(
            "trap '' TERM; touch {}; sleep 61 & wait; sleep 61",
            file.display()
        );
        let mut child = start(&host, verb, &script);
        wait_for("the command", || file.exists());
        send("TERM", child.id());
        std::thread::sleep(Duration::from_millis(700));
        send("TERM", child.id());
        let code = exit_within(&mut child, Duration::from_secs(5));
        assert_eq!(code, 128 + 15, "{verb:?}");
        assert_eq!(cap(&host), 300.0, "{verb:?}");
    }
}

#[test]
fn a_grandchild_in_a_session_of_its_own_ends_too() {
    let host = TestHost::new("v100");
    for (verb, seconds) in VERBS.into_iter().zip(["62.1", "62.2", "62.3"]) {
        let (_folder, file) = ready();
        let script = format!("setsid sleep {seconds} & touch {}; wait", file.display());
        let mut child = start(&host, verb, &script);
        wait_for("the command", || file.exists());
        let text = format!("sleep {seconds}");
        wait_for("the grandchild", || {
            processes_with(&text).iter().any(|pid| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline"));
                line.is_ok_and(|line| line.starts_with(b"sleep"))
            })
        });
        send("TERM", child.id());
        assert_eq!(exit_within(&mut child, SOON), 128 + 15, "{verb:?}");
        assert_eq!(processes_with(&text), Vec::<u32>::new(), "{verb:?}");
    }
}

#[test]
fn a_guard_that_is_stopped_is_replaced() {
    let host = TestHost::new("v100");
    let (_folder, file) = ready();
    let script = format!("touch {}; sleep 63", file.display());
    let mut child = start(&host, &["run", "--power-cap", "200W"], &script);
    wait_for("the command", || file.exists());
    assert_eq!(cap(&host), 200.0);
    send("STOP", guard_of(child.id()).unwrap());
    send("TERM", child.id());
    assert_eq!(exit_within(&mut child, SOON), 128 + 15);
    assert_eq!(cap(&host), 300.0);
}
