//! What goes wrong before or while a study runs on Slurm, told in one sentence.

use std::path::Path;

use super::cluster::{Cluster, wait_for};
use super::studies::stored_runs;
use crate::common::{sweetspot, text, words};

/// A small study in virtual time.
const SMALL: &str = "sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 1 --no-samples --executor slurm";

#[test]
fn without_slurm_the_message_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let output = crate::common::program()
        .args(words(&format!("{SMALL} --study st")))
        .env("PATH", "/nonexistent")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(
        message.contains("`scontrol` was not found: load your site's Slurm module"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1);
    assert!(!folder.path().join("st").exists());
    let output = sweetspot(
        folder.path(),
        &words("sweep --simulate v100 --network resnet50 --max-jobs 3"),
    );
    assert!(text(&output.stderr).contains("need --executor slurm"));
}

/// A folder with stand-ins for Slurm's commands: the first job is run at once, all others are accepted as job 7 after a
/// second. `squeue` is what the test says.
fn made_slurm(squeue: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let submit = format!(
        "cat >\"$0.$$\"; case \"$*\" in *sweetspot-probe*) sh \"$0.$$\"; echo 1 ;; *) touch {}/submitting; sleep 1; echo 7 ;; esac",
        folder.path().display()
    );
    for (name, script) in [
        ("scontrol", "true"),
        ("sbatch", &submit),
        ("squeue", squeue),
    ] {
        write_script(&folder.path().join(name), script);
    }
    folder
}

/// Writes a script that can be executed.
pub fn write_script(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The machine on which users of a cluster type often has no GPU: the first job plans the study on its node. A dry run says
/// what is known before, and asks Slurm about the jobs.
#[test]
fn a_dry_run_of_a_command_needs_no_gpu() {
    let (folder, slurm) = (tempfile::tempdir().unwrap(), made_slurm("true"));
    let asked = slurm.path().join("asked");
    let sbatch = format!("echo \"$@\" >>{}", asked.display());
    write_script(&slurm.path().join("sbatch"), &sbatch);
    let dry_run = |axes: &str| {
        let line = format!(
            "sweep --executor slurm --slurm --gres=gpu:1 {axes} --repeat 3 --dry-run -- python train.py"
        );
        crate::common::program()
            .args(words(&line))
            .env("PATH", slurm.path())
            .env("SWEETSPOT_NVML", "/nonexistent/libnvidia-ml.so")
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let output = dry_run("--power-cap 150..300:25 --axis batch=32,64");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for expected in [
        "python train.py on the GPUs of a node",
        "  power-cap: 150..300:25\n  batch: 32,64\n",
        "14 configurations and the reference, 3 runs each: 45 runs at most",
        "45 Slurm jobs of 1 runs, in 1 job arrays at most\nSlurm accepts these jobs",
    ] {
        assert!(printed.contains(expected), "{printed}");
    }
    let asked = std::fs::read_to_string(asked).unwrap();
    assert!(asked.starts_with("--test-only") && asked.contains("--array=0-44"));
    assert!(
        asked.contains("--gres=gpu:1") && asked.lines().count() == 1,
        "{asked}"
    );
    // Only the GPU knows how many levels its clock has.
    let output = dry_run("--core-clock all");
    let printed = text(&output.stdout);
    assert!(
        printed.contains("as many configurations as the GPUs support"),
        "{printed}"
    );
    // What Slurm refuses is refused now.
    write_script(
        &slurm.path().join("sbatch"),
        "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1",
    );
    let output = dry_run("--power-cap 150,300");
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("Slurm refused the job"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Starts a small study on a made Slurm, sends SIGTERM to its process group once `is_time`, and returns its output.
fn interrupted(slurm: &Path, folder: &Path, is_time: impl Fn() -> bool) -> std::process::Output {
    use std::os::unix::process::CommandExt;
    let path = format!("{}:{}", slurm.display(), std::env::var("PATH").unwrap());
    let sweep = crate::common::program()
        .args(words(&format!("{SMALL} --study st")))
        .env("PATH", path)
        .current_dir(folder)
        .process_group(0)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the moment of the signal", is_time);
    let group = rustix::process::Pid::from_child(&sweep);
    rustix::process::kill_process_group(group, rustix::process::Signal::TERM).unwrap();
    let begun = std::time::Instant::now();
    let output = sweep.wait_with_output().unwrap();
    assert!(begun.elapsed().as_secs() < 6, "{:?}", begun.elapsed());
    output
}

#[test]
fn a_signal_ends_the_wait_for_a_queue_that_does_not_respond() {
    let folder = tempfile::tempdir().unwrap();
    let asked = folder.path().join("asked");
    let slurm = made_slurm(&format!("touch {}; exec sleep 30", asked.display()));
    let output = interrupted(slurm.path(), folder.path(), || asked.exists());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 15), "{message}");
    assert_eq!(message.trim().lines().count(), 1, "{message}");
}

/// A scheduler or a terminal sends its signal to the whole process group. The jobs that are being submitted at this moment
/// run all the same, so that the study must know them.
#[test]
fn jobs_that_are_submitted_at_the_moment_of_a_signal_are_known_to_the_study() {
    let (folder, slurm) = (tempfile::tempdir().unwrap(), made_slurm("true"));
    let submitting = slurm.path().join("submitting");
    let output = interrupted(slurm.path(), folder.path(), || submitting.exists());
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(128 + 15), "{message}");
    assert!(message.contains("--resume finds them"), "{message}");
    assert!(
        message.contains("resume with `sweetspot sweep --resume st`"),
        "{message}"
    );
    let array = std::fs::read(folder.path().join("st/slurm/1.json")).unwrap();
    let array: serde_json::Value = serde_json::from_slice(&array).unwrap();
    assert_eq!(array["job"], 7, "{array}");
}

/// Refused options, an unknown partition, and results of another study.
pub fn is_told_in_one_sentence(cluster: &Cluster, folder: &Path) {
    let refused = |flags: &str, expected: &str| {
        let mut line: Vec<&str> = words(SMALL);
        let flags: Vec<&str> = flags.split(' ').collect();
        line.extend(["--study", "bad"]);
        line.extend(flags);
        let output = cluster.sweetspot(folder, &line);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{message}");
        assert_eq!(message.trim().lines().count(), 1, "{message}");
        assert!(!folder.join("bad").exists());
    };
    refused(
        "--slurm --partition=missing",
        "invalid partition specified: missing",
    );
    refused("--slurm --array=1-2", "--array cannot be given");
    refused("--slurm --gres=gpu:9", "Slurm refused the job");
    refused("--no-study", "cannot be used");
    // The result of another study.
    let output = cluster.sweetspot(folder, &words(&format!("{SMALL} --study first")));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let other = sweetspot(
        folder,
        &words(
            "sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 2 --study other",
        ),
    );
    assert!(other.status.success());
    let task = sweetspot(folder, &words("task other 1"));
    assert!(task.status.success(), "{}", text(&task.stderr));
    std::fs::copy(
        folder.join("other/tasks/1.json"),
        folder.join("first/tasks/1.json"),
    )
    .unwrap();
    let output = cluster.sweetspot(folder, &words("sweep --resume first --repeat 2"));
    let message = text(&output.stderr);
    assert!(
        message.contains("first/tasks/1.json is the result of another study: move it away"),
        "{message}"
    );
    assert_eq!(stored_runs(folder, "first"), (2, 2));
    std::fs::remove_file(folder.join("first/tasks/1.json")).unwrap();
    let output = cluster.sweetspot(folder, &words("sweep --resume first --repeat 2"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(stored_runs(folder, "first"), (4, 4));
}

/// In a mount namespace of its own, the submitter sees another folder than the nodes.
pub fn a_folder_that_is_not_shared_is_found_by_the_first_job(cluster: &Cluster) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs none {0} && cd {0} && exec {1} {SMALL} --study st",
        folder.path().display(),
        cluster.program().display()
    );
    let output = cluster
        .command("unshare", Path::new("/"))
        .args(["--mount", "sh", "-c", &script])
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("is not shared with the nodes") && message.contains("--study"),
        "{message}"
    );
    assert_eq!(message.trim().lines().count(), 1, "{message}");
}
