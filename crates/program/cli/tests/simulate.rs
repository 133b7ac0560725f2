//! `sweetspot simulate --errors`, `--list` and `--fit`.

use std::path::Path;

use crate::common::{sweetspot, text};
use serde_json::Value;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn measured() -> String {
    let file = "../../../data/measured_h200/batch_study_inference.csv";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    path.to_string_lossy().into_owned()
}

/// Expects to be rejected with one line and no file left behind, and returns the line.
fn expect_rejection(args: &[&str]) -> String {
    let folder = folder();
    let output = sweetspot(folder.path(), args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(text(&output.stdout), "");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    message
}

#[test]
fn errors_of_one_study_are_shown() {
    let folder = folder();
    for name in ["batch_sizer_2021", "batch-sizer-2021"] {
        let output = sweetspot(folder.path(), &["simulate", "--errors", name]);
        // MobileNet gains on ImageNet what the paper calls negligible, and both ends of figure 5 are missed.
        assert_eq!(output.status.code(), Some(1));
        let shown = text(&output.stdout);
        let summaries = shown
            .lines()
            .filter(|line| line.contains("within tolerance"));
        assert_eq!(summaries.count(), 1);
        let parameters = "batch_sizer_2021: 2 free parameters, 3 different";
        assert!(shown.starts_with(parameters), "{shown}");
        assert!(
            shown.contains("  2 of the parameters chosen by hand\n"),
            "{shown}"
        );
        assert!(
            shown.contains("more parameters than half of the values"),
            "{shown}"
        );
        // What the paper says about its card is put into the card's profile, and is not counted as met.
        assert!(shown.contains("; 1 of 4 within tolerance"), "{shown}");
        assert!(shown.contains("1 predicted, 3 fitted"), "{shown}");
        assert!(shown.contains("2 inputs"), "{shown}");
        let held_out = "held out: without the row, each in turn: 3 values";
        assert!(shown.contains(held_out), "{shown}");
    }
    assert_eq!(
        expect_rejection(&["simulate", "--errors", "dvfs_2020"]),
        "sweetspot: --errors: there is no study `dvfs_2020`; there are power_capping_2022, dvfs_2019, node_power_capping_2023, multi_gpu_2018, batch_sizer_2021, h200, power_capping_2022_from_layers, batch_sizer_2021_from_sizes\n"
    );
}

#[test]
fn tables_fit_a_terminal_of_100_columns() {
    let folder = folder();
    for what in ["--errors", "--list"] {
        let output = sweetspot(folder.path(), &["simulate", what]);
        let shown = text(&output.stdout);
        // A sentence and a heading are one line in a pipe.
        let is_sentence = |line: &&str| {
            let rest = line.strip_prefix("  ").unwrap_or_default();
            rest.starts_with(char::is_alphanumeric) || line.starts_with("predicted by a fit")
        };
        for line in shown.lines().filter(|line| !is_sentence(line)) {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}

#[test]
fn a_fitted_profile_predicts_other_batch_sizes() {
    let folder = folder();
    let rows = measured();
    let fit = [
        "simulate",
        "--fit",
        &rows,
        "--gpu",
        "h200",
        "--network",
        "resnet50",
    ];
    let shown = sweetspot(folder.path(), &fit);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let message = text(&shown.stderr);
    assert!(
        message.starts_with("fitted 4 parameters to 20 values; largest deviations: throughput "),
        "{message}"
    );
    let written = sweetspot(
        folder.path(),
        &[&fit[..], &["--output", "my.toml"]].concat(),
    );
    assert!(written.status.success());
    let shown_line = text(&written.stdout);
    assert!(shown_line.starts_with(&message), "{shown_line}");
    let profile = std::fs::read_to_string(folder.path().join("my.toml")).unwrap();
    assert_eq!(profile, text(&shown.stdout));
    let sweep = [
        "sweep",
        "--simulate",
        "h200",
        "--network",
        "my.toml",
        "--batch",
        "96",
        "--power-cap",
        "700",
        "--export-json",
        "-",
    ];
    let output = sweetspot(folder.path(), &sweep);
    let study: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_eq!(study["workload"]["network"], "resnet50");
    let speed = study["points"][0]["items_per_s"].as_f64().unwrap();
    // Between the measured values of batches of 64 and 128.
    assert!((11_214.0..14_404.0).contains(&speed), "{speed}");
}

#[test]
fn rows_that_cannot_be_fitted_are_rejected() {
    let rows = measured();
    let of =
        |more: &[&str]| expect_rejection(&[&["simulate", "--fit", rows.as_str()], more].concat());
    assert!(of(&["--gpu", "h200"]).contains("has rows of several networks: choose one of"));
    let message = of(&["--gpu", "h200", "--network", "lenet"]);
    assert!(
        message.contains("there are no rows of network lenet"),
        "{message}"
    );
    let message = of(&["--gpu", "h200", "--network", "resnet50", "--train"]);
    assert!(
        message.contains("there are no rows of kind train; there are infer"),
        "{message}"
    );
    let message = of(&["--gpu", "h300", "--network", "resnet50"]);
    assert!(
        message.contains("there is no GPU profile `h300`"),
        "{message}"
    );
    assert!(of(&[]).contains("--gpu"));
    let message = expect_rejection(&["simulate", "--fit", "no.csv", "--gpu", "h200"]);
    assert!(
        message.starts_with("sweetspot: cannot read no.csv: "),
        "{message}"
    );
    let message = expect_rejection(&["simulate", "--fit", "/dev/zero", "--gpu", "h200"]);
    assert!(message.contains("it is not a file"), "{message}");
    let message = expect_rejection(&["simulate", "--gpu", "h200"]);
    assert!(message.contains("<CMD>"), "{message}");
    let own = folder();
    let few = own.path().join("few.csv");
    std::fs::write(&few, "batch,items_per_s,mean_w\n64,100,200\n").unwrap();
    let message = expect_rejection(&["simulate", "--fit", &few.to_string_lossy(), "--gpu", "h200"]);
    assert!(
        message.contains("1 row is too few to fit a profile"),
        "{message}"
    );
    std::fs::write(&few, "batch,items_per_s,mean_w\n64,100,200\n128,150,250\n").unwrap();
    let few = few.to_string_lossy();
    let message = expect_rejection(&["simulate", "--fit", &few, "--gpu", "h200", "--network", ""]);
    assert!(
        message.contains("`network`: a name must be one line of text"),
        "{message}"
    );
}

#[test]
fn the_memory_of_a_killed_program_is_free_at_once() {
    let host = crate::host::TestHost::new("v100");
    // A batch of 128 needs more than half of the GPU's memory.
    let script = "S=$0; W='sim-workload --network resnet50 --batch 128'; for run in 1 2 3; do
        $S $W --seconds 60 >out.$run & until [ -s out.$run ]; do sleep 0.05; done; kill -KILL $!; wait $! 2>/dev/null
        $S $W --items 128 || exit 1; done";
    let folder = folder();
    let mut shell = host.command("sh");
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_sweetspot")])
        .current_dir(folder.path());
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
