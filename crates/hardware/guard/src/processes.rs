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

/// From now on, every process below this one that loses its parent becomes a child of this one.
pub fn adopt_orphans() {
    let _ = set_child_subreaper(Some(getpid()));
}

/// Those of some signals that this process was not started to ignore: `nohup` has its reasons.
pub fn not_ignored(signals: &[i32]) -> Vec<i32> {
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

/// Every living process below this one that one look at /proc finds. A look is not atomic: it may miss a
/// process that is born or loses its parent meanwhile, so no decision rests on a single one that is empty.
fn descendants() -> Vec<Process> {
    let mut all: HashMap<i32, Process> = processes().map(|one| (one.pid, one)).collect();
    // A process that lost its parent between the two reads has another one by now.
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

/// How many looks at /proc have to agree that nothing is there.
const LOOKS: u32 = 3;

/// Whether the kernel knows of no child of this process, ended ones included. As orphans become children of
/// this process in the same moment in which they lose their parent, nothing lives below it then.
fn is_childless() -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

/// Whether anything lives below this process.
pub fn has_descendants() -> bool {
    reap();
    !is_childless() && (0..LOOKS).any(|_| !descendants().is_empty())
}

/// Whether it is certain that nothing lives below this process.
fn is_nothing_left() -> bool {
    reap();
    // The child that somebody waits for stays until it is waited for, so the kernel's word is not to be had.
    is_childless() || AWAITED.load(Ordering::Acquire) != 0 && !has_descendants()
}

/// Signals this very process, not one that has got its number since.
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

/// Sends a signal once to each process below this one, those included that are born meanwhile: a shell that
/// gets an interrupt and whose newest child does not would go on waiting for that child.
pub fn signal_all(signal: Signal) {
    const ROUNDS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut told = HashSet::new();
    for _ in 0..ROUNDS {
        for target in descendants() {
            if told.insert((target.pid, target.started)) {
                send_signal(&target, signal);
            }
        }
        if is_childless() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills what is there. A process that is killed cannot fork any more, and one that loses its parent by that becomes
/// this process' own child: those are killed at once, as a process that forks and ends is soon another one.
fn kill_all() {
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

/// A process that no signal ends (it waits for a device) must not keep its guard or its client from ending.
pub(crate) const END_WITHIN: Duration = Duration::from_secs(3);

/// Ends everything below this process: politely, and after `grace` not so. Returns when nothing is left, or
/// some seconds after `grace` at the latest.
pub fn end_all(grace: Duration) {
    end_within(grace, grace + END_WITHIN);
}

/// Ends everything below this process, and says whether nothing is left, after `limit` at the latest.
pub(crate) fn end_within(grace: Duration, limit: Duration) -> bool {
    const PAUSE: Duration = Duration::from_millis(5);
    let begun = Instant::now();
    signal_all(Signal::TERM);
    loop {
        if is_nothing_left() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        if begun.elapsed() > grace {
            kill_all();
            // Ended processes are reaped at once, so that those in their place are seen.
            reap();
            std::thread::sleep(PAUSE / 5);
        } else {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The child whose end somebody waits for; 0 where there is none.
static AWAITED: AtomicI32 = AtomicI32::new(0);

/// From now on this child is not reaped here: another thread waits for it.
pub fn await_end_of(pid: Option<Pid>) {
    AWAITED.store(
        pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
        Ordering::Release,
    );
}

/// Lets ended children go, orphans that came to this process among them, but for the one that is waited for.
pub fn reap() {
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
