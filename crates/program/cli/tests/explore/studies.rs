//! Stored studies: SQLite, resuming, merging, deleting, single tasks.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::common::{exported_study, sweep, sweetspot_on_host, workload};
use crate::common::{program, sweetspot, text, words};
use crate::host::TestHost;

const SIMULATED: [&str; 8] = [
    "sweep",
    "--simulate",
    "v100",
    "--network",
    "alexnet",
    "--power-cap",
    "150..300:30",
    "--repeat=4",
];

#[test]
fn a_resumed_simulated_study_has_the_same_results() {
    let folder = tempfile::tempdir().unwrap();
    let args = words("--simulate v100 --network vgg19 --repeat 6 --threads 2");
    let whole = [&["sweep"], &args[..], &["--study", "whole"]].concat();
    assert!(sweetspot(folder.path(), &whole).status.success());
    let expected = exported_study(folder.path(), "whole");
    let mut interrupted = 0;
    for moment in 0..6 {
        let study = format!("part{moment}");
        let part = [&["sweep"], &args[..], &["--study", &study]].concat();
        let mut child = program()
            .args(part)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let path = folder.path().join(&study);
        let begun = Instant::now();
        while !path.join("study.db").exists() && begun.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(7 * moment));
        let _ = child.kill();
        interrupted += usize::from(!child.wait().unwrap().success());
        let resumed = sweetspot(folder.path(), &["sweep", "--resume", &study]);
        assert!(resumed.status.success(), "{}", text(&resumed.stderr));
        assert_eq!(
            exported_study(folder.path(), &study),
            expected,
            "killed at moment {moment}"
        );
        let samples = std::fs::read_dir(path.join("samples")).unwrap();
        let whole = samples
            .flatten()
            .filter(|file| file.path().extension().is_some_and(|e| e == "parquet"));
        assert_eq!(whole.count(), 186);
    }
    assert!(
        interrupted >= 3,
        "only {interrupted} of 6 were killed in time"
    );
}

#[test]
fn gathered_tasks_give_the_same_study() {
    let folder = tempfile::tempdir().unwrap();
    let whole = [&SIMULATED[..], &["--study", "whole"]].concat();
    assert!(sweetspot(folder.path(), &whole).status.success());
    // A planned study that has not been started: all runs are deleted from a copy.
    std::fs::create_dir_all(folder.path().join("tasks/samples")).unwrap();
    for file in ["study.db", "plan.json"] {
        std::fs::copy(
            folder.path().join("whole").join(file),
            folder.path().join("tasks").join(file),
        )
        .unwrap();
    }
    let database = rusqlite::Connection::open(folder.path().join("tasks/study.db")).unwrap();
    for table in
        words("run_device run_device_phase run_phase run_value run_enforced run_warning run")
    {
        database
            .execute(&format!("DELETE FROM {table}"), [])
            .unwrap();
    }
    drop(database);
    for id in (0..24).rev() {
        let plan = if id % 2 == 0 {
            "tasks"
        } else {
            "tasks/plan.json"
        };
        let output = sweetspot(folder.path(), &["task", plan, &id.to_string()]);
        assert_eq!(
            text(&output.stdout).trim(),
            format!("tasks/tasks/{id}.json"),
            "{}",
            text(&output.stderr)
        );
    }
    let resumed = sweetspot(folder.path(), &["sweep", "--resume", "tasks"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(
        exported_study(folder.path(), "tasks"),
        exported_study(folder.path(), "whole")
    );
    assert_eq!(
        std::fs::read_dir(folder.path().join("tasks/tasks"))
            .unwrap()
            .count(),
        0
    );
    let unknown = sweetspot(folder.path(), &["task", "tasks", "24"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("has no run 24"));
}

#[test]
fn a_task_of_a_real_command_takes_its_own_lease() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = words("--power-cap 150,300 --repeat 1 --settle 0 --study st --");
    let output = sweep(&host, folder.path(), &[&args[..], &workload("64")].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = sweetspot_on_host(&host, folder.path(), &["task", "st", "0"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let task = std::fs::read_to_string(folder.path().join("st/tasks/0.json")).unwrap();
    assert!(task.contains("\"in_job\":true"), "{task}");
    // The run is stored already: the first result is kept.
    let before = exported_study(folder.path(), "st");
    assert!(
        sweetspot_on_host(&host, folder.path(), &["sweep", "--resume", "st"])
            .status
            .success()
    );
    assert_eq!(exported_study(folder.path(), "st"), before);
}

#[test]
fn until_repeats_until_the_interval_is_tight() {
    let folder = tempfile::tempdir().unwrap();
    let args = words("--repeat 2 --until 0.2% --at-most 40 --study st");
    let output = sweetspot(folder.path(), &[&SIMULATED[..7], &args].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let study = exported_study(folder.path(), "st");
    let mut runs = Vec::new();
    for point in study["points"].as_array().unwrap() {
        let count = point["runs"].as_u64().unwrap();
        runs.push(count);
        let (mean, ci) = (&point["energy_j"]["mean"], &point["energy_j"]["ci95"]);
        let half = ci[1].as_f64().unwrap() - mean.as_f64().unwrap();
        let is_tight = half <= 0.002 * mean.as_f64().unwrap();
        assert!(is_tight || count == 40, "{count} runs, {half} of {mean}");
    }
    assert!(runs.iter().max() > runs.iter().min(), "{runs:?}");
}

#[test]
fn studies_are_listed_shown_merged_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path();
    let nothing = text(&sweetspot(there, &["study", "list"]).stdout);
    assert!(nothing.contains("no studies found"), "{nothing}");
    for caps in ["150,200", "200,250,300"] {
        let args = [
            "sweep",
            "--simulate",
            "v100",
            "--network",
            "alexnet",
            "--power-cap",
            caps,
            "--repeat",
            "2",
        ];
        assert!(sweetspot(there, &args).status.success());
    }
    let list = text(&sweetspot(there, &["study", "list"]).stdout);
    assert!(
        list.contains("studies/alexnet-v100 ") && list.contains("studies/alexnet-v100-2 "),
        "{list}"
    );
    let show = text(&sweetspot(there, &["study", "show", "alexnet-v100"]).stdout);
    assert!(show.contains("6 of 6 runs done"), "{show}");
    let merge = words("study merge alexnet-v100 alexnet-v100-2 --output both");
    let merged = sweetspot(there, &merge);
    assert!(merged.status.success(), "{}", text(&merged.stderr));
    let study = exported_study(there, "both");
    let caps: Vec<i64> = study["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["settings"]["power_cap_w"].as_i64().unwrap())
        .collect();
    assert_eq!(caps, [150, 200, 250, 300]);
    // Both studies contain the same runs of 200 W and of the reference.
    assert!(
        study["points"]
            .as_array()
            .unwrap()
            .iter()
            .all(|point| point["runs"] == 2)
    );
    let again = sweetspot(there, &merge);
    assert!(text(&again.stderr).contains("there is a study in both already"));
    let other = words("sweep --simulate v100 --network vgg19 --power-cap 200 --repeat 1");
    assert!(sweetspot(there, &other).status.success());
    let unlike = sweetspot(there, &["study", "merge", "both", "vgg19-v100", "-o", "x"]);
    assert!(
        text(&unlike.stderr)
            .contains("one study measured alexnet@power_capping_2022, the other vgg19")
    );
    let asked = sweetspot(there, &["study", "delete", "both"]);
    assert!(text(&asked.stderr).contains("give --yes"));
    assert!(there.join("both").exists());
    assert!(
        sweetspot(there, &["study", "delete", "both", "--yes"])
            .status
            .success()
    );
    assert!(!there.join("both").exists());
}

#[test]
fn a_study_file_gives_the_same_study_as_its_flags() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        &SIMULATED[..],
        &["--axis", "batch=64,128", "--order", "random"],
    ]
    .concat();
    let write = [&args[..], &["--write-study", "study.toml"]].concat();
    assert!(sweetspot(folder.path(), &write).status.success());
    assert!(!folder.path().join("studies").exists());
    let file = std::fs::read_to_string(folder.path().join("study.toml")).unwrap();
    assert!(
        file.contains("power-cap = \"150..300:30\"") && file.contains("[axis]\nbatch = \"64,128\""),
        "{file}"
    );
    assert!(
        sweetspot(folder.path(), &[&args[..], &["--study", "flags"]].concat())
            .status
            .success()
    );
    assert!(
        sweetspot(folder.path(), &["sweep", "study.toml", "--study", "file"])
            .status
            .success()
    );
    assert_eq!(
        exported_study(folder.path(), "flags"),
        exported_study(folder.path(), "file")
    );
    // A flag overrides the file.
    let fewer = sweetspot(
        folder.path(),
        &["sweep", "study.toml", "--repeat", "1", "--dry-run"],
    );
    assert!(
        text(&fewer.stdout).contains("12 configurations, 1 runs each"),
        "{}",
        text(&fewer.stdout)
    );
    let written = "power-cap = [150, 200.5]\nsimulate = \"v100\"\nnetwork = \"alexnet\"\n";
    std::fs::write(folder.path().join("list.toml"), written).unwrap();
    let listed = sweetspot(folder.path(), &["sweep", "list.toml", "--dry-run"]);
    assert!(
        text(&listed.stdout).contains("power_cap_w: 2 (150, 200.5)"),
        "{}",
        text(&listed.stderr)
    );
}

#[test]
fn any_sqlite_tool_can_read_a_study() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        sweetspot(
            folder.path(),
            &[&SIMULATED[..], &["--study", "st"]].concat()
        )
        .status
        .success()
    );
    let database = rusqlite::Connection::open(folder.path().join("st/study.db")).unwrap();
    let count = |sql: &str| {
        database
            .query_row(sql, [], |row| row.get::<_, f64>(0))
            .unwrap()
    };
    assert_eq!(count("SELECT count(*) FROM run WHERE status = 'ok'"), 24.0);
    assert_eq!(count("SELECT count(*) FROM result WHERE runs = 4"), 6.0);
    let energy = count("SELECT job_gpus_j FROM result WHERE power_cap_w = 150");
    let exported_study = exported_study(folder.path(), "st")["points"][0]["energy_j"]["mean"]
        .as_f64()
        .unwrap();
    assert!((energy / exported_study - 1.0).abs() < 1e-12);
    let check: String = database
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    let mode: String = database
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .unwrap();
    assert_eq!(mode, "delete");
}
