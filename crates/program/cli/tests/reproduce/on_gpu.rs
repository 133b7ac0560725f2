//! `reproduce --on-this-gpu` on simulated hosts in real time.

use std::path::Path;

use serde_json::Value;

use crate::common::{program, sweetspot, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Runs `reproduce` with these arguments on a host with these GPUs; the command is a simulated workload.
fn reproduce(folder: &Path, gpus: &str, arguments: &str, workload: &str) -> std::process::Output {
    let script = format!("{PROGRAM} reproduce {arguments} -- {PROGRAM} sim-workload {workload}");
    sweetspot(
        folder,
        &["simulate", "--gpu", gpus, "--", "sh", "-c", &script],
    )
}

fn document(folder: &Path, output: &std::process::Output) -> Value {
    let shown = text(&output.stdout) + &text(&output.stderr);
    let written = std::fs::read_to_string(folder.join("own.json")).expect(&shown);
    serde_json::from_str(&written).unwrap()
}

fn change(row: &Value, column: &str, part: &str) -> f64 {
    row[column][part]
        .as_f64()
        .unwrap_or_else(|| panic!("{column} {part}: {row}"))
}

#[test]
fn a_papers_caps_run_on_the_users_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "power-capping-2022 --on-this-gpu --points 3 --repeat 1 --study s --export-json own.json --export-html own.html";
    let output = reproduce(
        folder.path(),
        "v100",
        arguments,
        "--network resnet50 --items 1200",
    );
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains("3 of the paper's 31 settings"), "{shown}");
    assert!(
        shown.contains("1 run of each configuration in place of the paper's 5"),
        "{shown}"
    );
    let own = document(folder.path(), &output);
    let rows = own["rows"].as_array().unwrap();
    let caps: Vec<f64> = rows
        .iter()
        .map(|row| row["own_value"].as_f64().unwrap())
        .collect();
    assert_eq!(caps, [150.0, 225.0, 300.0]);
    // Table 3 prints 31.5 % less energy and 27.3 % more time at 150 W; the simulated GPU in real time is the one of virtual
    // time, with the start of the program in addition.
    let lowest = &rows[0];
    assert!(
        (change(lowest, "published", "energy") + 0.315).abs() < 0.001,
        "{lowest}"
    );
    for part in ["energy", "time"] {
        let apart = change(lowest, "measured", part) - change(lowest, "simulated", part);
        assert!(apart.abs() < 0.03, "{part}: {lowest}");
    }
    assert!(rows[1].get("published").is_none(), "{own}");
    let best = &own["best"][0];
    assert_eq!(best["metric"], "energy");
    assert_eq!(best["measured"]["value"], 150.0);
    // The report of the stored study has the comparison too.
    let page = std::fs::read_to_string(folder.path().join("own.html")).unwrap();
    assert!(page.contains("power-capping-2022 on this GPU"));
    let report = sweetspot(
        folder.path(),
        &["report", "s", "--export-html", "later.html"],
    );
    assert!(
        text(&report.stdout).contains("Simulated"),
        "{}",
        text(&report.stdout)
    );
    let page = std::fs::read_to_string(folder.path().join("later.html")).unwrap();
    assert!(page.contains("power-capping-2022 on this GPU"));
}

#[test]
fn another_gpu_has_caps_at_the_same_share_of_its_range() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "power-capping-2022 --on-this-gpu --points 3 --repeat 1 --network vgg19 --export-json own.json";
    let output = reproduce(
        folder.path(),
        "nvidia_h200",
        arguments,
        "--network resnet50 --infer --items 4000",
    );
    let shown = text(&output.stdout) + &text(&output.stderr);
    let own = document(folder.path(), &output);
    let rows = own["rows"].as_array().unwrap();
    let values =
        |key: &str| -> Vec<f64> { rows.iter().map(|row| row[key].as_f64().unwrap()).collect() };
    assert_eq!(values("own_value"), [200.0, 450.0, 700.0], "{shown}");
    assert_eq!(values("paper_value"), [150.0, 225.0, 300.0], "{shown}");
    assert!(
        shown.contains("caps are at the same share of the range"),
        "{shown}"
    );
    assert!(shown.contains("the paper has no NVIDIA H200"), "{shown}");
    assert_eq!(own["network"], "vgg19");
    assert!(rows[0]["simulated"]["energy"].as_f64().unwrap() < -0.1);
}

#[test]
fn clocks_and_batches_of_the_other_papers() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "dvfs-2019 --on-this-gpu --points 2 --repeat 1 --export-json own.json";
    let output = reproduce(
        folder.path(),
        "tesla_p100",
        arguments,
        "--network resnet50@dvfs_2019 --train --items 200",
    );
    let own = document(folder.path(), &output);
    assert_eq!(own["quantity"], "core_clock_mhz");
    let rows = own["rows"].as_array().unwrap();
    assert_eq!(rows[0]["own_value"], 544.0, "{own}");
    assert!(change(&rows[0], "measured", "time") > 0.3, "{own}");
    assert!((own["best"][0]["published"]["gain"].as_f64().unwrap() - 0.231).abs() < 1e-9);

    let arguments =
        "multi-gpu-2018 --on-this-gpu --points 2 --repeat 1 --read-only --export-json own.json";
    let workload =
        "--network resnet_gait@multi_gpu_2018 --items 2560 --ranks {gpus} --batch {batch}";
    let output = reproduce(folder.path(), "titan_x_pascal:2", arguments, workload);
    let shown = text(&output.stdout) + &text(&output.stderr);
    let own = document(folder.path(), &output);
    assert_eq!(own["rows"].as_array().unwrap().len(), 4, "{own}");
    assert!(
        shown.contains("the paper used up to 4 GPUs, and here are 2"),
        "{shown}"
    );
    assert!(
        own["rows"][1]["published"]["time"].as_f64().unwrap() < -0.1,
        "{own}"
    );
}

#[test]
fn what_cannot_be_reproduced_here_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &str, expected: &str| {
        let output = reproduce(
            folder.path(),
            "v100",
            arguments,
            "--network resnet50 --items 10",
        );
        let shown = text(&output.stderr);
        assert_eq!(output.status.code(), Some(125), "{shown}");
        assert!(shown.contains(expected), "{arguments}: {shown}");
    };
    refused(
        "power-capping-2022 --on-this-gpu --read-only",
        "remove --read-only or SWEETSPOT_READ_ONLY",
    );
    refused(
        "node-power-capping-2023 --on-this-gpu",
        "name its power meter with --meter",
    );
    refused(
        "batch-sizer-2021 --on-this-gpu",
        "has no plan for your own GPU",
    );
    refused(
        "power-capping-2022 --on-this-gpu --network bert",
        "it used resnet50",
    );
    let output = program()
        .args(["reproduce", "dvfs-2019", "--on-this-gpu"])
        .output()
        .unwrap();
    assert!(
        text(&output.stderr).contains("write its command after `--`"),
        "{}",
        text(&output.stderr)
    );
}
