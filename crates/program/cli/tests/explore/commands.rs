//! Sweeps that run a command under each configuration.

use super::common::{
    exported_study, is_running, number, settings, sweep, sweetspot_on_host, workload,
};
use crate::common::{text, words};
use crate::host::TestHost;

#[test]
fn a_lower_cap_saves_energy_and_settings_are_restored() {
    let host = TestHost::new("v100");
    host.set_caps(250.0);
    let folder = tempfile::tempdir().unwrap();
    let args = words("--power-cap 150,300 --repeat 2 --settle 200ms --study st --");
    let output = sweep(
        &host,
        folder.path(),
        &[&args[..], &workload("256")].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("Study: st"));
    assert_eq!(settings(&host), [(250.0, false)]);
    let study = exported_study(folder.path(), "st");
    let points = study["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    let [low, high] = [&points[0], &points[1]];
    for point in [low, high] {
        assert_eq!(
            (&point["runs"], &point["items"]),
            (&2.into(), &256.0.into())
        );
        assert_eq!(point["energy_by_device_j"].as_object().unwrap().len(), 1);
    }
    let (saved, lost) = (
        number(&low["vs_reference"]["energy"]),
        number(&low["vs_reference"]["time"]),
    );
    assert!((-0.45..-0.2).contains(&saved), "{saved}");
    assert!((0.1..0.5).contains(&lost), "{lost}");
    assert!(number(&low["average_power_w"]) < 155.0);
    // The samples of each run are stored.
    for run in 0..4 {
        let file = folder.path().join(format!("st/samples/{run}.parquet"));
        let series = sweetspot_study::read_samples(std::fs::File::open(file).unwrap()).unwrap();
        assert!(
            series.iter().any(|series| series.source == "counter"),
            "{series:?}"
        );
    }
}

#[test]
fn device_writes_of_a_sweep_match_snapshot() {
    let host = TestHost::new("v100:2");
    host.set_caps(250.0);
    let folder = tempfile::tempdir().unwrap();
    let args = "--power-cap 160,200 --core-clock 1200 --gpus 1,2 --repeat 1 --settle 10ms --study st -- true";
    let args: Vec<&str> = args.split(' ').collect();
    let output = sweep(&host, folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(settings(&host), [(250.0, false), (250.0, false)]);
    snapbox::assert_data_eq!(
        host.writes(),
        snapbox::file!["../snapshots/sweep-writes.txt"].raw()
    );
}

#[test]
fn gpus_and_parameters_are_passed_to_the_command() {
    let host = TestHost::new("v100:3");
    let folder = tempfile::tempdir().unwrap();
    let script = "echo $CUDA_VISIBLE_DEVICES $batch {batch_per_gpu} {precision} {{batch}} $SWEETSPOT_GPUS >> seen";
    let args = [
        "--device",
        "0,2",
        "--gpus",
        "1,2",
        "--axis",
        "batch=64,128",
        "--axis",
        "precision=bf16",
        "--repeat",
        "1",
        "--settle",
        "0",
        "--order",
        "as-given",
        "--study",
        "st",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = sweep(&host, folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // The reference, with the most GPUs and the first batch size, begins.
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    assert_eq!(
        seen,
        "0,2 64 32 bf16 {batch} 2\n0 64 64 bf16 {batch} 1\n0 128 128 bf16 {batch} 1\n0,2 128 64 bf16 {batch} 2\n"
    );
    // Idle GPUs are measured too, and counted separately.
    let all = |of: &str| {
        let output = sweetspot_on_host(
            &host,
            folder.path(),
            &[
                "study",
                "export",
                "st",
                "--energy-of",
                of,
                "--export-json",
                "-",
            ],
        );
        let study: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        study["points"][0].clone()
    };
    let (job, every) = (all("job-gpus"), all("all-gpus"));
    assert_eq!(job["energy_by_device_j"].as_object().unwrap().len(), 3);
    let ratio = number(&every["energy_j"]["mean"]) / number(&job["energy_j"]["mean"]);
    assert!(
        (2.0..4.0).contains(&ratio),
        "three idle GPUs against one: {ratio}"
    );
}

#[test]
fn each_gpu_can_have_its_own_cap() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let args = words("--power-cap 150/250,200 --gpus 2 --repeat 1 --settle 0 --study st -- true");
    let output = sweep(&host, folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let written = host.writes();
    let begin: Vec<&str> = written.lines().take(2).collect();
    assert_eq!(
        begin,
        ["gpu0 power_cap 150000 mW", "gpu1 power_cap 250000 mW"]
    );
    let study = exported_study(folder.path(), "st");
    assert_eq!(
        study["points"][0]["settings"]["power_cap_w"],
        serde_json::json!([150, 250])
    );
    assert_eq!(study["points"][1]["settings"]["power_cap_w"], 200);
}

#[test]
fn failed_runs_are_reported_and_the_sweep_continues() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let script = "case {case} in memory) echo 'RuntimeError: CUDA out of memory' >&2; exit 1;; slow) sleep 60;; bad) echo first; echo last; exit 9;; esac";
    let args = [
        "--axis",
        "case=good,memory,slow,bad",
        "--timeout",
        "700ms",
        "--repeat",
        "3",
        "--settle",
        "0",
        "--study",
        "st",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = sweep(&host, folder.path(), &args);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("3 of 4 configurations failed"));
    let study = exported_study(folder.path(), "st");
    let points = study["points"].as_array().unwrap();
    let status: Vec<&str> = points
        .iter()
        .map(|point| point["status"].as_str().unwrap())
        .collect();
    assert_eq!(status, ["ok", "out-of-memory", "timeout", "failed"]);
    // A configuration that failed is not repeated.
    let shown = text(&sweetspot_on_host(&host, folder.path(), &["study", "show", "st"]).stdout);
    assert_eq!(shown.matches("timeout").count(), 1, "{shown}");
    assert!(
        shown.contains("the command exited with code 9: last\n  | first\n  | last\n"),
        "{shown}"
    );
    assert_eq!(settings(&host), [(300.0, false)]);
    assert!(!is_running("sleep 60"), "the slow command was ended");
}

#[test]
fn parameters_can_be_swept_read_only() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = words("--read-only --axis batch=1,2 --repeat 1 --settle 0 --study st -- true");
    let output = sweep(&host, folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(host.writes(), "");
    let refused = sweep(
        &host,
        folder.path(),
        &["--read-only", "--power-cap", "200", "--", "true"],
    );
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("read-only"));
}

#[test]
fn run_uses_the_best_setting_of_a_study() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = words("--power-cap 150,200,300 --repeat 3 --settle 100ms --study st --");
    let output = sweep(
        &host,
        folder.path(),
        &[&args[..], &workload("256")].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let caps = |more: &[&str]| {
        let before = host.writes().lines().count();
        let args = [
            &["run", "--from", "st"],
            more,
            &["--export-json", "run.json", "--"],
            &workload("256"),
        ]
        .concat();
        let output = sweetspot_on_host(&host, folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let run = std::fs::read_to_string(folder.path().join("run.json")).unwrap();
        let run: serde_json::Value = serde_json::from_str(&run).unwrap();
        let energy = number(&run["energy_j"]);
        let written = host
            .writes()
            .lines()
            .nth(before)
            .unwrap_or_default()
            .to_owned();
        (written, energy)
    };
    let (least, low) = caps(&["--objective", "energy"]);
    assert_eq!(least, "gpu0 power_cap 150000 mW");
    let (fast, high) = caps(&["--objective", "energy", "--limit", "time<=+12%"]);
    assert_eq!(fast, "gpu0 power_cap 200000 mW");
    assert!(low < high, "{low} J at 150 W, {high} J at 200 W");
    let impossible = sweetspot_on_host(
        &host,
        folder.path(),
        &["run", "--from", "st", "--limit", "time<=-50%", "--", "true"],
    );
    assert_eq!(impossible.status.code(), Some(125));
    assert!(text(&impossible.stderr).contains("no configuration meets every limit"));
}

#[test]
fn a_cap_that_the_board_does_not_enforce_is_recorded_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let v100 = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let fault = "[[fault]]\nkind = \"board-limit\"\nlimit = \"220 W\"\n";
    let profile = folder.path().join("my.toml");
    std::fs::write(&profile, format!("{v100}\n{fault}")).unwrap();
    let host = TestHost::new(profile.to_str().unwrap());
    let args =
        words("--power-cap 200,260 --order as-given --repeat 2 --settle 0 --study st -- true");
    let real = sweep(&host, folder.path(), &args);
    let args =
        words("sweep --simulate my.toml --network resnet50 --power-cap 200,260 --study virtual");
    let simulated = crate::common::sweetspot(folder.path(), &args);
    for (output, name) in [(real, "st"), (simulated, "virtual")] {
        let shown = text(&output.stdout);
        assert!(
            shown.contains("260 W was requested, but the device enforces 220 W"),
            "{shown}{}",
            text(&output.stderr)
        );
        let study = exported_study(folder.path(), name);
        assert!(study["points"][0].get("enforced").is_none());
        let enforced = &study["points"][1]["enforced"][0];
        assert_eq!(
            (&enforced["enforced_w"], &enforced["reason"]),
            (&220.0.into(), &"board-limit".into())
        );
        let database =
            rusqlite::Connection::open(folder.path().join(name).join("study.db")).unwrap();
        let count = |sql: &str| {
            database
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .unwrap()
        };
        // It is recorded for every run, not only for the first one after the cap was set.
        let recorded = count(
            "SELECT count(*) FROM run_enforced JOIN run ON run.id = run WHERE configuration = 1",
        );
        assert_eq!(
            recorded,
            count("SELECT count(*) FROM run WHERE configuration = 1")
        );
    }
}

#[test]
fn times_of_phases_are_known_where_their_energy_is_not() {
    let host = TestHost::new("titan_x_pascal:2");
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let job = "sim-workload --network caffenet --ranks {gpus} --batch {batch} --items 256";
    let args = words("--gpus 2 --axis batch=64,128 --repeat 1 --settle 100ms --study st --");
    let output = sweep(
        &host,
        folder.path(),
        &[&args[..], &[program], &words(job)].concat(),
    );
    let said = text(&output.stderr) + &text(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("No energy by phase where it is `-`"),
        "{said}"
    );
    let study = exported_study(folder.path(), "st");
    for point in study["points"].as_array().unwrap() {
        let (forward, batch) = (&point["phases"]["forward"], &point["batch"]);
        assert!(forward.get("energy_j").is_none(), "{point}");
        let reason = point["phases_refused"].as_str().unwrap();
        assert!(reason.contains("readings"), "{reason}");
        let (share, whole) = (number(&forward["time_s"]), number(&point["time_s"]["mean"]));
        assert!(share > 0.0 && share < whole, "{point}");
        let each = forward["time_by_device_s"].as_object().unwrap();
        assert_eq!(each.len(), 2, "{point}");
        assert!(number(&batch["phases"]["backward"]["time_s"]) > 0.0);
    }
    let shown = text(&output.stdout);
    assert!(shown.contains("forward"), "{shown}");
}

#[test]
fn the_time_left_is_that_of_whole_runs() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let job = format!("sleep 1.5; exec {}", workload("64").join(" "));
    let args = "--power-cap 200,300 --repeat 1 --settle 100ms --window phase:forward --study st --";
    let command = ["sh", "-c", &job];
    let output = sweep(&host, folder.path(), &[&words(args)[..], &command].concat());
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let study = exported_study(folder.path(), "st");
    assert!(number(&study["reference"]["time_s"]["mean"]) < 1.0);
    let (_, took) = said.split_once("the reference took ").expect(&said);
    let seconds: f64 = took.split(' ').next().unwrap().parse().unwrap();
    assert!(seconds >= 1.5, "{said}");
}

/// Ranks that mark different phases are named once; ranks with different batches make their run fail, and nothing is said
/// about what limits its load.
#[test]
fn ranks_that_disagree_are_named() {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/marks.py");
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let sweep = |kind: &str| {
        let args = words("sweep --power-cap 200,300 --repeat 1 --settle 10ms --no-study --");
        let mut command = host.sweetspot();
        command.args([&args[..], &["python3", script, kind]].concat());
        command.current_dir(folder.path());
        command.env("PYTHONPATH", client);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().unwrap();
        text(&output.stdout) + &text(&output.stderr)
    };
    let shown = sweep("differing");
    let told =
        shown.matches("the ranks disagree on the phases: rank 1 marked fwd, but rank 0 forward");
    assert_eq!(told.count(), 1, "{shown}");
    let shown = sweep("unequal");
    assert!(
        shown.contains("rank 1 reported a batch of 32, but rank 0 64"),
        "{shown}"
    );
    assert!(!shown.contains("does not limit this load"), "{shown}");
}

/// The accuracy that a program reports over its link is weighed as one from a file is.
#[test]
fn accuracy_from_the_link_is_explained() {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/link/marks.py");
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = words("sweep --axis batch=64,256 --repeat 3 --settle 10ms --no-study --");
    let mut command = host.sweetspot();
    command.args([&args[..], &["python3", script, "accurate"]].concat());
    command.current_dir(folder.path()).env("PYTHONPATH", client);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let shown = text(&command.output().unwrap().stdout);
    let sentence = "Accuracy: without regard to it, use batch 256 (accuracy 55.0 %); with accuracy within 5 points of the best (76.0 % at batch 64), use batch 64";
    assert!(shown.contains(sentence), "{shown}");
}
