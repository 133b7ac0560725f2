//! `run --from` uses a study only on GPUs like those that the study measured.

use std::path::Path;
use std::process::Output;

use super::{cap, text};
use crate::common::{sweetspot, words};
use crate::host::TestHost;

const STUDY: &str = "sweep --simulate v100 --network resnet50 --power-cap 150,300 --study st";

/// A folder with a study of a simulated V100, in virtual time.
fn study() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let output = sweetspot(folder.path(), &words(STUDY));
    assert!(output.status.success(), "{}", text(&output.stderr));
    folder
}

fn run_from(host: &TestHost, folder: &Path, flags: &[&str]) -> Output {
    host.sweetspot()
        .args(["run", "--from", "st"])
        .args(flags)
        .args(["--", "sh", "-c", "echo ran at $SWEETSPOT_POWER_CAP_W W"])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Expects that nothing was run or set, and a message of one line.
fn expect_refusal(host: &TestHost, output: &Output, measured: &str, here: &str) {
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    let expected = format!(
        "sweetspot: the study was measured on {measured}, but GPU {here}, so its recommendation may not hold here: "
    );
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.contains("give --force-from"), "{message}");
    assert!(!text(&output.stdout).contains("ran"));
    assert_eq!(host.writes(), "");
}

#[test]
fn a_study_of_the_same_gpu_says_where_it_was_measured() {
    let (host, folder) = (TestHost::new("v100:2"), study());
    let output = run_from(&host, folder.path(), &[]);
    let message = text(&output.stderr);
    assert!(output.status.success(), "{message}");
    assert!(message.contains("set the power cap to 150 W"), "{message}");
    assert!(
        message.contains(
            "This was measured on one Tesla V100-SXM2-16GB (simulated); this run has 2 GPUs"
        ),
        "{message}"
    );
    assert!(text(&output.stdout).starts_with("ran at 150 W"));
}

/// Without the energy of the reference nothing is known to be better than it, whatever else was measured.
#[test]
fn nothing_is_recommended_or_set_without_a_known_reference() {
    let reference = "(SELECT id FROM configuration WHERE is_reference)";
    for change in [
        format!(
            "UPDATE run SET job_gpus_j = NULL, all_gpus_j = NULL WHERE configuration = {reference}"
        ),
        format!(
            "UPDATE run SET status = 'failed', reason = 'it failed' WHERE configuration = {reference}"
        ),
    ] {
        let (host, folder) = (TestHost::new("v100"), study());
        let database = rusqlite::Connection::open(folder.path().join("st/study.db")).unwrap();
        assert!(database.execute(&change, []).unwrap() > 0);
        drop(database);
        let report = sweetspot(folder.path(), &words("report st --export-json -"));
        let document: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert!(document.get("recommendation").is_none(), "{document}");
        let shown = sweetspot(folder.path(), &words("report st"));
        let shown = text(&shown.stdout);
        assert!(shown.contains("No recommendation"), "{shown}");
        let output = run_from(&host, folder.path(), &[]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{message}");
        assert!(message.contains("recommends no setting"), "{message}");
        assert!(
            message.contains("sweep --resume st --retry-failed`"),
            "{message}"
        );
        assert!(!text(&output.stdout).contains("ran"));
        assert_eq!(host.writes(), "");
    }
}

#[test]
fn a_study_of_another_model_is_refused_unless_forced() {
    let (host, folder) = (TestHost::new("tesla_p100"), study());
    let output = run_from(&host, folder.path(), &[]);
    expect_refusal(
        &host,
        &output,
        "Tesla V100-SXM2-16GB (simulated)",
        "0 of this machine is Tesla P100-PCIE-16GB (simulated)",
    );
    let forced = run_from(&host, folder.path(), &["--force-from"]);
    let message = text(&forced.stderr);
    assert!(forced.status.success(), "{message}");
    assert!(
        message.contains(
            "This was measured on Tesla V100-SXM2-16GB (simulated); GPU 0 of this machine is Tesla P100-PCIE-16GB (simulated), so its time and energy may differ."
        ),
        "{message}"
    );
    assert!(text(&forced.stdout).starts_with("ran at 150 W"));
    assert!(host.writes().contains("power_cap 150000 mW"));
    // A setting that the GPU does not support is refused all the same.
    let host = TestHost::new("nvidia_h200");
    let forced = run_from(&host, folder.path(), &["--force-from"]);
    let message = text(&forced.stderr);
    assert_eq!(forced.status.code(), Some(125), "{message}");
    assert!(message.contains("150 W is not supported"), "{message}");
    assert_eq!(host.writes(), "");
}

#[test]
fn every_gpu_of_the_run_must_be_of_the_model() {
    let (host, folder) = (TestHost::new("v100:2,tesla_p100"), study());
    let output = run_from(&host, folder.path(), &[]);
    expect_refusal(
        &host,
        &output,
        "Tesla V100-SXM2-16GB (simulated)",
        "2 of this machine is Tesla P100-PCIE-16GB (simulated)",
    );
    let output = run_from(&host, folder.path(), &["--device", "2"]);
    assert_eq!(output.status.code(), Some(125));
    let output = run_from(&host, folder.path(), &["--device", "0,1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_study_of_a_real_gpu_is_refused_on_a_simulated_one() {
    let (host, folder) = (TestHost::new("v100"), study());
    let database = rusqlite::Connection::open(folder.path().join("st/study.db")).unwrap();
    // The same study as a real V100 would have given it.
    let subject = "UPDATE meta SET value = replace(replace(value, '\"backend\":\"sim\"', '\"backend\":\"nvml\"'),
        '\"id\":\"GPU-', '\"id\":\"GPU-0') WHERE key = 'subject'";
    assert_eq!(database.execute(subject, []).unwrap(), 1);
    drop(database);
    let output = run_from(&host, folder.path(), &[]);
    expect_refusal(
        &host,
        &output,
        "Tesla V100-SXM2-16GB (real)",
        "0 of this machine is Tesla V100-SXM2-16GB (simulated)",
    );
    let forced = run_from(&host, folder.path(), &["--force-from"]);
    assert!(forced.status.success(), "{}", text(&forced.stderr));
    assert_eq!(cap(&host), 300.0);
}

#[test]
fn force_from_needs_a_study() {
    let host = TestHost::new("v100");
    for flags in [
        &["--force-from"][..],
        &["--force-from", "--power-cap", "200W"],
    ] {
        let output = host
            .sweetspot()
            .arg("run")
            .args(flags)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(125), "{}", text(&output.stderr));
        assert_eq!(host.writes(), "");
    }
}
