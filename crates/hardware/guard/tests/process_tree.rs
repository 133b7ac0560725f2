//! Whatever a workload starts, nothing of it is left once it was ended: grandchildren in sessions of their
//! own, processes that fork all the time, processes that lose their parent in that moment.
//! `TRIALS=2000` for many.

mod common;

use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_guard::{adopt_orphans, await_end_of, end_all, has_descendants, reap};

/// Everything below this process is ended, so one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    adopt_orphans();
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn trials(usual: u64) -> u64 {
    let trials = std::env::var("TRIALS").ok();
    trials
        .and_then(|trials| trials.parse().ok())
        .unwrap_or(usual)
}

fn shell(script: &str, marker: &str) -> Child {
    Command::new("sh")
        .args(["-c", script, marker])
        .spawn()
        .unwrap()
}

/// A moment that differs from trial to trial.
fn short_while(trial: u64) {
    std::thread::sleep(Duration::from_micros(trial * 7919 % 12_000));
}

fn expect_nothing(marker: &str, trial: u64, keep: &Path) {
    let is_left = common::is_running(marker);
    // A process that is left ends when this file is removed.
    let _ = std::fs::remove_file(keep);
    assert!(!is_left, "trial {trial}: something still runs");
    assert!(!has_descendants(), "trial {trial}");
}

/// Ends what runs, and does so in time.
fn end(grace: u64, trial: u64) {
    let begun = Instant::now();
    end_all(Duration::from_millis(grace));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "trial {trial}: {took:?}");
}

/// Ends `script` in many trials. `$0` is the trial's marker; the file is there while it may run.
fn stress(name: &str, script: &str, count: u64) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    let script = script.replace("KEEP", keep.to_str().unwrap());
    for trial in 0..trials(count) {
        std::fs::write(&keep, "").unwrap();
        let marker = format!("{name}-{}-{trial}", std::process::id());
        let child = shell(&script, &marker);
        short_while(trial);
        end(trial % 3 * 10, trial);
        expect_nothing(&marker, trial, &keep);
        drop(child);
    }
}

#[test]
fn a_grandchild_in_a_session_of_its_own() {
    let script =
        "setsid sh -c 'sleep 60' $0 & setsid sh -c 'setsid sleep 60 & sleep 60' $0 & sleep 60";
    stress("session", script, 80);
}

/// Each process starts the next and ends: a process that was found is gone already, and its child runs.
#[test]
fn a_chain_of_processes_that_fork_and_end() {
    let script = "next='[ -e KEEP ] && sh -c \"$1\" $0 \"$1\" &'; sh -c \"$next\" $0 \"$next\" & setsid sh -c \"$next\" $0 \"$next\" &";
    stress("chain", script, 60);
}

#[test]
fn children_that_fork_all_the_time() {
    let script = "trap '' TERM; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; while [ -e KEEP ]; do sh -c \"sleep 0.01\" $0 & sleep 0.002; done' $0 & done; sleep 60";
    stress("fork", script, 60);
}

/// The shell ends by itself in the moment in which everything is ended.
#[test]
fn orphans_of_the_moment() {
    let script = "(sh -c 'sleep 60' $0 & sh -c 'setsid sh -c \"sleep 60\" $0 & exit' $0) & exit";
    stress("orphan", script, 100);
}

#[test]
fn the_child_that_is_waited_for_is_left_to_whoever_waits() {
    let _alone = alone();
    for trial in 0..trials(30) {
        let marker = format!("awaited-{}-{trial}", std::process::id());
        let mut child = shell("setsid sh -c 'sleep 60' $0 & sleep 60", &marker);
        await_end_of(Some(rustix::process::Pid::from_child(&child)));
        short_while(trial);
        end(0, trial);
        assert!(!common::is_running(&marker), "trial {trial}");
        reap();
        let status = child.wait().unwrap();
        await_end_of(None);
        assert!(!status.success(), "{status}");
        assert!(!has_descendants());
    }
}

/// A process whose first thread has ended looks as if it were over, and is not.
#[test]
fn a_process_without_its_first_thread() {
    let _alone = alone();
    let python = Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no python3");
        return;
    }
    let marker = format!("thread-{}", std::process::id());
    let code = "import ctypes, subprocess, sys, threading, time
def work():
    subprocess.Popen(['sh', '-c', 'sleep 60', sys.argv[1]], start_new_session=True).wait()
threading.Thread(target=work).start()
time.sleep(0.2)
ctypes.CDLL(None).syscall(60, 0)";
    let child = Command::new("python3").args(["-c", code, &marker]).spawn();
    let mut child = child.unwrap();
    let pid = child.id();
    let state = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        stat.unwrap_or_default().contains(") Z ")
    };
    common::eventually("the first thread ends", state);
    assert!(has_descendants());
    end(0, 0);
    assert!(!common::is_running(&marker));
    // It was let go with the others.
    assert!(child.wait().is_err());
}
