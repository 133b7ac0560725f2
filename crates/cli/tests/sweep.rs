//! `sweetspot sweep` as a user meets it: exports, wrong input, exit codes.

mod common;

use std::path::Path;

use common::{sweetspot, text};
use serde_json::Value;

const SWEEP: [&str; 5] = ["sweep", "--simulate", "v100", "--network", "resnet50"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Runs the sweep with more flags and expects to be refused with one line.
fn refused(more: &[&str], code: i32) -> String {
    let folder = folder();
    let args: Vec<&str> = SWEEP.iter().chain(more).copied().collect();
    refused_in(folder.path(), &args, code)
}

fn refused_in(folder: &Path, args: &[&str], code: i32) -> String {
    let output = sweetspot(folder, args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(text(&output.stdout), "");
    for word in ["panicked", "backtrace", "RUST_BACKTRACE", "   0:"] {
        assert!(!message.contains(word), "{message}");
    }
    assert_eq!(
        std::fs::read_dir(folder).unwrap().count(),
        0,
        "nothing is left behind"
    );
    message
}

#[test]
fn the_study_as_json() {
    let folder = folder();
    let args = [&SWEEP[..], &["--export-json", "-"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "");
    let study: Value = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    assert_eq!(study["schema"], "sweetspot.study/1");
    assert_eq!(study["energy_of"], "job-gpus");
    let points = study["points"].as_array().unwrap();
    assert_eq!(points.len(), 31);
    let first = &points[0];
    assert_eq!(first["settings"]["power_cap_w"], 150);
    assert_eq!(first["settings"]["batch"], 128);
    assert_eq!(first["status"], "ok");
    assert_eq!(first["runs"], 5);
    assert_eq!(first["items"], 100_000);
    let number = |value: &Value| value.as_f64().unwrap();
    let interval = &first["time_s"]["ci95"];
    assert!(number(&interval[0]) < number(&first["time_s"]["mean"]));
    assert!(number(&first["time_s"]["mean"]) < number(&interval[1]));
    let power = number(&first["energy_j"]["mean"]) / number(&first["time_s"]["mean"]);
    assert!((power - number(&first["average_power_w"])).abs() < 1e-9);
    assert!(number(&first["vs_reference"]["energy"]) < -0.25);
    assert!(number(&first["vs_reference"]["time"]) > 0.2);
    let reference = &study["reference"];
    assert_eq!(reference["settings"]["power_cap_w"], 300);
    assert_eq!(reference, &points[30]);
    assert!((number(&reference["objectives"]["eds:2.0"]) - 1.0).abs() < 1e-12);
    for objective in ["energy", "edp", "eds:1.5", "eds:2.0", "gain-minus-loss"] {
        let best = study["best"][objective]["point"].as_u64().unwrap() as usize;
        let values = points
            .iter()
            .map(|point| number(&point["objectives"][objective]));
        let extreme = match objective {
            "gain-minus-loss" => values.fold(f64::MIN, f64::max),
            _ => values.fold(f64::MAX, f64::min),
        };
        assert_eq!(
            number(&points[best]["objectives"][objective]),
            extreme,
            "{objective}"
        );
    }
    assert!(study["pareto"].as_array().unwrap().len() > 10);
    let phases = first["phases"].as_object().unwrap();
    let energy: f64 = phases
        .values()
        .map(|phase| number(&phase["energy_j"]))
        .sum();
    assert!((energy / number(&first["energy_j"]["mean"]) - 1.0).abs() < 1e-9);
}

#[test]
fn one_run_has_no_spread() {
    let folder = folder();
    let args = [
        &SWEEP[..],
        &["--repeat", "1", "--power-cap", "200", "--export-json", "-"],
    ]
    .concat();
    let study: Value = serde_json::from_slice(&sweetspot(folder.path(), &args).stdout).unwrap();
    let time = study["points"][0]["time_s"].as_object().unwrap();
    assert_eq!(time.keys().collect::<Vec<_>>(), ["mean"]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = folder();
    let with = |more: &[&str]| {
        let args = [&SWEEP[..], &["--export-json", "-"], more].concat();
        sweetspot(folder.path(), &args).stdout
    };
    let once = with(&["--seed", "7", "--threads", "1"]);
    assert_eq!(once, with(&["--seed", "7", "--threads", "4"]));
    assert_ne!(once, with(&["--seed", "8"]));
}

#[test]
fn documents_are_written_beside_the_table() {
    let folder = folder();
    let args = [
        &SWEEP[..],
        &[
            "--export-json",
            "a.json",
            "--export-csv",
            "a.csv",
            "--export-md",
            "a.md",
        ],
    ]
    .concat();
    let output = sweetspot(folder.path(), &args);
    assert!(text(&output.stdout).contains("Recommendation: set the power cap to"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("a.json").starts_with("{\n  \"schema\": \"sweetspot.study/1\""));
    let csv = read("a.csv");
    assert!(csv.starts_with("power_cap_w,batch,gpus,status,runs,time_s"));
    assert_eq!(csv.lines().count(), 32);
    assert!(read("a.md").contains("| min EDP "));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn an_old_file_survives_a_sweep_that_is_refused() {
    let folder = folder();
    let file = folder.path().join("old.json");
    std::fs::write(&file, "old").unwrap();
    let args = [
        &SWEEP[..],
        &["--export-json", "old.json", "--power-cap", "5"],
    ]
    .concat();
    assert_eq!(sweetspot(folder.path(), &args).status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn wrong_axes() {
    assert_eq!(
        refused(&["--power-cap", ""], 2),
        "sweetspot: --power-cap: the axis `` is empty: write `all`, a range such as 150..300:5, or a list such as 150,180,210\n"
    );
    assert_eq!(
        refused(&["--power-cap", "300..150:5"], 2),
        "sweetspot: --power-cap: the range `300..150:5` is reversed: write 150..300:5\n"
    );
    assert_eq!(
        refused(&["--power-cap", "100..300:5"], 2),
        "sweetspot: --power-cap: 100 W is not offered by tesla_v100_sxm2_16gb: it goes from 150 W to 300 W\n"
    );
}

#[test]
fn unknown_names() {
    let folder = folder();
    let message = refused_in(
        folder.path(),
        &["sweep", "--simulate", "v1000", "--network", "resnet50"],
        2,
    );
    assert!(
        message.contains("there is no GPU profile `v1000`; the nearest are v100"),
        "{message}"
    );
    let message = refused_in(
        folder.path(),
        &["sweep", "--simulate", "v100", "--network", "resnet"],
        2,
    );
    assert!(message.contains("resnet50@power_capping_2022"), "{message}");
    let message = refused(&["--objective", "speed"], 2);
    assert!(
        message.contains("there is no objective `speed`; there are energy, time, power, edp"),
        "{message}"
    );
}

#[test]
fn a_command_cannot_run_in_virtual_time() {
    let message = refused(&["--", "python", "train.py"], 125);
    assert_eq!(
        message,
        "sweetspot: --simulate runs in virtual time and cannot run a command: give --network NAME in place of `-- CMD`\n"
    );
    // Bad input beside a command is 125 as well, whoever finds it.
    refused(&["--repeat", "0", "--", "python"], 125);
    refused(&["--repeat", "0"], 2);
}

#[test]
fn what_this_version_cannot_do_is_said() {
    let folder = folder();
    let message = refused_in(folder.path(), &["sweep", "--", "true"], 125);
    assert!(
        message.contains("this version sweeps simulated GPUs only"),
        "{message}"
    );
    let message = refused_in(
        folder.path(),
        &["sweep", "--simulate", "v100:2", "--network", "resnet50"],
        2,
    );
    assert!(
        message.contains("one simulated GPU at a time: write v100"),
        "{message}"
    );
    let message = refused_in(folder.path(), &["sweep", "--simulate", "v100"], 2);
    assert!(message.contains("add --network NAME"), "{message}");
    let message = refused(&["--infer"], 2);
    assert!(
        message.contains(
            "resnet50@power_capping_2022 is a training workload; there is none for inference"
        ),
        "{message}"
    );
}

#[test]
fn a_batch_that_does_not_fit() {
    let message = refused(&["--batch", "256"], 2);
    assert_eq!(
        message,
        "sweetspot: resnet50@power_capping_2022: a batch of 256 needs 27.5 GB of device memory and Tesla V100-SXM2-16GB has 16.9 GB; the largest that fits is 151\n"
    );
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_work() {
    let message = refused(&["--export-json", "no/such/folder/a.json"], 2);
    assert!(
        message.starts_with("sweetspot: cannot write no/such/folder/a.json: "),
        "{message}"
    );
    let message = refused(&["--export-json", "-", "--export-csv", "-"], 2);
    assert!(
        message.contains("only one document can go to standard output"),
        "{message}"
    );
}

#[test]
fn a_users_profile_with_a_mistake_is_named_with_its_line() {
    let folder = folder();
    let v100 = include_str!("../../sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let sweep = |text: &str| {
        std::fs::write(folder.path().join("my.toml"), text).unwrap();
        sweetspot(
            folder.path(),
            &["sweep", "--simulate", "my.toml", "--network", "resnet50"],
        )
    };
    assert!(sweep(v100).status.success());
    let wrong = sweep(&v100.replace("idle = \"40 W\"", "idle = \"40 Watt\""));
    assert_eq!(wrong.status.code(), Some(2));
    assert_eq!(
        text(&wrong.stderr),
        "sweetspot: my.toml:24: `power.idle`: `40 Watt` is not a power: write a number and a unit (mW, W, kW, MW)\n"
    );
    let denied = sweep(&format!(
        "{v100}\n[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"\n"
    ));
    assert_eq!(denied.status.code(), Some(2));
    assert_eq!(
        text(&denied.stderr),
        "sweetspot: no run of resnet50@power_capping_2022 on my.toml ended well: no permission to set power cap\n"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(["simulate", "--errors"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut message = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut message)
        .unwrap();
    assert_eq!(
        (child.wait().unwrap().code(), message.as_str()),
        (Some(0), "")
    );
}
