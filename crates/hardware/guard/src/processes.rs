//! Finds, signals and ends all processes of the workload, which are descendants of the guard.

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

/// Returns those of `signals` that this process does not ignore. Under `nohup`, for example, a process
/// ignores SIGHUP from its start.
pub fn signals_not_ignored(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let kept = |signal: &&i32| mask & (1 << (**signal - 1)) == 0;
    signals.iter().filter(kept).copied().collect()
}

/// The id of this process.
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

/// The number of scans in a row that must find no descendant before it is certain that there is none.
const EMPTY_SCANS: u32 = 3;

/// Whether this process has no children, exited ones included. Orphaned descendants become children at the
/// moment when they lose their parent, so no children means no descendants.
fn is_childless() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Whether any descendant of this process is alive.
pub fn has_descendants() -> bool {
    reap_children();
    !is_childless() && (0..EMPTY_SCANS).any(|_| !descendants().is_empty())
}

/// Whether it is certain that no descendant of this process is alive.
fn has_no_descendants() -> bool {
    reap_children();
    // The child that another thread waits for stays until then, so the kernel's list of children is never empty.
    is_childless() || AWAITED_CHILD.load(Ordering::Acquire) != 0 && !has_descendants()
}

/// Sends a signal to a process, but not to a later process with the same id.
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

/// Sends a signal once to each descendant, including those that start meanwhile. Otherwise a shell could be
/// interrupted without its newest child, and would go on waiting for that child.
pub fn signal_descendants(signal: Signal) {
    /// The maximum number of scans for new descendants.
    const ROUNDS: u32 = 5;
    /// The pause between two scans.
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

/// Kills all descendants. The children of a killed process become children of this process and are killed at
/// once, because a process that forks and exits repeatedly would otherwise escape.
fn kill_descendants() {
    /// The maximum number of rounds of killing.
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

/// The longest wait for killed processes to end. A process that is blocked in a driver may never end, but the
/// guard and its client must exit.
pub(crate) const KILL_TIMEOUT: Duration = Duration::from_secs(3);

/// Ends all descendants with SIGTERM, and after `grace` with SIGKILL. Returns when none is left, at the latest
/// three seconds after `grace`.
pub fn end_descendants(grace: Duration) {
    end_descendants_within(grace, grace + KILL_TIMEOUT);
}

/// Like [`end_descendants`], but returns after `limit` at the latest. The result is whether no descendant is
/// left.
pub(crate) fn end_descendants_within(grace: Duration, limit: Duration) -> bool {
    /// The pause between two checks for living descendants.
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

/// The id of the child process that another thread waits for; 0 if there is none.
static AWAITED_CHILD: AtomicI32 = AtomicI32::new(0);

/// Excludes a child process from [`reap_children`], because another thread waits for its exit status.
pub fn exclude_from_reaping(pid: Option<Pid>) {
    AWAITED_CHILD.store(
        pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
        Ordering::Release,
    );
}

/// Removes exited children, adopted orphans included, except for the one that another thread waits for.
pub fn reap_children() {
    let own = own_pid();
    let ended = processes().filter(|one| one.parent == own && !one.is_alive);
    for pid in ended.map(|one| one.pid) {
        if pid != AWAITED_CHILD.load(Ordering::Acquire)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}
