//! Tasks, submitters and nodes that are killed: nothing is lost, and nothing is stored twice.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::cluster::{Cluster, wait_for};
use super::studies::{exported, stored_runs};
use crate::common::{text, words};

/// A study of a command that takes a second for each run.
fn slow_study(program: &Path, study: &str) -> String {
    format!(
        "sweep --power-cap 150,200,250,300 --repeat 2 --settle 50ms --no-samples --executor slurm --slurm --gres=gpu:1 --study {study} -- {} sim-workload --network resnet50 --batch 32 --seconds 2",
        program.display()
    )
}

/// The ids of processes whose command line has these words.
fn processes(words: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let found = all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<i32>().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(words).then(|| Pid::from_raw(pid)).flatten()
    });
    found.collect()
}

#[test]
#[ignore = "needs Slurm"]
fn killed_tasks_and_submitters_lose_nothing() {
    let cluster = Cluster::start(2, None);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = cluster.program();
    let line = slow_study(&program, "st");
    let mut submitter = cluster
        .command(&program, folder)
        .args(words(&line))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let task = format!("{} task {}", program.display(), folder.join("st").display());
    wait_for("tasks", || processes(&task).len() >= 2);
    // One task is killed, and the submitter too.
    kill_process(processes(&task)[0], Signal::KILL).unwrap();
    submitter.kill().unwrap();
    submitter.wait().unwrap();
    wait_for("more tasks", || !processes(&task).is_empty());
    // The study cannot be run here while its jobs are in the queue.
    let output = cluster.sweetspot(folder, &words("sweep --resume st --executor local"));
    let message = text(&output.stderr);
    assert!(
        message.contains("jobs of this study are in Slurm's queue"),
        "{message}"
    );
    let output = cluster.sweetspot(folder, &words("sweep --resume st"));
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("is submitted again"), "{message}");
    assert_eq!(stored_runs(folder, "st"), (8, 8));
    // The arrays of the first submitter were found, and only the lost run is in a new one.
    let arrays = (1..)
        .take_while(|number| folder.join(format!("st/slurm/{number}.json")).exists())
        .count();
    assert_eq!(arrays, 2);
    assert_eq!(
        std::fs::read_to_string(folder.join("st/slurm/2.runs"))
            .unwrap()
            .lines()
            .count(),
        1
    );
    assert_eq!(
        exported(&cluster, folder, "st").0["points"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    for node in ["n1", "n2"] {
        assert_eq!(cluster.settings(node), [(300.0, None), (300.0, None)]);
    }
    interrupted_sweeps_leave_or_cancel_their_jobs(&cluster, folder);
}

/// Ctrl-C leaves the jobs, or cancels them if the user has asked for it.
fn interrupted_sweeps_leave_or_cancel_their_jobs(cluster: &Cluster, folder: &Path) {
    let program = cluster.program();
    for (study, flag) in [("left", ""), ("cancelled", "--cancel-jobs ")] {
        let line = slow_study(&program, format!("{study} {flag}").trim_end());
        let submitter = cluster
            .command(&program, folder)
            .args(words(&line.replace("  ", " ")))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let task = format!(
            "{} task {}",
            program.display(),
            folder.join(study).display()
        );
        wait_for("tasks", || !processes(&task).is_empty());
        let pid = Pid::from_raw(submitter.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let output = submitter.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130));
        let message = text(&output.stderr);
        let jobs = cluster.slurm(&["squeue", "--noheader", "--states=PENDING,RUNNING"]);
        match flag {
            "" => {
                assert!(
                    message.contains("go on, and --resume finds them"),
                    "{message}"
                );
                assert!(!jobs.is_empty());
            }
            _ => {
                assert!(message.contains("are cancelled"), "{message}");
                assert!(jobs.is_empty(), "{jobs}");
            }
        }
        // No run was stored yet, and all are made.
        assert!(message.contains("0 of 8 runs are stored"), "{message}");
        let output = cluster.sweetspot(folder, &["sweep", "--resume", study]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert_eq!(stored_runs(folder, study), (8, 8));
        cluster.wait_until_idle();
    }
    cancelled_jobs_are_submitted_again_when_the_sweep_is_resumed(cluster, folder);
}

/// A job that somebody cancels is not submitted again while the sweep runs, but when it is resumed.
fn cancelled_jobs_are_submitted_again_when_the_sweep_is_resumed(cluster: &Cluster, folder: &Path) {
    let program = cluster.program();
    let submitter = cluster
        .command(&program, folder)
        .args(words(&slow_study(&program, "scancel")))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let task = format!(
        "{} task {}",
        program.display(),
        folder.join("scancel").display()
    );
    wait_for("a result", || {
        std::fs::read_dir(folder.join("scancel/tasks")).is_ok_and(|tasks| tasks.count() > 0)
            || stored_if_any(folder, "scancel") > 0
    });
    wait_for("tasks", || !processes(&task).is_empty());
    cluster.slurm(&["scancel", "--user=root"]);
    let output = submitter.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert!(
        message.contains("runs are missing because their jobs were cancelled; resume with"),
        "{message}"
    );
    let output = cluster.sweetspot(folder, &words("sweep --resume scancel"));
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("runs whose jobs were cancelled are submitted again"),
        "{message}"
    );
    assert_eq!(stored_runs(folder, "scancel"), (8, 8));
}

/// The number of runs of a study that may not exist yet.
fn stored_if_any(folder: &Path, study: &str) -> i64 {
    match folder.join(study).join("study.db").exists() {
        true => stored_runs(folder, study).0,
        false => 0,
    }
}

#[test]
#[ignore = "needs Slurm and a minute"]
fn a_node_that_fails_is_noticed_and_its_runs_are_made_elsewhere() {
    let cluster = Cluster::start(2, None);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = cluster.program();
    let mut line = slow_study(&program, "st");
    line = line.replace("--seconds 2", "--seconds 6");
    let submitter = cluster
        .command(&program, folder)
        .args(words(&line))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let task = format!("{} task {}", program.display(), folder.join("st").display());
    wait_for("tasks", || processes(&task).len() >= 2);
    // Its jobs go on without it, as on a node that has lost its network; the controller gives them up.
    cluster.kill_daemon("slurmd-n2");
    let output = submitter.wait_with_output().unwrap();
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert_eq!(stored_runs(folder, "st"), (8, 8));
}
