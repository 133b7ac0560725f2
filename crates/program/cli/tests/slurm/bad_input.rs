//! What goes wrong before or while a study runs on Slurm, told in one sentence.

use std::path::Path;

use super::cluster::Cluster;
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
