//! Reads the list of processes from /proc.

/// A process, identified by its id and its start time, because ids are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: i32,
    pub parent: i32,
    /// The start time, in clock ticks since boot.
    pub started: u64,
    /// Whether any thread of the process still runs.
    pub is_alive: bool,
}

/// Reads one process from /proc; `None` if there is no process with this id.
pub(crate) fn process(pid: i32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(pid, &stat)
}

/// The command line of a process, shortened and without control characters; `None` if it is unknown.
pub(crate) fn command_line(pid: i32) -> Option<String> {
    /// The longest command line that is shown, in characters.
    const MAX_LENGTH: usize = 200;
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let text = String::from_utf8_lossy(&words).replace(char::is_control, " ");
    let text: String = text.trim().chars().take(MAX_LENGTH).collect();
    (!text.is_empty()).then_some(text)
}

/// Parses /proc/PID/stat, see proc_pid_stat(5). The command's name may contain any characters, so the fields
/// are read from the last `)` on.
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
        // A process whose first thread has ended is shown as a zombie while others still run.
        is_alive: !is_over || threads > 1,
    })
}

/// All processes that one scan of /proc finds.
pub(crate) fn processes() -> impl Iterator<Item = Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| process(entry.file_name().to_str()?.parse().ok()?))
}

/// The children of this process, from the kernel's list. It needs CONFIG_PROC_CHILDREN, but is much faster
/// than a scan of all processes.
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
    fn a_name_may_contain_anything() {
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
    fn a_process_is_alive_while_any_thread_is() {
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
