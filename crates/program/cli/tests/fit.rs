//! `sweetspot fit`: from a study to a profile, and from the profile to a study again.

use std::path::Path;
use std::process::Output;

use crate::common::{sweetspot, text, words};
use serde_json::Value;

const FIT: [&str; 6] = [
    "fit",
    "first",
    "-o",
    "mine.toml",
    "--export-json",
    "fit.json",
];

/// Rows of a network that were measured without a sweep.
const ROWS: &str = "batch,items_per_s,mean_w\n16,150,180\n64,320,230\n256,370,260\n";

fn run(folder: &Path, args: &[&str]) -> Output {
    let output = sweetspot(folder, args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    output
}

/// Runs a sweep and returns its study as JSON.
fn sweep(folder: &Path, args: &[&str]) -> Value {
    let args = [&["sweep", "--export-json", "-"], args].concat();
    serde_json::from_slice(&run(folder, &args).stdout).expect("nothing but JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Asserts that the best settings of the fitted study are nearly the best of the original study too.
fn assert_agree(original: &Value, fitted: &Value) {
    assert_eq!(original["device"]["knobs"], fitted["device"]["knobs"]);
    let points = |study: &Value| study["points"].as_array().unwrap().clone();
    let (truth, twin) = (points(original), points(fitted));
    assert_eq!(truth.len(), twin.len());
    for objective in ["energy", "edp", "eds:1.5", "eds:2.0"] {
        let value = |point: &Value| number(&point["objectives"][objective]);
        let best = truth.iter().map(value).fold(f64::INFINITY, f64::min);
        let chosen = twin
            .iter()
            .filter(|point| point["status"] == "ok")
            .min_by(|a, b| value(a).total_cmp(&value(b)))
            .unwrap();
        let there = truth
            .iter()
            .find(|point| point["settings"] == chosen["settings"])
            .unwrap();
        let regret = value(there) / best - 1.0;
        assert!(
            regret < 0.01,
            "{objective}: {regret} at {}",
            chosen["settings"]
        );
    }
}

/// Sweeps, fits a profile, and compares with the same sweep of the profile.
fn assert_round_trip(gpu: &str, network: &[&str], axes: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let own = ["--simulate", gpu, "--study", "first"];
    let original = sweep(folder, &[&own[..], network, axes].concat());
    let output = run(folder, &FIT);
    let shown = text(&output.stdout);
    assert!(shown.contains("Mean error: time 0."), "{shown}");
    assert!(
        shown.contains("Profile: mine.toml (the GPU and the workload)"),
        "{shown}"
    );
    let fit: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("fit.json")).unwrap()).unwrap();
    assert_eq!(fit["schema"], "sweetspot.fit/1");
    for errors in [&fit["errors"], &fit["left_out"]] {
        assert!(number(&errors["time"]["mean"]) < 0.01, "{fit}");
        assert!(number(&errors["energy"]["mean"]) < 0.01, "{fit}");
    }
    let twin = words("--simulate mine.toml --network mine.toml --study second");
    assert_agree(&original, &sweep(folder, &[&twin[..], axes].concat()));
}

#[test]
fn a_study_of_power_caps_is_fitted() {
    assert_round_trip("v100", &["--network", "resnet50"], &[]);
}

#[test]
fn a_study_of_core_clocks_is_fitted() {
    assert_round_trip(
        "tesla_p100",
        &["--network", "vgg16", "--infer"],
        &["--core-clock", "all"],
    );
}

#[test]
fn a_study_of_caps_and_batch_sizes_is_fitted() {
    let axes = ["--power-cap", "150..300:25", "--axis", "batch=32,64,128"];
    assert_round_trip("v100", &["--network", "vgg19"], &axes);
}

#[test]
fn a_study_of_memory_clocks_is_fitted() {
    let axes = ["--core-clock", "950..1950:200", "--memory-clock", "all"];
    assert_round_trip("gtx_2080ti", &["--network", "resnet50"], &axes);
}

/// Fits a command in real time, and runs the fitted workload on a host with the fitted GPU.
#[test]
fn a_study_of_a_command_is_fitted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let simulate = ["simulate", "--gpu", "v100", "--"];
    let sweep = [
        program,
        "sweep",
        "--power-cap",
        "150,200,250,300",
        "--repeat",
        "1",
        "--settle",
        "100ms",
    ];
    let job = [
        "--study",
        "first",
        "--",
        program,
        "sim-workload",
        "--network",
        "vgg19",
        "--items",
        "384",
    ];
    run(folder, &[&simulate[..], &sweep, &job].concat());
    let shown = text(&run(folder, &FIT).stdout);
    assert!(
        shown.contains("caps 150 W to 300 W, default 300 W"),
        "{shown}"
    );
    assert!(
        shown.contains("Note: the study has no batch sizes"),
        "{shown}"
    );
    let fit: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("fit.json")).unwrap()).unwrap();
    for objective in ["energy", "edp", "eds:1.5", "eds:2.0"] {
        // Each configuration runs once for two seconds on a busy machine, so the tolerance is wide.
        assert!(number(&fit["best"][objective]["regret"]) < 0.05, "{fit}");
    }
    let twin = [
        "simulate",
        "--gpu",
        "mine.toml",
        "--",
        program,
        "sim-workload",
        "--network",
        "mine.toml",
        "--items",
        "32",
    ];
    assert!(text(&run(folder, &twin).stdout).contains("done: 32 items"));
}

/// Fits impossible times: the middle batch is six times faster than both others.
#[test]
fn a_bad_fit_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let odd = "test {batch} = 2 && sleep 0.1 || sleep 0.6";
    let simulate = ["simulate", "--gpu", "v100", "--", program];
    let sweep = [
        "sweep",
        "--read-only",
        "--axis",
        "batch=1,2,3",
        "--repeat",
        "1",
        "--settle",
        "0s",
        "--study",
        "odd",
    ];
    run(
        folder,
        &[&simulate[..], &sweep, &["--", "sh", "-c", odd]].concat(),
    );
    let output = sweetspot(folder, &["fit", "odd", "-o", "odd.toml"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(
        shown.contains("The profile does NOT match the study"),
        "{shown}"
    );
    assert!(shown.contains("Note: the study has no progress"), "{shown}");
    assert!(folder.join("odd.toml").exists());
}

#[test]
fn bad_input_is_rejected_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let v100 = words("--simulate v100 --network resnet50 --repeat 1");
    sweep(
        folder,
        &[&v100[..], &["--power-cap", "300", "--study", "one"]].concat(),
    );
    sweep(
        folder,
        &[&v100[..], &["--power-cap", "150,300", "--study", "two"]].concat(),
    );
    let node = [
        "--node",
        "node_power_capping_2023",
        "--network",
        "xception",
        "--repeat",
        "1",
    ];
    sweep(
        folder,
        &[
            &node[..],
            &["--gpus", "1,8", "--energy-of", "node", "--study", "node"],
        ]
        .concat(),
    );
    let p100 = words(
        "--simulate tesla_p100 --network googlenet --batch 16 --repeat 1 --core-clock 797,1328",
    );
    let forms = ["--axis", "conv_algorithm=gemm,winograd", "--study", "forms"];
    sweep(folder, &[&p100[..], &forms].concat());
    std::fs::write(folder.join("notes.txt"), "notes\nand more\n").unwrap();
    std::fs::write(folder.join("rows.csv"), ROWS).unwrap();
    for (args, expected) in [
        (
            &["nothing"][..],
            "nothing is neither a study nor a CSV file of measured rows: use `sweetspot fit STUDY`",
        ),
        (&["notes.txt"], "or `sweetspot fit ROWS.csv --gpu GPU`"),
        (
            &["notes.txt", "--gpu", "v100"],
            "there is no column `batch`; there are notes: use `sweetspot fit STUDY`",
        ),
        (&["rows.csv"], "were measured with --gpu"),
        (&["rows.csv", "--infer"], "--gpu"),
        (&["two", "--gpu", "v100"], "--gpu is for a CSV file"),
        (
            &["rows.csv", "--gpu", "v100", "--export-json", "-"],
            "--energy-of and --export-json are for studies",
        ),
        (
            &["rows.csv", "--gpu", "v100", "-o", "mine"],
            "a profile file needs the extension .toml: use mine.toml",
        ),
        (&["one"], "only one successful configuration"),
        (&["node"], "the study counts the energy of a whole node"),
        (
            &["node", "--energy-of", "job-gpus"],
            "only one successful configuration",
        ),
        (
            &["forms"],
            "varies conv_algorithm, which the simulator does not model",
        ),
        (
            &["two", "-o", "mine"],
            "a profile file needs the extension .toml: use mine.toml",
        ),
        (
            &["two", "-o", "nowhere/mine.toml"],
            "the folder does not exist",
        ),
        (
            &["two", "-o", "-", "--export-json", "-"],
            "cannot both go to standard output",
        ),
    ] {
        let output = sweetspot(folder, &[&["fit"], args].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(text(&output.stdout), "");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

/// An old profile is replaced, and only the profile goes to standard output.
#[test]
fn the_profile_is_written_to_the_requested_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let args = words("--simulate v100 --network resnet50 --repeat 1 --power-cap 150..300:50");
    sweep(folder, &[&args[..], &["--study", "some"]].concat());
    std::fs::write(folder.join("mine.toml"), "old").unwrap();
    run(folder, &["fit", "some", "--output", "mine.toml"]);
    let kept = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    let output = run(folder, &["fit", "some", "-o", "-"]);
    assert_eq!(text(&output.stdout), kept);
    assert!(text(&output.stderr).contains("Mean error"));
    assert!(text(&run(folder, &["fit", "some"]).stdout).contains("Mean error"));
}

/// Rows give the same profile as with the former name of the command, also if they are in the folder of a study.
#[test]
fn a_file_of_rows_is_fitted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let some = words("--simulate v100 --network resnet50 --repeat 1 --power-cap 150,300");
    sweep(folder, &[&some[..], &["--study", "some"]].concat());
    std::fs::write(folder.join("some/rows.csv"), ROWS).unwrap();
    let fit = words("fit some/rows.csv --gpu v100 --network mine --infer");
    let output = run(folder, &[&fit[..], &["-o", "mine.toml"]].concat());
    let shown = text(&output.stdout);
    assert!(
        shown.starts_with("fitted 4 parameters to 6 values"),
        "{shown}"
    );
    let (_, next) = shown.split_once("Try: sweetspot ").unwrap();
    assert!(next.ends_with(" --network mine.toml\n"), "{shown}");
    run(
        folder,
        &[&words(next.trim_end())[..], &["--no-study"]].concat(),
    );
    let profile = std::fs::read_to_string(folder.join("mine.toml")).unwrap();
    assert!(profile.contains("mode = \"infer\""), "{profile}");
    let piped = run(folder, &[&fit[..], &["-o", "-"]].concat());
    assert_eq!(text(&piped.stdout), profile);
    let former = words("simulate --fit some/rows.csv --gpu v100 --network mine --infer");
    let former = run(folder, &former);
    assert_eq!(text(&former.stdout), profile);
    assert_eq!(text(&former.stderr), text(&piped.stderr));
    // Without a place for the profile, only the summary is shown, and how to keep the profile.
    let summary = text(&run(folder, &fit).stdout);
    assert!(summary.starts_with(&text(&piped.stderr)), "{summary}");
    assert!(summary.ends_with(" --output profile.toml\n"), "{summary}");
}
