//! The permissions of each thread of this process, from /proc.
//!
//! To the kernel user ids and capabilities belong to a thread. The C library changes them for all threads that it has
//! started, but not for others, so each thread is checked.

use super::User;

/// The number of threads of this process; `None` if /proc cannot be read.
pub(super) fn count() -> Option<usize> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    Some(threads.count())
}

/// Says which permissions a thread has beyond those of `user`; `None` if no thread has any.
pub(super) fn privileged_thread(user: &User) -> Option<String> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Some("/proc, which shows whether any are left, cannot be read".to_owned());
    };
    threads.flatten().find_map(|thread| {
        // A thread that has ended meanwhile has no permissions.
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let found = privilege(&status, user)?;
        Some(format!(
            "thread {} has {found}",
            thread.file_name().to_string_lossy()
        ))
    })
}

/// The first line of /proc/PID/status with a permission beyond those of `user`, see proc_pid_status(5).
fn privilege(status: &str, user: &User) -> Option<String> {
    let line = |name: &str| {
        let found = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.map(|values| values.split_whitespace().collect::<Vec<_>>())
    };
    let ids = [("Uid", user.uid), ("Gid", user.gid)];
    let sets = ["CapPrm", "CapEff", "CapAmb"];
    let wrong_id = ids.into_iter().find_map(|(name, id)| {
        let id = id.to_string();
        let is_right =
            |values: &Vec<&str>| values.len() == 4 && values.iter().all(|one| *one == id);
        (!line(name).as_ref().is_some_and(is_right)).then_some(name)
    });
    let full_set = || {
        sets.into_iter().find(|name| {
            let is_empty = |values: &Vec<&str>| {
                values.len() == 1 && values[0].bytes().all(|digit| digit == b'0')
            };
            !line(name).as_ref().is_some_and(is_empty)
        })
    };
    let name = wrong_id.or_else(full_set)?;
    let values = line(name).map_or("no value".to_owned(), |values| values.join(" "));
    Some(format!("{name} {values}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nUid:\t7\t7\t7\t7\nGid:\t8\t8\t8\t8\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\n";

    #[test]
    fn each_id_and_each_set_counts() {
        let user = User {
            uid: 7,
            gid: 8,
            name: "x".into(),
            home: "/".into(),
            shell: "/bin/sh".into(),
        };
        assert_eq!(privilege(STATUS, &user), None);
        for (from, to, found) in [
            ("Uid:\t7\t7\t7\t7", "Uid:\t7\t7\t0\t7", "Uid 7 7 0 7"),
            ("Uid:\t7\t7\t7\t7", "Uid:\t7\t7\t7", "Uid 7 7 7"),
            ("Gid:\t8\t8\t8\t8", "Gid:\t0\t8\t8\t8", "Gid 0 8 8 8"),
            (
                "CapPrm:\t0000000000000000",
                "CapPrm:\t0000000000200000",
                "CapPrm 0000000000200000",
            ),
            (
                "CapEff:\t0000000000000000",
                "CapEff:\t0000000000000001",
                "CapEff 0000000000000001",
            ),
            ("CapAmb:\t0000000000000000", "", "CapAmb no value"),
        ] {
            let status = STATUS.replace(from, to);
            assert_ne!(status, STATUS);
            assert_eq!(privilege(&status, &user).as_deref(), Some(found));
        }
    }

    #[test]
    fn the_threads_of_this_process_are_counted() {
        let before = count().unwrap();
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        assert!(count().unwrap() >= 2, "{before}");
        drop(stop);
        let _ = thread.join();
    }
}
