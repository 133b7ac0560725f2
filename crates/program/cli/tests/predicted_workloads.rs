//! Networks whose cost is predicted, as workloads of `sweep`, `tune`, `hold` and `sim-workload`, and on GPUs on which nothing
//! was measured.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{sweetspot, text};

/// The folder of ONNX files that the tests of the crate `network` use.
fn onnx(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../foundation/network/tests/onnx");
    let path: PathBuf = folder.join(file).canonicalize().unwrap();
    path.display().to_string()
}

fn run(folder: &Path, line: &str) -> Output {
    sweetspot(folder, &line.split(' ').collect::<Vec<_>>())
}

fn json(folder: &Path, line: &str) -> serde_json::Value {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_onnx_file_is_swept_tuned_and_held() {
    let folder = tempfile::tempdir().unwrap();
    let model = onnx("resnet34.onnx");
    let study = json(
        folder.path(),
        &format!(
            "sweep --simulate h200 --network {model} --power-cap 300,500,700 --repeat 1 --export-json -"
        ),
    );
    assert_eq!(study["points"].as_array().unwrap().len(), 3);
    assert_eq!(study["workload"]["network"], "resnet34");
    let tuned = run(
        folder.path(),
        &format!("tune --simulate h100 --network {model} --infer"),
    );
    assert!(tuned.status.success(), "{}", text(&tuned.stderr));
    assert!(
        text(&tuned.stdout).contains("Choice:"),
        "{}",
        text(&tuned.stdout)
    );
    let held = json(
        folder.path(),
        &format!("hold --below 350W --simulate h200 --network {model} --export-json -"),
    );
    assert!(held["items_per_s"].as_f64().unwrap() > 1000.0);
    assert!(held["violation_share"].as_f64().unwrap() < 0.01);
}

#[test]
fn a_stored_study_of_an_onnx_file_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let model = onnx("vit_small.onnx");
    let sweep =
        format!("sweep --simulate l40s --network {model} --power-cap 200,300 --repeat 1 --study s");
    assert!(run(folder.path(), &sweep).status.success());
    let more = run(folder.path(), "sweep --resume s --repeat 2");
    assert!(more.status.success(), "{}", text(&more.stderr));
}

#[test]
fn a_simulated_program_runs_a_network_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let output = run(
        folder.path(),
        &format!(
            "simulate --gpu a100 -- {program} sim-workload --network bert_base:input=64 --infer --items 2000"
        ),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("done: 2000 items"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn sizes_of_inputs_follow_a_network_and_missing_ones_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let rate = |network: &str| {
        let line = format!(
            "hold --below 700W --simulate h200 --network {network} --knob batch --batches 4 --seconds 20s --export-json -"
        );
        json(folder.path(), &line)["items_per_s"].as_f64().unwrap()
    };
    let (short, long) = (rate("bert_base:input=32"), rate("bert_base:input=512"));
    assert!(short > 1.5 * long, "{short} {long}");
    let model = onnx("no_sizes.onnx");
    let refused = run(
        folder.path(),
        &format!("sweep --simulate h200 --network {model}"),
    );
    let message = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(
        message.contains(&format!("--network '{model}:")),
        "{message}"
    );
}

#[test]
fn gpus_without_measurements_are_marked_and_have_wider_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let predict = |gpu: &str| {
        let line = format!("network vit_b_16 --batch 64 --simulate {gpu} --export-json -");
        json(folder.path(), &line)["prediction"].clone()
    };
    let width = |prediction: &serde_json::Value| {
        let interval = &prediction["interval95"]["items_per_s"];
        interval[1].as_f64().unwrap() / interval[0].as_f64().unwrap()
    };
    let measured = predict("h200");
    assert_eq!(measured["is_measured"], true);
    for gpu in ["a100", "h100", "l40s"] {
        let other = predict(gpu);
        assert_eq!(other["is_measured"], false, "{gpu}");
        assert!(width(&other) > 1.3 * width(&measured), "{gpu}");
        let power = &other["interval95"]["power_w"];
        assert!(power[1].as_f64().unwrap() <= 700.0, "{gpu}");
        let shown = run(
            folder.path(),
            &format!("network vit_b_16 --by kind --simulate {gpu}"),
        );
        assert!(
            text(&shown.stdout).contains("Predicted, not measured"),
            "{gpu}"
        );
    }
}

#[test]
fn the_best_settings_depend_on_objective_and_limits() {
    let folder = tempfile::tempdir().unwrap();
    let best = |flags: &str| {
        let line = format!("network vgg16 --batch 64 --simulate h200 --export-json -{flags}");
        json(folder.path(), &line)["prediction"]["best"].clone()
    };
    let value = |best: &serde_json::Value, index: usize| best[index]["value"].as_f64().unwrap();
    let (edp, energy) = (best(""), best(" --objective energy"));
    assert_eq!(edp[0]["setting"], "power_cap_w");
    assert_eq!(edp[1]["setting"], "core_clock_mhz");
    assert!(value(&energy, 0) < value(&edp, 0) && value(&energy, 1) < value(&edp, 1));
    assert!(energy[0]["energy_change"].as_f64().unwrap() < -0.1);
    let time = best(" --objective time");
    assert!(time[0]["time_change"].as_f64().unwrap().abs() < 1e-9);
    let limited = best(" --objective energy --limit time<=+5%");
    assert!(limited[0]["time_change"].as_f64().unwrap() <= 0.05);
    for setting in edp.as_array().unwrap() {
        let interval = &setting["interval95"];
        let value = setting["value"].as_f64().unwrap();
        assert!(interval[0].as_f64().unwrap() <= value && value <= interval[1].as_f64().unwrap());
    }
}

#[test]
fn what_cannot_be_predicted_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "sweep --simulate v100 --network bert_base",
            "no constants for predictions",
        ),
        (
            "tune --simulate h200 --network bert",
            "the nearest are bert_base",
        ),
        (
            "hold --below 300W --simulate h200 --network missing.onnx",
            "missing.onnx",
        ),
        ("hold --below 300W --simulate h200", "--network"),
        ("hold --below 300W --network resnet50 -- true", "--simulate"),
        ("hold --below 300W --seconds 5s -- true", "--simulate"),
        (
            "hold --below 300W --simulate h200 --network resnet50 -- true",
            "cannot be used with",
        ),
        ("hold --simulate h200 --network resnet50", "no power cap"),
        (
            "network resnet50 --simulate h200 --objective cost",
            "--price-per-kwh",
        ),
    ];
    for (line, part) in cases {
        let output = run(folder.path(), line);
        let message = text(&output.stderr);
        // Where a command could have run, its exit code must not be taken for that of sweetspot.
        let code = if line.contains("-- true") { 125 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{line}: {message}");
        assert!(message.contains(part), "{line}: {message}");
        assert_eq!(message.trim().lines().count(), 1, "{line}: {message}");
    }
    let unknown = onnx("unknown.onnx");
    let predict = |model: &str| {
        let output = run(
            folder.path(),
            &format!("network {model} --simulate h200 --batch 8 --export-json -"),
        );
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let interval = document["prediction"]["interval95"]["items_per_s"].clone();
        interval[1].as_f64().unwrap() / interval[0].as_f64().unwrap()
    };
    assert!(predict(&unknown) > predict("resnet50"));
}
