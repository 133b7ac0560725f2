//! Identifies the thread that writes a ring, so the reader can tell whether that thread still runs.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The machine's boot and the pid namespace in which this process runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host {
    /// The kernel's boot id; zero if unknown.
    pub boot: [u8; 16],
    /// The inode of the pid namespace; zero if unknown.
    pub namespace: u64,
}

impl Host {
    /// Describes the boot and the pid namespace of this process.
    pub fn current() -> Self {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        Self {
            boot: boot.ok().and_then(|id| parse_boot(&id)).unwrap_or_default(),
            namespace: fs::metadata("/proc/self/ns/pid").map_or(0, |it| it.ino()),
        }
    }

    /// Whether a thread has certainly ended. A thread in another pid namespace cannot be checked and counts as
    /// running.
    pub fn has_ended(&self, namespace: u64, pid: u32, tid: u32, start: u64) -> bool {
        if namespace == 0 || namespace != self.namespace || start == 0 {
            return false;
        }
        match fs::read(format!("/proc/{pid}/task/{tid}/stat")) {
            Ok(stat) => parse_stat(&stat).is_some_and(|(state, since)| {
                since != start || matches!(state, b'Z' | b'X' | b'x')
            }),
            // ESRCH is returned if the thread ends between open and read.
            Err(error) => {
                error.kind() == std::io::ErrorKind::NotFound
                    || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
            }
        }
    }
}

/// The start time of the calling thread, in clock ticks since boot; zero if unknown.
pub(crate) fn thread_start() -> u64 {
    let stat = fs::read("/proc/thread-self/stat");
    stat.ok()
        .and_then(|stat| parse_stat(&stat))
        .map_or(0, |(_, start)| start)
}

/// The process's rank in a distributed job, from the environment variables of the usual launchers. A rank
/// within the whole job is preferred to one within the node.
pub(crate) fn rank() -> Option<u32> {
    /// The environment variables, those of the whole job first.
    const NAMES: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK"];
    NAMES
        .iter()
        .find_map(|name| std::env::var(name).ok()?.trim().parse().ok())
        .filter(|&rank| rank != u32::MAX)
}

/// Parses the kernel's boot id, which is a UUID in text form.
fn parse_boot(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes())
}

/// Parses state and start time from `/proc/.../stat` (fields 3 and 22 in proc(5)). The command name in
/// parentheses before them may contain any characters.
fn parse_stat(stat: &[u8]) -> Option<(u8, u64)> {
    let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_parsed_after_any_name() {
        let line = b"7 (a) b) 1 (x) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(parse_stat(line), Some((b'R', 4711)));
        assert_eq!(parse_stat(b"7 (a"), None);
        assert_eq!(parse_stat(b"7 (a) R 1 2"), None);
    }

    #[test]
    fn this_thread_runs_and_one_with_another_start_does_not() {
        let host = Host::current();
        let start = thread_start();
        let (pid, tid) = (
            std::process::id(),
            rustix::thread::gettid().as_raw_pid() as u32,
        );
        assert!(start > 0 && host.boot != [0; 16]);
        assert!(!host.has_ended(host.namespace, pid, tid, start));
        assert!(host.has_ended(host.namespace, pid, tid, start + 1));
        assert!(!host.has_ended(host.namespace + 1, pid, tid, start + 1));
        assert!(host.has_ended(host.namespace, pid, u32::MAX, start));
    }
}
