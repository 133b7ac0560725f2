//! Damaged databases of studies.

use std::path::Path;

use sweetspot_decide::{Criteria, Objective};
use sweetspot_report::{ReportExtras, report_markdown, study_csv, study_html, study_json};
use sweetspot_study::Store;

use super::{cases, damage, run_cases};
use crate::common::{sweetspot, text, words};

/// Makes a small study.
fn make_study(folder: &Path) {
    let sweep =
        "sweep --simulate v100 --network resnet50 --power-cap 150,200,300 --repeat 2 --study s";
    let output = sweetspot(folder, &words(sweep));
    assert!(output.status.success(), "{output:?}");
}

/// Reads a study, and writes every kind of document about it, as `report` does.
fn read_and_report(folder: &Path) {
    let Ok(store) = Store::open(folder) else {
        return;
    };
    let Ok(study) = store.study(None) else {
        return;
    };
    let criteria = Criteria::from(Objective::Edp);
    let _ = report_markdown(&study, &criteria, None);
    let _ = serde_json::to_string(&study_json(&study, &criteria));
    let _ = study_csv(&study);
    let outline = store.outline();
    let extras = ReportExtras {
        outline: outline.as_ref().ok(),
        timelines: &[],
        grouped: None,
        reproduction: None,
    };
    let _ = study_html(&study, &criteria, &extras);
}

#[test]
fn studies() {
    let folder = tempfile::tempdir().unwrap();
    make_study(folder.path());
    let study = folder.path().join("s");
    let valid = std::fs::read(study.join("study.db")).unwrap();
    let texts: Vec<(String, String)> = {
        let database = rusqlite::Connection::open(study.join("study.db")).unwrap();
        let mut select = database.prepare("SELECT key, value FROM meta").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let damaged = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = damaged.path().join("study.db");
    run_cases(cases(300, 50), |random| {
        if random.below(2) == 0 {
            std::fs::write(&path, damage(random, &valid)).unwrap();
        } else {
            std::fs::write(&path, &valid).unwrap();
            let database = rusqlite::Connection::open(&path).unwrap();
            let _ = database.execute_batch("PRAGMA synchronous=OFF; PRAGMA journal_mode=MEMORY");
            let (key, value) = &texts[random.below(texts.len())];
            let value = damage(random, value.as_bytes());
            let value = String::from_utf8_lossy(&value).into_owned();
            database
                .execute("UPDATE meta SET value = ?1 WHERE key = ?2", [&value, key])
                .unwrap();
            let figure = random.pick(&["-1", "1e999", "-1e999", "'x'", "NULL", "1e300"]);
            let column = random.pick(&["time_s", "items", "job_gpus_j", "configuration", "repeat"]);
            let row = random.below(8);
            let _ = database.execute(
                &format!("UPDATE run SET {column} = {figure} WHERE id = {row}"),
                [],
            );
        }
        read_and_report(damaged.path());
    });
}

#[test]
fn impossible_studies_are_refused_with_one_sentence() {
    for (change, expected) in [
        (
            "UPDATE meta SET value = json_set(value, '$.devices', json('[]')) WHERE key = 'subject'",
            "the study has no device",
        ),
        (
            "UPDATE meta SET value = json_set(value, '$.reference', 99) WHERE key = 'plan'",
            "the reference is configuration 99 of 3",
        ),
        (
            "UPDATE meta SET value = json_set(value, '$.axes', json((WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
             WHERE i < 20000) SELECT json_group_array('power-cap') FROM n))) WHERE key = 'plan'",
            "the study has more than 64 axes",
        ),
        (
            "UPDATE meta SET value = json_set(value, '$.axes', json('[\"power-cap\",\"power-cap\"]')) WHERE key = 'plan'",
            "an axis is there twice",
        ),
        (
            "UPDATE meta SET value = json_set(value, '$.configurations[0].parameters', json((WITH RECURSIVE n(i) AS (SELECT 1 \
             UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT json_group_object('p' || i, '1') FROM n))) \
             WHERE key = 'plan'",
            "a configuration has more than 256 parameters",
        ),
        (
            "UPDATE run SET time_s = 1e999 WHERE id = 1",
            "run 1: the time of a run is inf",
        ),
        (
            "UPDATE run SET time_s = -3.0 WHERE id = 0",
            "run 0: the time of a run is -3",
        ),
        (
            "UPDATE run SET job_gpus_j = -1.0 WHERE id = 2",
            "run 2: the energy of a run is -1",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        make_study(folder.path());
        let database = rusqlite::Connection::open(folder.path().join("s/study.db")).unwrap();
        assert_eq!(database.execute(change, []).unwrap(), 1, "{change}");
        drop(database);
        let begun = std::time::Instant::now();
        let output = sweetspot(folder.path(), &["report", "s"]);
        assert!(begun.elapsed() < super::MAX_TIME, "{change}");
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{change}: {message}");
        assert!(
            message.contains(expected) && message.lines().count() == 1,
            "{message}"
        );
    }
}

#[test]
fn a_link_in_a_study_is_not_followed_when_it_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    make_study(folder.path());
    let precious = folder.path().join("precious");
    std::fs::rename(folder.path().join("s/samples"), &precious).unwrap();
    std::os::unix::fs::symlink(&precious, folder.path().join("s/samples")).unwrap();
    let before = std::fs::read_dir(&precious).unwrap().count();
    let output = sweetspot(folder.path(), &["study", "delete", "s", "--yes"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(&precious).unwrap().count(), before);
    assert!(!folder.path().join("s").exists());
}

/// Somebody else may have made the study.
#[test]
fn a_lock_that_is_a_pipe_or_a_link_is_neither_waited_for_nor_followed() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path();
    make_study(there);
    let (lock, elsewhere) = (there.join("s/lock"), there.join("elsewhere"));
    let make_pipe = || {
        let made = std::process::Command::new("mkfifo").arg(&lock).status();
        assert!(made.unwrap().success());
    };
    let make_link = || std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    let kinds: [&dyn Fn(); 2] = [&make_pipe, &make_link];
    for make in kinds {
        std::fs::remove_file(&lock).unwrap();
        make();
        for line in ["study delete s --yes", "sweep --resume s --repeat 6"] {
            let output = sweetspot(there, &words(line));
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {said}");
            assert!(said.contains("its lock is not a file"), "{line}: {said}");
            assert!(!elsewhere.exists(), "{line}");
        }
    }
}
