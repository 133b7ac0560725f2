//! A terminal that is closed while a command runs ends it as SIGHUP does: settings restored, documents written.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::host::TestHost;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Runs a command on a terminal of its own, closes the terminal when the command works, and returns the exit code.
fn close_terminal(host: &TestHost, folder: &std::path::Path, args: &[&str]) -> Option<i32> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let path = ptsname(&terminal, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let stream = || Stdio::from(open(path.as_c_str(), flags, Mode::empty()).unwrap());
    let mut command: Command = host.command("setsid");
    command
        .args(["--ctty", PROGRAM])
        .args(args)
        .current_dir(folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .stdin(stream())
        .stdout(stream())
        .stderr(stream());
    let mut child = command.spawn().unwrap();
    drop(command);
    std::thread::sleep(Duration::from_millis(2500));
    drop(terminal);
    let begun = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return status.code(),
            None if begun.elapsed() > Duration::from_secs(15) => {
                child.kill().unwrap();
                return None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

#[test]
fn documents_are_written_and_settings_restored() {
    let workload = [
        PROGRAM,
        "sim-workload",
        "--network",
        "resnet50",
        "--seconds",
        "30",
    ];
    let serving = [&workload[..], &["--infer", "--serve"]].concat();
    let verbs: [(&[&str], &[&str]); 4] = [
        (&["measure"], &workload),
        (&["run", "--measure", "--power-cap", "500W"], &workload),
        (&["tune", "--fresh"], &workload),
        (&["hold", "--below", "600W"], &serving),
    ];
    std::thread::scope(|scope| {
        for (verb, job) in verbs {
            scope.spawn(move || {
                let host = TestHost::new("nvidia_h200");
                let folder = tempfile::tempdir().unwrap();
                let args = [verb, &["--export-json", "kept", "--"], job].concat();
                let code = close_terminal(&host, folder.path(), &args);
                assert_eq!(code, Some(128 + 1), "{verb:?}");
                let document = std::fs::read(folder.path().join("kept")).unwrap();
                let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
                assert!(document["schema"].is_string(), "{verb:?}");
                let journals = std::fs::read_dir(host.folder().join("guard"))
                    .into_iter()
                    .flatten();
                let left = journals
                    .flatten()
                    .filter(|entry| entry.path().extension().is_some_and(|end| end == "journal"));
                assert_eq!(left.count(), 0, "{verb:?}");
            });
        }
    });
}

#[test]
fn a_sweep_keeps_its_study() {
    let host = TestHost::new("nvidia_h200");
    let folder = tempfile::tempdir().unwrap();
    let sweep = "sweep --power-cap 400,500 --repeat 2 --study kept --";
    let job = [
        PROGRAM,
        "sim-workload",
        "--network",
        "resnet50",
        "--seconds",
        "1",
    ];
    let args: Vec<&str> = sweep.split(' ').chain(job).collect();
    assert_eq!(close_terminal(&host, folder.path(), &args), Some(128 + 1));
    assert!(folder.path().join("kept/study.db").exists());
}
