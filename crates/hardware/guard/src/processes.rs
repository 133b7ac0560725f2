//! The workload's process tree.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, pidfd_open,
    pidfd_send_signal, set_child_subreaper, waitid, waitpid,
};

use crate::proc_files::{Process, own_children, process, processes};

/// Makes this process the parent of every descendant that loses its parent.
pub fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// The signals that this process does not ignore since its start, as it does some under `nohup`.
pub fn signals_not_ignored(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let kept = |signal: &&i32| mask & (1 << (**signal - 1)) == 0;
    signals.iter().filter(kept).copied().collect()
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}

/// The living descendants that one scan of /proc finds. A scan is not atomic: it may miss a process that starts
/// or loses its parent meanwhile, so no decision relies on a single empty scan.
fn descendants() -> Vec<Process> {
    let mut all: HashMap<i32, Process> = processes().map(|one| (one.pid, one)).collect();
    // A process that lost its parent between the two reads has another parent by now.
    let orphans: Vec<i32> = all
        .values()
        .filter(|one| one.parent != 0 && !all.contains_key(&one.parent))
        .map(|one| one.pid)
        .collect();
    for pid in orphans {
        all.extend(process(pid).map(|one| (pid, one)));
    }
    all.extend(own_children().map(|one| (one.pid, one)));
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for one in all.into_values() {
        children.entry(one.parent).or_default().push(one);
    }
    let mut found = Vec::new();
    let mut next = vec![own_pid()];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            next.push(child.pid);
            if child.is_alive {
                found.push(child);
            }
        }
    }
    found
}

/// The number of scans that must find no process.
const EMPTY_SCANS: u32 = 3;

/// Whether the kernel knows of no child of this process, exited ones included. Orphans become children of this
/// process at the moment when they lose their parent, so there are no descendants then.
fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Whether any descendant of this process is alive.
pub fn has_descendants() -> bool {
    reap_children();
    !is_childless() && (0..EMPTY_SCANS).any(|_| !descendants().is_empty())
}

/// Whether certainly no descendant of this process is alive.
fn has_no_descendants() -> bool {
    reap_children();
    // The child that another thread waits for stays until then, so the kernel's answer cannot be used.
    is_childless() || AWAITED.load(Ordering::Acquire) != 0 && !has_descendants()
}

/// Signals exactly this process, not a later one with the same number.
fn send_signal(target: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(target.pid) else {
        return;
    };
    let is_same = || process(target.pid).is_some_and(|now| now.started == target.started);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) if is_same() => {
            let _ = pidfd_send_signal(&handle, signal);
        }
        Err(Errno::NOSYS | Errno::PERM | Errno::MFILE | Errno::NFILE) if is_same() => {
            let _ = kill_process(pid, signal);
        }
        _ => {}
    }
}

/// Sends a signal once to each descendant, including those that start meanwhile: a shell that gets an interrupt
/// while its newest child does not would continue to wait for that child.
pub fn signal_descendants(signal: Signal) {
    const ROUNDS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut signalled = HashSet::new();
    for _ in 0..ROUNDS {
        for target in descendants() {
            if signalled.insert((target.pid, target.started)) {
                send_signal(&target, signal);
            }
        }
        if is_childless() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills all descendants. A killed process cannot fork any more, and its children become children of this
/// process. Those are killed at once, because a process that forks and exits is soon replaced by another.
fn kill_descendants() {
    const ROUNDS: u32 = 50;
    for target in descendants() {
        send_signal(&target, Signal::KILL);
    }
    for _ in 0..ROUNDS {
        let mut living = own_children().filter(|child| child.is_alive).peekable();
        if living.peek().is_none() {
            return;
        }
        living.for_each(|child| send_signal(&child, Signal::KILL));
    }
}

/// The longest wait for a process that no signal ends (it is blocked in a driver): it must not keep the guard
/// or its client from exiting.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Ends all descendants: with SIGTERM, and with SIGKILL after `grace`. Returns when none is left, or some
/// seconds after `grace` at the latest.
pub fn end_descendants(grace: Duration) {
    end_descendants_within(grace, grace + KILL_TIMEOUT);
}

/// Ends all descendants and returns whether none is left, after `limit` at the latest.
pub(crate) fn end_descendants_within(grace: Duration, limit: Duration) -> bool {
    const PAUSE: Duration = Duration::from_millis(5);
    let begun = Instant::now();
    signal_descendants(Signal::TERM);
    loop {
        if has_no_descendants() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        if begun.elapsed() > grace {
            kill_descendants();
            // Exited processes are reaped at once, so that their successors are found.
            reap_children();
            std::thread::sleep(PAUSE / 5);
        } else {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The child that another thread waits for; 0 if there is none.
static AWAITED: AtomicI32 = AtomicI32::new(0);

/// Excludes a child from [`reap_children`], because another thread waits for it.
pub fn exclude_from_reaping(pid: Option<Pid>) {
    AWAITED.store(
        pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
        Ordering::Release,
    );
}

/// Reaps exited children, adopted orphans included, except for the one that another thread waits for.
pub fn reap_children() {
    let own = own_pid();
    let ended = processes().filter(|one| one.parent == own && !one.is_alive);
    for pid in ended.map(|one| one.pid) {
        if pid != AWAITED.load(Ordering::Acquire)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}
