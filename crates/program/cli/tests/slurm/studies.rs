//! Studies that run as jobs.

use std::path::Path;

use serde_json::Value;

use super::bad_input;
use super::cluster::Cluster;
use crate::common::{text, words};

/// A study of 64 configurations in virtual time.
pub const SIXTY_FOUR: &str = "sweep --simulate v100 --network resnet50 --power-cap 150..300:10 --axis batch=32,64,96,128 --repeat 2 --seed 7 --no-samples";

/// The document of a study, and what it says about nodes, which only a study on a cluster has.
pub fn exported(cluster: &Cluster, folder: &Path, study: &str) -> (Value, Value) {
    let output = cluster.sweetspot(folder, &["study", "export", study, "--export-json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let mut document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let nodes = document.as_object_mut().unwrap().remove("nodes");
    (document, nodes.unwrap_or_default())
}

/// The number of runs of a study, counted in its database.
pub fn stored_runs(folder: &Path, study: &str) -> (i64, i64) {
    let database = rusqlite::Connection::open(folder.join(study).join("study.db")).unwrap();
    let count = |sql: &str| database.query_row(sql, [], |row| row.get(0)).unwrap();
    (
        count("SELECT count(*) FROM run"),
        count("SELECT count(*) FROM run WHERE status = 'ok'"),
    )
}

#[test]
#[ignore = "needs Slurm"]
fn studies_on_four_nodes_have_the_numbers_of_one_machine() {
    // Small arrays, so that a study needs several.
    let cluster = Cluster::start_with(4, None, &["MaxArraySize=6"]);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    in_virtual_time(&cluster, folder);
    in_real_time(&cluster, folder);
    bad_input::is_told_in_one_sentence(&cluster, folder);
    bad_input::a_folder_that_is_not_shared_is_found_by_the_first_job(&cluster);
}

/// The same numbers, to the bit.
fn in_virtual_time(cluster: &Cluster, folder: &Path) {
    let run = |more: &str| {
        let line = format!("{SIXTY_FOUR} {more}");
        let output = cluster.sweetspot(folder, &words(&line));
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    run("--study local");
    let printed = run("--study jobs --executor slurm --runs-per-job 4 --nodes spread --max-jobs 8");
    let (local, none) = exported(cluster, folder, "local");
    let (jobs, nodes) = exported(cluster, folder, "jobs");
    assert_eq!(local["points"].as_array().unwrap().len(), 64);
    assert_eq!(local, jobs);
    assert_eq!(none, Value::Null);
    // Every node has the same share, and none differs.
    let nodes = nodes.as_array().unwrap();
    assert_eq!(nodes.len(), 4);
    for node in nodes {
        assert_eq!(node["runs"], 32, "{node}");
        assert_eq!(node["energy"]["differs"], false, "{node}");
    }
    assert!(
        printed.contains("Energy vs others") && !printed.contains("The nodes differ"),
        "{printed}"
    );
    let dry = run("--executor slurm --dry-run");
    assert!(
        dry.contains("64 Slurm jobs of 2 runs, in 11 job arrays"),
        "{dry}"
    );
    // Each node had 8 jobs, and an array has 6 at most.
    let array = |number: usize| folder.join(format!("jobs/slurm/{number}.json"));
    assert!(array(8).exists() && !array(9).exists());
    // Adding runs submits only those that are missing, with the same options.
    let output = cluster.sweetspot(folder, &words("sweep --resume jobs --repeat 3"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(stored_runs(folder, "jobs"), (192, 192));
}

/// A command on the simulated hosts of the nodes, planned there: the machine that submits has no GPU.
fn in_real_time(cluster: &Cluster, folder: &Path) {
    let program = cluster.program().display().to_string();
    let command = format!("{program} sim-workload --network resnet50 --batch 32 --items 1024");
    let study = |flags: &str| {
        format!("sweep --power-cap 150,300 --repeat 2 --settle 100ms {flags} -- {command}")
    };
    let line =
        study("--study real --executor slurm --slurm --gres=gpu:1 --max-jobs 1 --nodes pinned");
    let output = cluster.sweetspot(folder, &words(&line));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let local = cluster
        .command(cluster.program(), folder)
        .args(words(&study("--study here --device 0")))
        .env("SWEETSPOT_SIM", cluster.host("n4"))
        .env(
            "SWEETSPOT_NVML",
            cluster.host("n4").join("lib/libnvidia-ml.so.1"),
        )
        .output()
        .unwrap();
    assert!(local.status.success(), "{}", text(&local.stderr));
    let (jobs, here) = (
        exported(cluster, folder, "real").0,
        exported(cluster, folder, "here").0,
    );
    for point in 0..2 {
        let mean =
            |study: &Value, what: &str| study["points"][point][what]["mean"].as_f64().unwrap();
        for what in ["energy_j", "time_s"] {
            let (jobs, here) = (mean(&jobs, what), mean(&here, what));
            // Two runs have wide intervals: the means must be much closer than they are. The runs are long beside the
            // start of a program on a busy machine.
            assert!((jobs / here - 1.0).abs() < 0.1, "{what}: {jobs} {here}");
        }
    }
    let database = rusqlite::Connection::open(folder.join("real/study.db")).unwrap();
    let (runs, nodes, gpus): (i64, i64, String) = database
        .query_row("SELECT count(*), count(DISTINCT node), min(gpus) FROM run_place WHERE node LIKE 'n_' AND job LIKE '%\\__' ESCAPE '\\'", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    // Pinned runs are all on one node.
    assert_eq!((runs, nodes), (4, 1));
    assert!(gpus.starts_with("GPU-") && !gpus.contains(','), "{gpus}");
    for node in ["n1", "n2", "n3", "n4"] {
        assert_eq!(cluster.settings(node), [(300.0, None), (300.0, None)]);
    }
}
