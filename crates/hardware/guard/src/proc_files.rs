//! What /proc says of processes.

/// A process; its number and its start name it, as numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
    /// Whether any thread of it still runs.
    pub is_alive: bool,
}

/// One process, if it is there.
pub(crate) fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The fields of proc_pid_stat(5) after the name, which may hold anything: the third is the first here.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let threads: u32 = field(20)?.parse().ok()?;
    let is_over = matches!(field(3)?, "Z" | "X" | "x");
    Some(Process {
        pid,
        parent: field(4)?.parse().ok()?,
        started: field(22)?.parse().ok()?,
        // Where the first thread has ended before the others, the process looks like one that is over.
        is_alive: !is_over || threads > 1,
    })
}

/// Every process that one look finds.
pub(crate) fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// The children of this process, where the kernel lists them (CONFIG_PROC_CHILDREN): much faster than a look
/// at every process.
pub(crate) fn own_children() -> impl Iterator<Item = Process> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<i32> = lists
        .flat_map(|list| {
            let pids = list.split_whitespace().map(str::parse);
            pids.flatten().collect::<Vec<i32>>()
        })
        .collect();
    let own = std::process::id() as i32;
    let children = children.into_iter().filter_map(process);
    children.filter(move |child| child.parent == own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let rest = "7 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 4711 1 1";
        let found = parse(9, &format!("9 (a) R 1 (b)) S {rest}"));
        let expected = Process {
            pid: 9,
            parent: 7,
            started: 4711,
            is_alive: true,
        };
        assert_eq!(found, Some(expected));
        assert_eq!(parse(9, "9 (x) Z 7"), None);
        assert_eq!(parse(9, ""), None);
    }

    #[test]
    fn a_process_lives_while_a_thread_of_it_does() {
        let stat = |state: &str, threads: u32| {
            format!("9 (x) {state} 7 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 4711 1 1")
        };
        let is_alive = |state, threads| parse(9, &stat(state, threads)).unwrap().is_alive;
        assert!(is_alive("T", 1) && is_alive("Z", 2));
        assert!(!is_alive("Z", 1) && !is_alive("X", 0));
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id() as i32;
        assert!(processes().any(|one| one.pid == own && one.is_alive));
    }
}
