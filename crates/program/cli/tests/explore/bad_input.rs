//! Bad input is rejected in one line, and nothing is lost.

use std::path::Path;
use std::process::Output;

use super::common::{settings, sweep};
use crate::common::{sweetspot, text, words};
use crate::host::TestHost;

/// Expects one line that contains these words, and no study left behind.
fn expect_rejection(output: &Output, folder: &Path, words: &str) {
    let message = text(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(2 | 125..=127)),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains(words), "{message}");
    assert!(!folder.join("studies").exists(), "{words}");
}

#[test]
fn bad_axes_and_commands_are_rejected_before_any_write() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 20] = [
        (&["--power-cap", "", "--", "true"], "the axis `` is empty"),
        (
            &["--power-cap", "300..150:5", "--", "true"],
            "is reversed: write 150..300:5",
        ),
        (
            &["--power-cap", "10,200", "--", "true"],
            "10 W is not supported",
        ),
        (&["--power-cap", "200,200", "--", "true"], "has 200 W twice"),
        (
            &["--power-cap", "150/200/300", "--", "true"],
            "3 caps, one for each GPU, but the job has 2 GPUs",
        ),
        (
            &["--core-clock", "2000", "--", "true"],
            "2000 MHz is not supported by Tesla V100-SXM2-16GB: the nearest value is 1530 MHz",
        ),
        (
            &["--gpus", "1,3", "--", "true"],
            "the number of usable GPUs is 2",
        ),
        (
            &["--gpus", "0", "--", "true"],
            "`0` is not a number of GPUs",
        ),
        (&["--axis", "batch", "--", "true"], "write NAME=VALUE"),
        (&["--axis", "batch=", "--", "true"], "no values"),
        (&["--axis", "batch=1,1", "--", "true"], "1 is given twice"),
        (
            &["--axis", "PATH=/tmp", "--", "true"],
            "this name is reserved",
        ),
        (
            &["--axis", "gpus=1", "--", "true"],
            "`gpus` is a knob of the device",
        ),
        (
            &["--axis", "a b=1", "--", "true"],
            "a name consists of letters",
        ),
        (
            &["--axis", "a=1", "--axis", "a=2", "--", "true"],
            "is given twice",
        ),
        (
            &["--power-cap", "200", "--", "echo", "{batch}"],
            "there is no axis of that name",
        ),
        (
            &[
                "--axis",
                "batch=5",
                "--gpus",
                "2",
                "--",
                "echo",
                "{batch_per_gpu}",
            ],
            "a batch of 5 cannot be divided among 2 GPUs",
        ),
        (
            &["--reference", "speed=1", "--", "true"],
            "there is no axis `speed`",
        ),
        (
            &["--power-cap", "200", "--", "/no/such/program"],
            "cannot run /no/such/program",
        ),
        (
            &["--energy-of", "node", "--", "true"],
            "needs a power meter: name it with --meter",
        ),
    ];
    for (args, words) in cases {
        expect_rejection(&sweep(&host, folder.path(), args), folder.path(), words);
    }
    assert_eq!(host.writes(), "");
}

#[test]
fn bad_flags_of_simulated_sweeps_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let simulated = ["sweep", "--simulate", "v100", "--network", "resnet50"];
    let cases: [(&[&str], &str); 7] = [
        (
            &["--power-cap", "150..300:0.02", "--repeat", "20"],
            "more than 10000: use a larger step or fewer repeats, or give --yes",
        ),
        (
            &["--power-cap", "150..300:0.02", "--repeat", "1000"],
            "more than 1000000",
        ),
        (
            &["--axis", "epochs=1,2"],
            "a simulated workload has only the parameters batch",
        ),
        (&["--axis", "batch=many"], "`many` is not a number of items"),
        (&["--limit", "time<5"], "time<5"),
        (&["--until", "0%"], "more than 0 %"),
        (&["--order", "backwards"], "interleaved, random or as-given"),
    ];
    for (args, words) in cases {
        let output = sweetspot(folder.path(), &[&simulated[..], args].concat());
        expect_rejection(&output, folder.path(), words);
    }
    expect_rejection(
        &sweetspot(folder.path(), &["sweep"]),
        folder.path(),
        "nothing to run",
    );
}

#[test]
fn files_that_are_not_studies_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path();
    std::fs::write(
        there.join("bad.toml"),
        "simulate = \"v100\"\nnetwork = \"alexnet\"\npowercap = \"150\"\n",
    )
    .unwrap();
    expect_rejection(
        &sweetspot(there, &["sweep", "bad.toml"]),
        there,
        "study file bad.toml: line 3: unknown field `powercap`",
    );
    expect_rejection(
        &sweetspot(there, &["sweep", "none.toml"]),
        there,
        "cannot read the study file none.toml",
    );
    expect_rejection(
        &sweetspot(there, &["sweep", "--resume", "none"]),
        there,
        "there is no study in none",
    );
    std::fs::create_dir(there.join("other")).unwrap();
    std::fs::write(
        there.join("other/study.db"),
        "not a database, but long enough to be looked at",
    )
    .unwrap();
    expect_rejection(
        &sweetspot(there, &["study", "show", "other"]),
        there,
        "the study in other",
    );
    let made =
        words("sweep --simulate v100 --network alexnet --power-cap 150 --repeat 1 --study st");
    assert!(sweetspot(there, &made).status.success());
    expect_rejection(
        &sweetspot(there, &made),
        there,
        "there is a study in st already",
    );
    let database = rusqlite::Connection::open(there.join("st/study.db")).unwrap();
    database.pragma_update(None, "user_version", 7).unwrap();
    drop(database);
    expect_rejection(
        &sweetspot(there, &["sweep", "--resume", "st"]),
        there,
        "has schema 7, and this program reads 1",
    );
    expect_rejection(
        &sweetspot(there, &["study", "delete", "other", "--yes"]),
        there,
        "the study in other",
    );
    assert!(there.join("other/study.db").exists());
}

#[test]
fn a_second_sweep_on_a_device_names_the_first() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let mut first = host
        .sweetspot()
        .args(words(
            "sweep --power-cap 160 --repeat 1 --study first -- sleep 3",
        ))
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while settings(&host)[0].0 != 160.0 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let second = sweep(
        &host,
        folder.path(),
        &["--power-cap", "200", "--study", "second", "--", "true"],
    );
    assert_eq!(second.status.code(), Some(125));
    let message = text(&second.stderr);
    assert!(message.contains("sweep --power-cap 160"), "{message}");
    let resumed = sweep(&host, folder.path(), &["--resume", "first"]);
    assert!(
        text(&resumed.stderr).contains("another process is working on the study"),
        "{}",
        text(&resumed.stderr)
    );
    assert!(first.wait().unwrap().success());
    assert_eq!(settings(&host), [(300.0, false)]);
}
