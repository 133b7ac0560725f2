//! `sweep --resume STUDY --repeat N` adds runs to a study.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::common::{exported_study, settings, sweep};
use crate::common::{program, sweetspot, text, words};
use crate::host::TestHost;

const SIMULATED: &str = "sweep --simulate v100 --network alexnet --power-cap 150..300:30";

/// Runs the program in a folder, and expects it to succeed.
fn succeed(folder: &Path, line: &str) -> String {
    let output = sweetspot(folder, &words(line));
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Expects the program to reject a command line with one line that contains these words.
fn reject(folder: &Path, line: &str, expected: &str) {
    let output = sweetspot(folder, &words(line));
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {message}");
    assert_eq!(message.lines().count(), 1, "{line}: {message}");
    assert!(message.contains(expected), "{line}: {message}");
}

/// Every row of every table of a study but the time of its creation.
fn rows(study: &Path) -> Vec<String> {
    let database = Connection::open(study.join("study.db")).unwrap();
    let tables =
        "run run_device run_phase run_value run_enforced run_warning configuration parameter meta";
    let mut rows = Vec::new();
    for table in words(tables) {
        let mut select = database
            .prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2"))
            .unwrap();
        let columns = select.column_count();
        let found = select.query_map([], |row| {
            let cells = (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column));
            cells.collect::<Result<Vec<_>, _>>()
        });
        rows.extend(
            found
                .unwrap()
                .map(|row| format!("{table} {:?}", row.unwrap())),
        );
    }
    rows.retain(|row| !row.contains("created_unix_s"));
    rows
}

/// The name and the content of every file of samples.
fn samples(study: &Path) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(study.join("samples")).unwrap().flatten();
    let mut files: Vec<(String, Vec<u8>)> = files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(file.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// Expects two studies to be equal to the last bit.
fn expect_same(folder: &Path, one: &str, other: &str) {
    let (a, b) = (folder.join(one), folder.join(other));
    assert_eq!(rows(&a), rows(&b), "{one}, {other}");
    assert!(samples(&a) == samples(&b), "{one}, {other}: samples differ");
    let plan = |study: &Path| {
        let text = std::fs::read_to_string(study.join("plan.json")).unwrap();
        let mut plan: serde_json::Value = serde_json::from_str(&text).unwrap();
        // The studies were not created at the same moment.
        plan.as_object_mut()
            .unwrap()
            .remove("created_unix_s")
            .unwrap();
        plan
    };
    assert_eq!(plan(&a), plan(&b));
    assert_eq!(exported_study(folder, one), exported_study(folder, other));
}

#[test]
fn added_runs_give_the_same_study_as_one_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let variants = [
        "--order interleaved",
        "--order random",
        "--order as-given",
        "--axis batch=64,128",
        // The precision asks for more runs of some configurations than the first number of repeats.
        "--until 0.05%",
    ];
    for (number, flags) in variants.into_iter().enumerate() {
        let study = |name: &str| format!("{name}{number}");
        let (whole, parts) = (study("whole"), study("parts"));
        succeed(
            folder,
            &format!("{SIMULATED} {flags} --repeat 5 --study {whole}"),
        );
        succeed(
            folder,
            &format!("{SIMULATED} {flags} --repeat 3 --study {parts}"),
        );
        let before = rows(&folder.join(&parts));
        let shown = succeed(folder, &format!("sweep --resume {parts} --repeat 5"));
        expect_same(folder, &whole, &parts);
        let after = rows(&folder.join(&parts));
        let earlier = before.iter().filter(|row| !row.starts_with("meta"));
        assert!(
            earlier.into_iter().all(|row| after.contains(row)),
            "{flags}"
        );
        assert!(shown.contains(&format!("Study: {parts}")), "{shown}");
    }
}

#[test]
fn runs_are_added_to_an_unfinished_study_and_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = "sweep --simulate v100 --network vgg19 --power-cap 150..300:10 --threads 2";
    succeed(folder, &format!("{args} --repeat 8 --study whole"));
    let mut unfinished = 0;
    for moment in 0..5 {
        let study = format!("part{moment}");
        let path = folder.join(&study);
        let is_begun = || path.join("study.db").exists();
        let first = format!("{args} --repeat 4 --study {study}");
        let added = format!("sweep --resume {study} --repeat 8 --threads 2");
        for (line, wait) in [(&first, 6 * moment), (&added, 11 * moment)] {
            let mut child = program()
                .args(words(line))
                .current_dir(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let begun = Instant::now();
            while !is_begun() && begun.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(wait));
            let _ = child.kill();
            unfinished += usize::from(!child.wait().unwrap().success());
        }
        let before = rows(&path);
        // The second process may have been killed before it stored the new number.
        succeed(folder, &format!("sweep --resume {study} --repeat 8"));
        let after = rows(&path);
        let earlier = before.iter().filter(|row| !row.starts_with("meta"));
        assert!(
            earlier.into_iter().all(|row| after.contains(row)),
            "{study}"
        );
        expect_same(folder, "whole", &study);
    }
    assert!(
        unfinished >= 6,
        "only {unfinished} of 12 were killed in time"
    );
}

/// Deletes the runs of a study whose identifiers fulfil a condition, such as `= 17`.
fn delete_runs(study: &Path, condition: &str) {
    let database = Connection::open(study.join("study.db")).unwrap();
    for (table, column) in [
        ("run_device", "run"),
        ("run_device_phase", "run"),
        ("run_phase", "run"),
        ("run", "id"),
    ] {
        let sql = format!("DELETE FROM {table} WHERE {column} {condition}");
        database.execute(&sql, []).unwrap();
    }
}

#[test]
fn an_interrupted_addition_continues_without_the_number() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &format!("{SIMULATED} --repeat 4 --study whole"));
    succeed(folder, &format!("{SIMULATED} --repeat 2 --study st"));
    succeed(folder, "sweep --resume st --repeat 4");
    // As if a kill had come after the new number was stored: the plan file is old, and added runs are missing.
    succeed(folder, &format!("{SIMULATED} --repeat 2 --study old"));
    std::fs::copy(folder.join("old/plan.json"), folder.join("st/plan.json")).unwrap();
    delete_runs(&folder.join("st"), ">= 14");
    succeed(folder, "sweep --resume st");
    expect_same(folder, "whole", "st");
}

#[test]
fn added_runs_can_be_made_as_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    succeed(folder, &format!("{SIMULATED} --repeat 3 --study whole"));
    succeed(folder, &format!("{SIMULATED} --repeat 2 --study st"));
    reject(folder, "task st 17", "has no run 17");
    // A dry run shows the new plan and stores nothing.
    let before = rows(&folder.join("st"));
    let shown = succeed(folder, "sweep --resume st --repeat 3 --dry-run");
    assert!(
        shown.contains("6 configurations, 3 runs each: 18 runs"),
        "{shown}"
    );
    assert!(shown.contains("12 runs are done, 6 are missing"), "{shown}");
    assert_eq!(rows(&folder.join("st")), before);
    succeed(folder, "sweep --resume st --repeat 3");
    delete_runs(&folder.join("st"), "= 17");
    succeed(folder, "task st 17");
    succeed(folder, "study gather st");
    expect_same(folder, "whole", "st");
}

#[test]
fn a_study_that_was_not_sure_is_continued_until_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let flags = "--until sure --at-most 12";
    succeed(
        folder,
        &format!("{SIMULATED} --repeat 4 {flags} --study whole"),
    );
    succeed(folder, &format!("{SIMULATED} --repeat 4 --study st"));
    succeed(folder, &format!("sweep --resume st {flags}"));
    expect_same(folder, "whole", "st");
    reject(
        folder,
        "sweep --resume st --at-most 3",
        "at-most must not be less",
    );
}

#[test]
fn numbers_that_cannot_be_added_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Five runs are the default.
    succeed(folder, &format!("{SIMULATED} --study st"));
    let before = rows(&folder.join("st"));
    reject(
        folder,
        "sweep --resume st --repeat 4",
        "the study has 5 runs of each configuration already",
    );
    reject(
        folder,
        "sweep --resume st --repeat 0",
        "0 is not in 1..=10000",
    );
    for flags in ["--order random", "--seed 2"] {
        reject(
            folder,
            &format!("sweep --resume st --repeat 9 {flags}"),
            "cannot be used with",
        );
    }
    reject(
        folder,
        "sweep --resume st --repeat 10000",
        "the study has 60000 runs, more than 10000",
    );
    succeed(folder, "sweep --resume st --repeat 5");
    assert_eq!(rows(&folder.join("st")), before);

    succeed(
        folder,
        &format!("{SIMULATED} --strategy golden --repeat 2 --study search"),
    );
    reject(
        folder,
        "sweep --resume search --repeat 9",
        "its golden search chooses what to run",
    );
    succeed(folder, &format!("{SIMULATED} --seed 2 --study other"));
    succeed(folder, "study merge st other --output both");
    reject(
        folder,
        "sweep --resume both --repeat 50",
        "a merged study cannot be resumed",
    );
}

#[test]
fn runs_of_a_command_are_added_in_the_order_of_the_plan() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let command = "echo $SWEETSPOT_POWER_CAP_W >> order; test $SWEETSPOT_POWER_CAP_W != 250";
    let args = words("--power-cap 150,200,250,300 --repeat 2 --settle 0 --study st --");
    let args = [&args[..], &["sh", "-c", command]].concat();
    // One configuration fails, which is no reason not to add runs of the others.
    let first = sweep(&host, folder.path(), &args);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    let order = || std::fs::read_to_string(folder.path().join("order")).unwrap();
    let caps = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(caps(&order()), words("300 150 200 250 300 200 150"));
    std::fs::remove_file(folder.path().join("order")).unwrap();
    let more = sweep(&host, folder.path(), &["--resume", "st", "--repeat", "4"]);
    assert_eq!(more.status.code(), Some(1), "{}", text(&more.stderr));
    assert_eq!(caps(&order()), words("150 200 300 300 200 150"));
    assert_eq!(settings(&host), [(300.0, false)]);
    let study = exported_study(folder.path(), "st");
    let runs = |index: usize| study["points"][index]["runs"].as_u64();
    assert_eq!([0, 1, 3].map(runs), [Some(4); 3]);
}

#[test]
fn a_killed_addition_of_a_command_loses_no_run() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = words("--power-cap 200,300 --repeat 1 --settle 0 --study st -- sleep 0.1");
    let first = sweep(&host, folder, &args);
    assert!(first.status.success(), "{}", text(&first.stderr));
    // Numbers and start times of the stored runs.
    let stored = || -> Vec<(i64, f64)> {
        let database = Connection::open(folder.join("st/study.db")).unwrap();
        let mut select = database
            .prepare("SELECT id, started_unix_s FROM run ORDER BY id")
            .unwrap();
        let runs = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        runs.unwrap().map(Result::unwrap).collect()
    };
    let mut before = stored();
    assert_eq!(before.len(), 2);
    for signal in ["-KILL", "-INT", "-TERM"] {
        let mut child = host
            .sweetspot()
            .args(["sweep", "--resume", "st", "--repeat", "12"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while stored().len() < before.len() + 3 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let pid = child.id().to_string();
        Command::new("kill").args([signal, &pid]).status().unwrap();
        child.wait().unwrap();
        let after = stored();
        assert!(after.len() >= before.len() + 3, "{signal}: {after:?}");
        assert!(after.len() < 24, "{signal} came too late");
        assert_eq!(after[..before.len()], before[..], "{signal}");
        before = after;
        let killed = Instant::now();
        while settings(&host) != [(300.0, false)] {
            assert!(killed.elapsed() < Duration::from_secs(1), "{signal}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let resumed = sweep(&host, folder, &["--resume", "st"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let after = stored();
    assert_eq!(after.len(), 24);
    assert!(before.iter().all(|run| after.contains(run)));
}
