//! The workload's process tree.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
};

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
    for (pid, parent, state) in processes() {
        if state != "Z" {
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

/// A process that no signal ends (it waits for a device) must not keep its guard or its client from ending.
const END_WITHIN: Duration = Duration::from_secs(3);

/// Ends everything below this process: politely, and after `grace` not so. Says whether nothing is left,
/// some seconds after `grace` at the latest.
pub fn end_all(grace: Duration) -> bool {
    end_within(grace, grace + END_WITHIN)
}

fn end_within(grace: Duration, limit: Duration) -> bool {
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

/// The child whose end somebody waits for; 0 where there is none.
static AWAITED: AtomicI32 = AtomicI32::new(0);

/// From now on this child's end is left to whoever waits for it.
pub fn await_end_of(pid: Option<Pid>) {
    AWAITED.store(
        pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
        Ordering::Release,
    );
}

/// Lets ended children go, orphans that came to this process among them, but for the one that is waited for.
pub fn reap() {
    let own = getpid().as_raw_nonzero().get();
    for (pid, parent, state) in processes() {
        if parent == own
            && state == "Z"
            && pid != AWAITED.load(Ordering::Acquire)
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Every process: its number, its parent's, its state.
fn processes() -> Vec<(i32, i32, String)> {
    let mut found = Vec::new();
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
        if let (Some(state), Some(parent)) = (state, parent.and_then(|parent| parent.parse().ok()))
        {
            found.push((pid, parent, state.to_owned()));
        }
    }
    found
}
