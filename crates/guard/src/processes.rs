//! The workload's process tree.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// From now on, whoever loses its parent below this process becomes its child.
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

/// Everything below this process.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
            continue;
        };
        let mut fields = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace();
        let (state, parent) = (fields.next(), fields.next());
        if state == Some("Z") {
            continue;
        }
        if let Some(parent) = parent.and_then(|parent| parent.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![getpid().as_raw_nonzero().get()];
    while let Some(parent) = next.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            found.extend(Pid::from_raw(child));
            next.push(child);
        }
    }
    found
}

/// Whether anything lives below this process.
pub fn has_descendants() -> bool {
    !descendants().is_empty()
}

/// Sends a signal once to each process below this one, those included that are born meanwhile: a shell that
/// gets an interrupt and whose newest child does not would go on waiting for that child.
pub fn signal_all(signal: Signal) {
    const ROUNDS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut told = HashSet::new();
    for _ in 0..ROUNDS {
        for pid in descendants() {
            if told.insert(pid) {
                let _ = kill_process(pid, signal);
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends everything below this process: politely, and after `grace` not so. Returns when nothing is left.
pub fn end_all(grace: Duration) {
    end_within(grace, Duration::MAX);
}

/// The same, but returns after `limit` at the latest; says whether nothing is left.
pub(crate) fn end_within(grace: Duration, limit: Duration) -> bool {
    let begun = Instant::now();
    signal_all(Signal::TERM);
    loop {
        reap();
        if descendants().is_empty() {
            return true;
        }
        if begun.elapsed() > limit {
            return false;
        }
        if begun.elapsed() > grace {
            for pid in descendants() {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Lets ended children go.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
