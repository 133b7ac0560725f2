//! A sweep is interrupted at random moments, by signals and by a full disk: the settings are restored within a second, no
//! finished run is lost, and resuming completes the same plan. `KILLS=200` runs the full number of kills
//! (scripts/torture).

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sweetspot_stats::Seed;

use super::common::{settings, sweep};
use crate::common::text;
use crate::host::{TestHost, repeat_on_hosts};

const ARGS: [&str; 8] = [
    "--power-cap",
    "160,220",
    "--core-clock",
    "1200",
    "--repeat",
    "2",
    "--settle",
    "30ms",
];
/// Two caps and the reference, each of them twice.
const RUNS: usize = 6;

/// The runs in the study: their numbers and start times.
fn stored_runs(study: &Path) -> Vec<(i64, f64)> {
    let Ok(database) = rusqlite::Connection::open(study.join("study.db")) else {
        return Vec::new();
    };
    let Ok(mut select) = database.prepare("SELECT id, started_unix_s FROM run ORDER BY id") else {
        return Vec::new();
    };
    let rows = select
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    rows.map(Result::unwrap).collect()
}

/// Returns what interrupted the sweep, and whether a setting was in force at that moment.
fn interrupt_once(host: &TestHost, number: u64) -> (&'static str, bool) {
    host.set_caps(250.0);
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("st");
    let seed = Seed::new(11).number(number);
    let how = ["KILL", "TERM", "INT", "disk"][(4.0 * seed.label("how").uniform()) as usize];
    let program = env!("CARGO_BIN_EXE_sweetspot");
    // Each run adds a line to a file when it ends.
    let args = [
        &["sweep"],
        &ARGS[..],
        &[
            "--study",
            "st",
            "--",
            "sh",
            "-c",
            "sleep 0.15; echo >> ended",
        ],
    ]
    .concat();
    let mut command = if how == "disk" {
        // No file may grow beyond this number of blocks: the database, a journal or samples.
        let blocks = 30 + (130.0 * seed.label("blocks").uniform()) as u64;
        let mut command = host.command("bash");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        command.args(["-c", &script, "bash", program]);
        command
    } else {
        host.sweetspot()
    };
    let mut child = command
        .args(&args)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut was_set = false;
    if how == "disk" {
        while child.try_wait().unwrap().is_none() {
            was_set |= settings(host) != [(250.0, false)];
            std::thread::sleep(Duration::from_millis(10));
        }
    } else {
        std::thread::sleep(Duration::from_secs_f64(
            2.2 * seed.label("moment").uniform(),
        ));
        was_set = settings(host) != [(250.0, false)];
        let signal = format!("-{how}");
        let pid = child.id().to_string();
        Command::new("kill").args([&signal, &pid]).status().unwrap();
    }
    let ended = Instant::now();
    while settings(host) != [(250.0, false)] {
        assert!(
            ended.elapsed() < Duration::from_secs(1),
            "{how} {number}: the settings are not restored"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(
        !text(&output.stderr).contains("panicked"),
        "{how} {number}: {}",
        text(&output.stderr)
    );
    if let Some(signal) = [("TERM", 15), ("INT", 2)]
        .iter()
        .find(|(name, _)| *name == how)
    {
        // The signal may come before its handler exists, during the sweep, or after its end.
        let (code, by) = (output.status.code(), output.status.signal());
        let expected = code == Some(128 + signal.1) || by == Some(signal.1) || code == Some(0);
        assert!(expected, "{how} {number}: {:?}", output.status);
        if code == Some(128 + signal.1) {
            let shown = text(&output.stderr);
            assert!(
                shown.contains(&format!("interrupted by signal {}", signal.1)),
                "{how} {number}: {shown}"
            );
        }
    }
    if !study.join("study.db").exists() {
        return (how, was_set);
    }
    let before = stored_runs(&study);
    let over = std::fs::read_to_string(folder.path().join("ended")).unwrap_or_default();
    // The last run may have ended without being stored yet.
    assert!(
        before.len() + 1 >= over.lines().count(),
        "{how} {number}: {before:?} of {over:?}"
    );
    let resumed = sweep(host, folder.path(), &["--resume", "st"]);
    assert!(
        resumed.status.success(),
        "{how} {number}: {}",
        text(&resumed.stderr)
    );
    let after = stored_runs(&study);
    assert_eq!(after.len(), RUNS, "{how} {number}");
    assert!(
        before.iter().all(|run| after.contains(run)),
        "{how} {number}: {before:?}, {after:?}"
    );
    assert_eq!(settings(host), [(250.0, false)], "{how} {number}");
    (how, was_set)
}

#[test]
fn an_interrupted_sweep_can_be_resumed() {
    let results: Vec<(&str, bool)> = repeat_on_hosts(16, interrupt_once);
    let count = |how: &str| results.iter().filter(|result| result.0 == how).count();
    let set = results.iter().filter(|result| result.1).count();
    println!(
        "{} sweeps ended: {} by KILL, {} by TERM, {} by INT, {} by the disk; {set} while a setting was in force; all were resumed to their end",
        results.len(),
        count("KILL"),
        count("TERM"),
        count("INT"),
        count("disk"),
    );
    assert!(set * 3 > results.len(), "only {set} were under way");
}
