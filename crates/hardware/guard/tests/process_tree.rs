//! All processes of a workload are ended: grandchildren in sessions of their own, processes that fork all the
//! time, processes that lose their parent meanwhile. `TRIALS=2000` runs many trials.

mod common;

use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sweetspot_guard::{
    adopt_orphans, end_descendants, exclude_from_reaping, has_descendants, reap_children,
};

/// All descendants of this process are ended, so only one test may run at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn lock_process_tree() -> MutexGuard<'static, ()> {
    adopt_orphans();
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Sleeps for a time that differs between trials.
fn sleep_briefly(trial: u64) {
    std::thread::sleep(Duration::from_micros(trial * 7919 % 12_000));
}

fn assert_all_ended(marker: &str, trial: u64, keep: &Path) {
    let is_left = common::is_running(marker);
    // A process that survived ends when this file is removed.
    let _ = std::fs::remove_file(keep);
    assert!(!is_left, "trial {trial}: something still runs");
    assert!(!has_descendants(), "trial {trial}");
}

/// Ends all descendants, and checks that this is done in time.
fn end_in_time(grace: u64, trial: u64) {
    let begun = Instant::now();
    end_descendants(Duration::from_millis(grace));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(3), "trial {trial}: {took:?}");
}

/// Runs and ends `script` in many trials. `$0` is the trial's marker; the script may run while the file exists.
fn stress(name: &str, script: &str, count: u64) {
    let _lock = lock_process_tree();
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("keep");
    let script = script.replace("KEEP", keep.to_str().unwrap());
    for trial in 0..trials(count) {
        std::fs::write(&keep, "").unwrap();
        let marker = format!("{name}-{}-{trial}", std::process::id());
        let child = shell(&script, &marker);
        sleep_briefly(trial);
        end_in_time(trial % 3 * 10, trial);
        assert_all_ended(&marker, trial, &keep);
        drop(child);
    }
}

#[test]
fn grandchildren_in_their_own_sessions_are_ended() {
    let script =
        "setsid sh -c 'sleep 60' $0 & setsid sh -c 'setsid sleep 60 & sleep 60' $0 & sleep 60";
    stress("session", script, 80);
}

/// Each process starts the next and exits, so that a process that was found has exited already and its child
/// runs.
#[test]
fn chains_of_forking_processes_are_ended() {
    let script = "next='[ -e KEEP ] && sh -c \"$1\" $0 \"$1\" &'; sh -c \"$next\" $0 \"$next\" & setsid sh -c \"$next\" $0 \"$next\" &";
    stress("chain", script, 60);
}

#[test]
fn children_that_fork_all_the_time_are_ended() {
    let script = "trap '' TERM; for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; while [ -e KEEP ]; do sh -c \"sleep 0.01\" $0 & sleep 0.002; done' $0 & done; sleep 60";
    stress("fork", script, 60);
}

/// The shell exits by itself while the descendants are ended.
#[test]
fn new_orphans_are_ended() {
    let script = "(sh -c 'sleep 60' $0 & sh -c 'setsid sh -c \"sleep 60\" $0 & exit' $0) & exit";
    stress("orphan", script, 100);
}

#[test]
fn an_excluded_child_is_not_reaped() {
    let _lock = lock_process_tree();
    for trial in 0..trials(30) {
        let marker = format!("awaited-{}-{trial}", std::process::id());
        let mut child = shell("setsid sh -c 'sleep 60' $0 & sleep 60", &marker);
        exclude_from_reaping(Some(rustix::process::Pid::from_child(&child)));
        sleep_briefly(trial);
        end_in_time(0, trial);
        assert!(!common::is_running(&marker), "trial {trial}");
        reap_children();
        let status = child.wait().unwrap();
        exclude_from_reaping(None);
        assert!(!status.success(), "{status}");
        assert!(!has_descendants());
    }
}

/// A process whose first thread has ended is shown as a zombie, but still runs.
#[test]
fn a_process_without_its_first_thread_is_ended() {
    let _lock = lock_process_tree();
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
    common::wait_until("the first thread ends", state);
    assert!(has_descendants());
    end_in_time(0, 0);
    assert!(!common::is_running(&marker));
    // It was reaped with the others.
    assert!(child.wait().is_err());
}
