//! Sweeps over batch sizes and numbers of GPUs: costs of a batch, scaling, whole trainings and accuracy.

use super::{expect_rejection_in, folder, json};
use crate::common::{sweetspot, text};
use serde_json::Value;
use std::path::Path;

const SWEEP: [&str; 13] = [
    "sweep",
    "--node",
    "multi_gpu_2018",
    "--network",
    "caffenet",
    "--gpus",
    "1,2,4",
    "--axis",
    "batch=64,256",
    "--items",
    "25600",
    "--repeat",
    "2",
];

/// Runs the sweep with more flags; returns its exit code, its text and its document.
fn run(folder: &Path, more: &[&str]) -> (Option<i32>, String, Value) {
    let args: Vec<&str> = SWEEP
        .iter()
        .chain(more)
        .copied()
        .chain(["--no-study", "--export-json", "study.json"])
        .collect();
    let output = sweetspot(folder, &args);
    let shown = text(&output.stdout) + &text(&output.stderr);
    (
        output.status.code(),
        shown,
        json(&folder.join("study.json")),
    )
}

fn point(document: &Value, gpus: u64, batch: u64) -> &Value {
    let points = document["points"].as_array().unwrap().iter();
    let mut found = points
        .filter(|point| point["settings"]["gpus"] == gpus && point["settings"]["batch"] == batch);
    found.next().unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

fn is_near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_batch_is_divided_and_its_costs_add_up() {
    let folder = folder();
    let (code, shown, document) = run(folder.path(), &[]);
    assert_eq!(code, Some(0), "{shown}");
    for words in [
        "Time and energy of a batch",
        "backward",
        "waiting",
        "Scaling",
        "One GPU x n",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for (gpus, batch) in [(1, 64), (2, 256), (4, 64)] {
        let point = point(&document, gpus, batch);
        let costs = &point["batch"];
        assert_eq!(number(&costs["iterations"]), 25600.0 / batch as f64);
        let whole = number(&costs["energy_j"]) * number(&costs["iterations"]);
        assert!(is_near(whole, number(&point["energy_j"]["mean"])));
        let phases = costs["phases"].as_object().unwrap().values();
        let sum: f64 = phases.map(|phase| number(&phase["energy_j"])).sum();
        assert!(is_near(sum, number(&costs["energy_j"])), "{costs}");
    }
    // The energy of a phase is the sum of its GPUs, and its time that of the slowest.
    let forward = &point(&document, 4, 256)["phases"]["forward"];
    let each = |key: &str| -> Vec<f64> {
        let values = forward[key].as_object().unwrap().values();
        values.map(number).collect()
    };
    let energy: f64 = each("energy_by_device_j").iter().sum();
    assert!(is_near(energy, number(&forward["energy_j"])));
    let times = each("time_by_device_s");
    // Repeats differ in which GPU is the slowest.
    let slowest = times.iter().copied().fold(0.0, f64::max);
    assert!((number(&forward["time_s"]) / slowest - 1.0).abs() < 0.02);
    assert!(
        times[0] < 0.8 * times[2],
        "a Pascal is faster than a Maxwell"
    );
}

#[test]
fn scaling_and_waiting_are_against_the_fewest_gpus() {
    let folder = folder();
    let (_, _, document) = run(folder.path(), &[]);
    let (one, two) = (point(&document, 1, 256), point(&document, 2, 256));
    assert!(one["scaling"].is_null());
    let speed_up = number(&one["time_s"]["mean"]) / number(&two["time_s"]["mean"]);
    assert!(is_near(number(&two["scaling"]["speed_up"]), speed_up));
    assert!(is_near(
        number(&two["scaling"]["efficiency"]),
        speed_up / 2.0
    ));
    // 244 MB of gradients take longer than the work of 16 items.
    let four = point(&document, 4, 64);
    assert!(number(&four["scaling"]["efficiency"]) < 0.2, "{four}");
    assert!(number(&four["waiting_energy_share"]) > 0.4, "{four}");
    let sum = number(&four["energy_j"]["mean"]);
    let multiplied = number(&four["one_measured_j"]);
    assert!((multiplied / sum - 1.0).abs() < 0.03 && multiplied != sum);
}

#[test]
fn results_are_scaled_to_a_whole_training() {
    let folder = folder();
    let (_, _, short) = run(folder.path(), &[]);
    let lengths = ["90x1280000", "115200000", "64=1800000,256=450000"];
    for length in lengths {
        let (code, shown, whole) = run(folder.path(), &["--training", length]);
        assert_eq!(code, Some(0), "{shown}");
        for batch in [64, 256] {
            let (short, whole) = (point(&short, 2, batch), point(&whole, 2, batch));
            let factor = 115_200_000.0 / 25_600.0;
            let scaled = factor * number(&short["time_s"]["mean"]);
            assert!(is_near(number(&whole["time_s"]["mean"]), scaled));
            let scaled = factor * number(&short["energy_j"]["mean"]);
            assert!(is_near(number(&whole["energy_j"]["mean"]), scaled));
            // A batch costs what it did.
            let of_batch = |point: &Value| number(&point["batch"]["time_s"]);
            assert!(is_near(of_batch(whole), of_batch(short)));
        }
    }
    let (code, shown, _) = run(folder.path(), &["--training", "64=1800000"]);
    assert_eq!(code, Some(1));
    assert!(
        shown.contains("no number of iterations for a batch of 256"),
        "{shown}"
    );
}

#[test]
fn accuracy_from_a_file_is_a_limit_and_is_explained() {
    let folder = folder();
    let file = folder.path().join("accuracy.csv");
    std::fs::write(&file, "batch,accuracy\n64,76.0%\n256,55.4%\n").unwrap();
    let (code, shown, document) = run(folder.path(), &["--values", "accuracy.csv"]);
    assert_eq!(code, Some(0), "{shown}");
    let choice = &document["accuracy_choice"];
    let settings = |index: &Value| {
        let index = index.as_u64().unwrap() as usize;
        document["points"][index]["settings"]["batch"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(
        (settings(&choice["without"]), settings(&choice["with"])),
        (256, 64)
    );
    assert!(
        shown.contains("Accuracy: without regard to it, use 2 GPUs, use batch 256"),
        "{shown}"
    );

    let limit = ["--values", "accuracy.csv", "--limit", "accuracy>=0.7"];
    let (_, _, document) = run(folder.path(), &limit);
    let chosen = document["recommendation"]["point"].as_u64().unwrap() as usize;
    assert_eq!(document["points"][chosen]["settings"]["batch"], 64);

    std::fs::write(&file, "batch,accuracy\n64,0.76\n256,\n").unwrap();
    let (_, shown, document) = run(folder.path(), &["--values", "accuracy.csv"]);
    assert_eq!(
        document["accuracy_choice"]["unknown"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert!(
        shown.contains("The accuracy of 3 of 6 settings is unknown"),
        "{shown}"
    );
}

#[test]
fn bad_values_and_too_many_gpus_are_refused_before_anything_runs() {
    let folder = folder();
    let reject = |more: &[&str]| {
        let args: Vec<&str> = SWEEP.iter().chain(more).copied().collect();
        expect_rejection_in(folder.path(), &args, 2)
    };
    assert!(reject(&["--values", "none.csv"]).contains("cannot read the values in none.csv"));
    assert!(reject(&["--training", "90*128"]).contains("EPOCHSxITEMS"));
    let args = [
        "sweep",
        "--node",
        "multi_gpu_2018",
        "--network",
        "caffenet",
        "--gpus",
        "1,8",
    ];
    let message = expect_rejection_in(folder.path(), &args, 2);
    assert!(
        message.contains("the number of simulated GPUs is 4"),
        "{message}"
    );
}
