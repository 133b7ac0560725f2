//! Finds out whether another job still runs on this node. Usually a job has its GPUs for itself, so that a job which had
//! them before is over; but with shards, MPS or oversubscribed partitions jobs share a GPU.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::call_from_hook;

/// Whether there is evidence that a job runs on this node: one of its steps, or what Slurm says. Without evidence, as from
/// a controller that does not respond, it counts as over.
pub fn is_alive(job: u64, node: &str) -> bool {
    has_step(Path::new("/proc"), job, 0) || is_in_queue(job, node)
}

/// Whether a step of the job runs here. The daemon of a step shows the job in its command line: `slurmstepd: [7.batch]`. It
/// belongs to root, while a user can give any command line to a process.
fn has_step(proc: &Path, job: u64, owner: u32) -> bool {
    let beginning = format!("slurmstepd: [{job}.");
    let processes = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let mut lines = processes.filter_map(|entry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let is_daemon = entry.metadata().ok()?.uid() == owner;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        is_daemon.then_some(line)
    });
    lines.any(|line| line.starts_with(beginning.as_bytes()))
}

/// Whether Slurm says that the job runs on this node: it may have no step there at the moment.
fn is_in_queue(job: u64, node: &str) -> bool {
    let (jobs, nodes) = (format!("--jobs={job}"), format!("--nodelist={node}"));
    let words = [
        "--noheader",
        "--format=%A",
        "--states=RUNNING,SUSPENDED",
        &jobs,
        &nodes,
    ];
    match call_from_hook("squeue", &words) {
        Ok(printed) => printed.lines().any(|line| line.trim() == job.to_string()),
        Err(problem) => {
            tracing::debug!(job, %problem, "Slurm does not say whether the job runs");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_of_a_job_is_found_by_its_command_line() {
        let proc = tempfile::tempdir().unwrap();
        for (process, line) in [
            ("10", "slurmstepd: [17.batch]"),
            ("11", "sh\0slurmstepd: [8.batch]"),
            ("self", "slurmstepd: [9.batch]"),
            ("12", "slurmstepd: [7.extern]\0"),
        ] {
            let folder = proc.path().join(process);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("cmdline"), line).unwrap();
        }
        let user = rustix::process::getuid().as_raw();
        let alive = |job| has_step(proc.path(), job, user);
        assert!(alive(7) && alive(17));
        assert!(!has_step(proc.path(), 7, user + 1));
        assert!(!alive(1) && !alive(8) && !alive(9));
    }
}
