//! Failures during a sweep: read-only mode, foreign files, failed runs, full disks, locked databases.

use std::process::Stdio;
use std::time::Duration;

use super::common::{exported_study, settings, sweep, sweetspot_on_host};
use crate::common::{NO_CONFIG, sweetspot, text, words};
use crate::host::TestHost;

#[test]
fn a_resume_respects_read_only() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = "--power-cap 150,200 --repeat 1 --settle 0 --study st -- true";
    assert!(
        sweep(&host, folder.path(), &args.split(' ').collect::<Vec<_>>())
            .status
            .success()
    );
    let before = host.writes();
    for (flags, value) in [(&["--read-only"][..], "0"), (&[][..], "1")] {
        let output = host
            .sweetspot()
            .args([&["sweep", "--resume", "st"], flags].concat())
            .env("SWEETSPOT_READ_ONLY", value)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("read-only"));
    }
    assert_eq!(host.writes(), before);
    let mixed = sweep(
        &host,
        folder.path(),
        &["--resume", "st", "--timeout", "50s"],
    );
    assert!(
        text(&mixed.stderr).contains("cannot be used with"),
        "{}",
        text(&mixed.stderr)
    );
}

#[test]
fn a_setting_of_the_reference_alone_is_reset_for_the_others() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args =
        "--power-cap 250,300 --reference core-clock=510 --repeat 2 --settle 0 --study st -- true";
    let output = sweep(&host, folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("510"),
        "{}",
        text(&output.stdout)
    );
    let locks: Vec<String> = host
        .writes()
        .lines()
        .filter(|line| line.contains("core_clock"))
        .map(str::to_owned)
        .collect();
    // The reference begins, and is in the middle of the second round: it is locked and reset twice.
    assert_eq!(
        locks,
        [
            "gpu0 lock_core_clock 510 510 MHz",
            "gpu0 reset_core_clock",
            "gpu0 lock_core_clock 510 510 MHz",
            "gpu0 reset_core_clock"
        ]
    );
    assert_eq!(settings(&host), [(300.0, false)]);
}

#[test]
fn foreign_files_in_a_folder_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("mine");
    std::fs::create_dir_all(there.join("samples")).unwrap();
    std::fs::write(there.join("samples/mine.csv"), "x").unwrap();
    let args = words("sweep --simulate v100 --network alexnet --repeat 1 --study mine");
    let output = sweetspot(folder.path(), &args);
    assert!(
        text(&output.stderr).contains("mine is not empty"),
        "{}",
        text(&output.stderr)
    );
    std::fs::remove_file(there.join("samples/mine.csv")).unwrap();
    assert!(sweetspot(folder.path(), &args).status.success());
    // Foreign files are kept when the study is deleted.
    std::fs::write(there.join("samples/mine.csv"), "x").unwrap();
    std::fs::write(there.join("report.html"), "x").unwrap();
    assert!(
        sweetspot(folder.path(), &["study", "delete", "mine", "--yes"])
            .status
            .success()
    );
    assert!(there.join("samples/mine.csv").exists() && there.join("report.html").exists());
    assert!(!there.join("study.db").exists() && !there.join("samples/0.parquet").exists());
}

#[test]
fn a_resume_runs_in_the_original_folder_and_can_retry_failed_runs() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    for place in [&one, &two] {
        std::fs::create_dir(place).unwrap();
    }
    std::fs::write(one.join("script"), "test -e ready").unwrap();
    let args = "--axis x=1,2 --repeat 1 --settle 0 --study ../st -- sh script";
    let failed = sweep(&host, &one, &args.split(' ').collect::<Vec<_>>());
    assert_eq!(failed.status.code(), Some(125), "{}", text(&failed.stderr));
    std::fs::write(one.join("ready"), "").unwrap();
    let resumed = sweep(&host, &two, &["--resume", "../st", "--retry-failed"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(exported_study(&two, "../st")["points"][1]["status"], "ok");
}

#[test]
fn a_failed_reference_ends_a_sweep_and_another_one_can_be_chosen() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args = ["--axis", "x=1,2", "--repeat", "1", "--settle", "0"];
    let command = ["--", "sh", "-c", "test ${x} = 2"];
    let output = sweep(&host, folder.path(), &[&args[..], &command].concat());
    assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
    let chosen = ["--reference", "x=2", "--objective", "power"];
    let output = sweep(
        &host,
        folder.path(),
        &[&args[..], &chosen, &command].concat(),
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("Study: studies/"), "{shown}");
    // Nothing is said to be worse that has no result.
    assert!(
        shown.contains("no other setting has a result to compare with"),
        "{shown}"
    );
}

/// What to type next follows from the recommendation: a run with the same criteria, or what failed again.
#[test]
fn the_next_command_of_a_report_follows_its_recommendation() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let job = ["--", "sh", "-c", "test ! -e fail && sleep 0.${x}"];
    let args = "--axis x=1,3,5 --reference x=3 --repeat 3 --settle 0 --study st --objective time";
    let output = sweep(&host, folder.path(), &[&words(args)[..], &job].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report = |flags: &[&str]| {
        let output = sweetspot(folder.path(), &[&["report", "st"], flags].concat());
        text(&output.stdout)
    };
    let command = "-- sh -c 'test ! -e fail && sleep 0.${x}'";
    let shown = report(&[]);
    assert!(
        shown.contains(&format!("sweetspot run --from st {command}")),
        "{shown}"
    );
    let shown = report(&words(
        "--objective energy --limit time<=+90% --prefer mean",
    ));
    let flags = "--objective energy --limit 'time<=+90%' --prefer mean";
    assert!(
        shown.contains(&format!("sweetspot run --from st {flags} {command}")),
        "{shown}"
    );
    let shown = report(&["--limit", "time<=-99%"]);
    assert!(!shown.contains("run --from"), "{shown}");
    // The reference fails in another run, and nothing can be recommended.
    std::fs::write(folder.path().join("fail"), "").unwrap();
    let more = sweep(&host, folder.path(), &words("--resume st --repeat 4"));
    assert_eq!(more.status.code(), Some(2), "{}", text(&more.stderr));
    let shown = report(&[]);
    assert!(shown.contains("No recommendation"), "{shown}");
    assert!(!shown.contains("run --from"), "{shown}");
    assert!(
        shown.contains(": sweetspot sweep --resume st --retry-failed"),
        "{shown}"
    );
}

#[test]
#[ignore = "needs NVML clients in .venv: run scripts/setup"]
fn a_cap_that_the_workload_changes_is_reported_and_kept() {
    let host = TestHost::new("v100");
    host.set_caps(300.0);
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    // The workload itself sets another cap on the simulated host.
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../.venv/bin/python");
    let script = "import pynvml as n; n.nvmlInit(); n.nvmlDeviceSetPowerManagementLimit(n.nvmlDeviceGetHandleByIndex(0), 170000)";
    let args = [
        "--axis", "x=1", "--repeat", "1", "--settle", "0", "--study", "st", "--", python, "-c",
        script,
    ];
    let output = sweep(&host, folder.path(), &args);
    assert!(
        output.status.success(),
        "{} {program}",
        text(&output.stderr)
    );
    // The sweep has set no cap, so none is put back.
    assert_eq!(settings(&host), [(170.0, false)]);
    let database = rusqlite::Connection::open(folder.path().join("st/study.db")).unwrap();
    let warning: String = database
        .query_row("SELECT text FROM run_warning", [], |row| row.get(0))
        .unwrap();
    assert!(
        warning.contains("170 W") && warning.contains("another program changed the power cap"),
        "{warning}"
    );
}

#[test]
fn timeouts_and_leftover_processes_are_handled() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let args =
        words("--read-only --axis x=1,2 --repeat 1 --timeout 500ms --settle 0 --study st --");
    let slow = sweep(&host, folder.path(), &[&args[..], &["sleep", "5"]].concat());
    assert!(
        text(&slow.stderr).contains("timeout"),
        "{}",
        text(&slow.stderr)
    );
    let marker = format!("88{}", std::process::id());
    for guarded in [true, false] {
        let study = format!("left{guarded}");
        let script = format!("setsid sleep {marker} & pgrep -cf 'sleep {marker}' >> {study}.seen");
        let mut args = vec![
            "--axis", "x=1,2", "--repeat", "2", "--warmup", "1", "--settle", "0", "--study",
            &study, "--", "bash", "-c", &script,
        ];
        if !guarded {
            args.insert(0, "--read-only");
        }
        let output = sweep(&host, folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let seen = std::fs::read_to_string(folder.path().join(format!("{study}.seen"))).unwrap();
        let most = seen.lines().map(|line| line.parse::<u32>().unwrap()).max();
        // At most the script, its own sleep and one that is just ending; never one for each earlier run.
        assert!(most <= Some(3), "{seen}");
    }
    assert!(!super::common::is_running(&marker), "nothing is left");
}

#[test]
fn a_locked_database_delays_the_sweep_and_loses_nothing() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let mut child = host
        .sweetspot()
        .args("sweep --axis x=1,2,3 --repeat 1 --settle 0 --study st -- sleep 0.3".split(' '))
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let path = folder.path().join("st/study.db");
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let database = rusqlite::Connection::open(&path).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::thread::sleep(Duration::from_secs(12));
    database.execute_batch("ROLLBACK").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(exported_study(folder.path(), "st")["points"][2]["runs"], 1);
}

#[test]
fn a_simulated_sweep_that_cannot_be_stored_ends() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 130; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let args = "sweep --simulate v100 --network alexnet --power-cap 150..300:0.5 --repeat 1 --no-samples --study st";
    let output = std::process::Command::new("timeout")
        .args(["30", "bash", "-c", script, "bash", program])
        .args(args.split(' '))
        .current_dir(folder.path())
        .env("XDG_CONFIG_HOME", NO_CONFIG)
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("resume with `sweetspot sweep --resume st`"),
        "{message}"
    );
    let resumed = sweetspot(folder.path(), &["sweep", "--resume", "st"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
}

#[test]
fn bad_values_in_a_study_file_are_rejected_like_bad_flags() {
    let host = TestHost::new("v100");
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("repeat = 0", "repeat must be 1 to 10000"),
        ("timeout = \"0 s\"", "timeout must be more than 0"),
        ("until = \"-50 %\"", "until must be more than 0 %"),
        ("settle = \"-3 s\"", "settle must be from 0"),
        ("settle = \"1000000000000 s\"", "settle must be from 0"),
        ("cool-to = \"-300 C\"", "cool-to must be from 0"),
        ("warmup = 1000000000", "warmup must be at most 1000"),
        ("command = []", "the command is empty"),
    ];
    for (line, words) in cases {
        let command = if line.starts_with("command") {
            ""
        } else {
            "command = [\"true\"]\n"
        };
        std::fs::write(folder.path().join("bad.toml"), format!("{command}{line}\n")).unwrap();
        let output = sweetspot_on_host(&host, folder.path(), &["sweep", "bad.toml"]);
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(
            text(&output.stderr).contains(words),
            "{line}: {}",
            text(&output.stderr)
        );
    }
    let many: Vec<String> = (0..900).map(|value| value.to_string()).collect();
    let axes: Vec<String> = ["a", "b", "c"]
        .map(|name| format!("{name}={}", many.join(",")))
        .to_vec();
    let args = [
        "--axis", &axes[0], "--axis", &axes[1], "--axis", &axes[2], "--", "true",
    ];
    let output = sweep(&host, folder.path(), &args);
    assert!(
        text(&output.stderr).contains("more than 1000000"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_configuration_of_a_simulated_study_is_adapted_to_the_machine() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let args = words("sweep --simulate v100 --network resnet50 --power-cap 150,300 --study st");
    assert!(sweetspot(folder.path(), &args).status.success());
    let args = [
        "run",
        "--from",
        "st",
        "--",
        "sh",
        "-c",
        "echo {gpus} {batch_per_gpu} {power_cap} $batch $CUDA_VISIBLE_DEVICES",
    ];
    let output = sweetspot_on_host(&host, folder.path(), &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).starts_with("2 64 150 128 0,1\n"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_program_that_disappears_ends_the_sweep_with_code_127() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("v100");
    let program = folder.path().join("once");
    std::fs::write(&program, "#!/bin/sh\nrm \"$0\"\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let output = host
        .sweetspot()
        .args("sweep --power-cap 200,300 --repeat 1 --settle 0s --study kept --".split(' '))
        .arg(&program)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(127), "{output:?}");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("--resume kept"), "{message}");
}
