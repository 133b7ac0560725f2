//! The documents that a sweep writes.

use super::{SWEEP, expect_rejection, folder};
use crate::common::{program, sweetspot, text};
use serde_json::Value;

#[test]
fn json_contains_the_study() {
    let folder = folder();
    let args = [&SWEEP[..], &["--export-json", "-"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert!(output.status.success());
    let place = "sweetspot: Study: studies/resnet50-v100\n";
    assert_eq!(text(&output.stderr), place);
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
    assert_eq!(first["items"], 100_000.0);
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
fn a_single_run_has_no_spread() {
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
fn documents_are_written_and_the_table_is_shown() {
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
    assert!(
        csv.starts_with(
            "power_cap_w,core_clock_mhz,memory_clock_mhz,batch,gpus,status,runs,time_s"
        )
    );
    assert_eq!(csv.lines().count(), 32);
    assert!(read("a.md").contains("| min EDP "));
    // The fourth entry is the study.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn an_old_file_survives_a_rejected_sweep() {
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
fn a_bad_path_is_rejected_before_the_sweep() {
    let message = expect_rejection(&["--export-json", "no/such/folder/a.json"], 2);
    assert!(
        message.starts_with("sweetspot: cannot write no/such/folder/a.json: "),
        "{message}"
    );
    let message = expect_rejection(&["--export-json", "-", "--export-csv", "-"], 2);
    assert!(
        message.contains("two documents cannot be written to standard output"),
        "{message}"
    );
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = program()
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

#[test]
fn failed_configurations_are_not_chosen_and_give_exit_code_1() {
    let folder = folder();
    let v100 = include_str!("../../../../simulate/sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    // At low caps a run takes longer than the time after which the GPU is lost.
    let fault = "[[fault]]\nkind = \"lost\"\nafter = \"300 s\"\n";
    std::fs::write(folder.path().join("my.toml"), format!("{v100}\n{fault}")).unwrap();
    let args = ["sweep", "--simulate", "my.toml", "--network", "resnet50"];
    let output = sweetspot(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stdout)
            .contains("configurations failed; the first was 150 W (failed): the device is lost")
    );
    let args = [&args[..], &["--export-json", "-"]].concat();
    let study: Value = serde_json::from_slice(&sweetspot(folder.path(), &args).stdout).unwrap();
    let points = study["points"].as_array().unwrap();
    assert_eq!(points[0]["status"], "failed");
    for best in study["best"].as_object().unwrap().values() {
        let point = best["point"].as_u64().unwrap() as usize;
        assert_eq!(points[point]["status"], "ok");
    }
    let front = study["pareto"].as_array().unwrap();
    assert!(
        front
            .iter()
            .all(|index| points[index.as_u64().unwrap() as usize]["status"] == "ok")
    );
}

#[test]
fn the_spelling_of_a_path_does_not_change_results() {
    let folder = folder();
    let quadro = include_str!("../../../../simulate/sim/profiles/gpus/quadro_rtx_6000.toml");
    let workload = include_str!(
        "../../../../simulate/sim/profiles/workloads/power_capping_2022/resnet50.toml"
    );
    std::fs::write(folder.path().join("g.toml"), quadro).unwrap();
    std::fs::write(folder.path().join("w.toml"), workload).unwrap();
    let csv = |gpu: &str, network: &str| {
        let args = [
            "sweep",
            "--simulate",
            gpu,
            "--network",
            network,
            "--export-csv",
            "-",
        ];
        let output = sweetspot(folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let by_name = csv("quadro_rtx_6000", "resnet50");
    // A copy of a known profile has the workload that was fitted to it, not one scaled from another GPU.
    assert_eq!(by_name, csv("g.toml", "./w.toml"));
    assert_eq!(by_name, csv("./g.toml", "w.toml"));
    std::fs::write(
        folder.path().join("w.toml"),
        workload.replace("\"tesla_v100_sxm2_16gb\"", "\"v100\""),
    )
    .unwrap();
    assert_eq!(csv("v100", "resnet50"), csv("v100", "w.toml"));
}

#[test]
fn a_symbolic_link_is_followed() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("real")).unwrap();
    let real = folder.path().join("real/study.json");
    std::fs::write(&real, "old").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&real, private).unwrap();
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink("real/study.json", &link).unwrap();
    let args = [&SWEEP[..], &["--export-json", "link.json"]].concat();
    assert!(sweetspot(folder.path(), &args).status.success());
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&real).unwrap().starts_with('{'));
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&real).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let args = [&SWEEP[..], &["--export-json", "a", "--export-csv", "a"]].concat();
    let twice = sweetspot(folder.path(), &args);
    assert_eq!(
        text(&twice.stderr),
        "sweetspot: two documents cannot be written to a: give each its own file\n"
    );
}

#[test]
fn a_sweep_of_a_node_varies_its_gpus() {
    let folder = folder();
    let output = sweetspot(
        folder.path(),
        &[
            "sweep",
            "--node",
            "node_power_capping_2023",
            "--network",
            "xception",
            "--gpus",
            "1,8",
            "--power-cap",
            "170,260",
            "--repeat",
            "1",
            "--energy-of",
            "node",
            "--export-json",
            "-",
        ],
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let study: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(study["energy_of"], "node");
    let points = study["points"].as_array().unwrap();
    let gpus: Vec<_> = points
        .iter()
        .map(|p| p["settings"]["gpus"].as_u64())
        .collect();
    assert_eq!(gpus, [Some(1), Some(1), Some(8), Some(8)]);
    let time = |index: usize| points[index]["time_s"]["mean"].as_f64().unwrap();
    assert!(time(1) / time(3) > 4.0, "eight GPUs are faster");
    assert!(time(1) / time(3) < 8.0, "but not eight times");
}
