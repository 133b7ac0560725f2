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
    assert_eq!(message.lines().count(), 1, "{message}");
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
    assert!(
        csv.starts_with(
            "power_cap_w,core_clock_mhz,memory_clock_mhz,batch,gpus,status,runs,time_s"
        )
    );
    assert_eq!(csv.lines().count(), 32);
    assert!(read("a.md").contains("| min EDP "));
    // And the study.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
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
    assert!(message.contains("the nearest are resnet50@"), "{message}");
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
    let message = refused_in(folder.path(), &["sweep"], 2);
    assert!(message.contains("nothing to run"), "{message}");
    let message = refused_in(folder.path(), &["sweep", "--simulate", "v100"], 2);
    assert!(message.contains("add --network NAME"), "{message}");
    let message = refused(&["--infer"], 2);
    assert!(
        message.contains("`resnet50` is training; there is no inference of it"),
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
        message.contains("two documents cannot go to standard output"),
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
    let line = 1 + v100
        .lines()
        .position(|line| line.starts_with("idle ="))
        .unwrap();
    assert_eq!(
        text(&wrong.stderr),
        format!(
            "sweetspot: my.toml:{line}: `power.idle`: `40 Watt` is not a power: write a number and a unit (mW, W, kW, MW)\n"
        )
    );
    let denied = sweep(&format!(
        "{v100}\n[[fault]]\nkind = \"write-denied\"\nknob = \"power-cap\"\n"
    ));
    assert_eq!(denied.status.code(), Some(2));
    let said = text(&denied.stderr);
    let why = "sweetspot: the reference of resnet50@power_capping_2022 on my.toml failed: no permission to set power cap: it needs root";
    assert!(said.starts_with(why), "{said}");
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

#[test]
fn configurations_that_fail_are_not_chosen_and_the_exit_code_says_so() {
    let folder = folder();
    let v100 = include_str!("../../sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    // At low caps a run takes longer than the GPU lives.
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
fn how_a_path_is_spelled_changes_nothing() {
    let folder = folder();
    let quadro = include_str!("../../sim/profiles/gpus/quadro_rtx_6000.toml");
    let workload = include_str!("../../sim/profiles/workloads/power_capping_2022/resnet50.toml");
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
    // A copy of a known board is that board: its own work, not another's scaled to it.
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
fn a_link_leads_to_the_file_that_is_replaced() {
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
        "sweetspot: two documents cannot go to a: give each its own file\n"
    );
}

#[test]
fn profiles_that_cannot_be_are_refused_quickly() {
    let folder = folder();
    let v100 = include_str!("../../sim/profiles/gpus/tesla_v100_sxm2_16gb.toml");
    let resnet = include_str!("../../sim/profiles/workloads/power_capping_2022/resnet50.toml");
    let gpu = |from: &str, to: &str| (v100.replacen(from, to, 1), resnet.to_owned());
    let workload = |from: &str, to: &str| (v100.to_owned(), resnet.replacen(from, to, 1));
    let cases = [
        gpu("max = \"300 W\"", "max = \"1e300 W\""),
        gpu("time_constant = \"40 s\"", "time_constant = \"1 us\""),
        gpu("ambient = \"30 C\"", "ambient = \"-1e9 C\""),
        gpu(
            "leakage_per_degree = \"0.5 %\"",
            "leakage_per_degree = \"NaN\"",
        ),
        gpu("bandwidth = \"900 GB/s\"", "bandwidth = \"1 B/s\""),
        gpu("core = \"220 W\"", "core = \"1e300 W\""),
        gpu("memory = \"2", "memory = \"9"),
        gpu("name = \"Tesla", "name = \"\\u001b[31mTesla"),
        workload("host = \"", "host = \"1e20"),
        workload("items = 100000", "items = 9223372036854775807"),
        workload("items = 100000", "startup = \"1e6 h\"\nitems = 100000"),
        workload(
            "items = 100000",
            "host_per_batch = \"20 h\"\nitems = 100000",
        ),
        workload("name = \"forward\"", "name = \"\""),
        (String::new(), resnet.to_owned()),
        ("\u{0}\u{1}".to_owned(), resnet.to_owned()),
    ];
    for (gpu, workload) in &cases {
        std::fs::write(folder.path().join("g.toml"), gpu).unwrap();
        std::fs::write(folder.path().join("w.toml"), workload).unwrap();
        let output = sweetspot(
            folder.path(),
            &["sweep", "--simulate", "g.toml", "--network", "w.toml"],
        );
        let message = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{message}{}\n{gpu}\n{workload}",
            text(&output.stdout)
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    for (gpu, reason) in [
        ("/dev/zero.toml/..", "cannot read"),
        (".", "there is no GPU"),
        ("./", "it is not a file"),
        ("/dev/../dev/zero", "it is not a file"),
    ] {
        let message = refused_in(
            tempfile::tempdir().unwrap().path(),
            &["sweep", "--simulate", gpu, "--network", "resnet50"],
            2,
        );
        assert!(message.contains(reason), "{message}");
    }
    let message = refused(&["--power-cap", "150..300:0.02", "--repeat", "10000"], 2);
    assert!(
        message.contains("the study has 75010000 runs, more than 1000000"),
        "{message}"
    );
}

#[test]
fn forms_that_a_workload_does_not_have_are_refused() {
    let message = refused(&["--conv-algorithm", "fft"], 2);
    assert!(
        message.contains("has no choice of convolution algorithm"),
        "{message}"
    );
    let folder = folder();
    let sweep = ["sweep", "--simulate", "tesla_p100", "--network", "vgg16"];
    let with = |more: &[&str]| refused_in(folder.path(), &[&sweep[..], more].concat(), 2);
    let message = with(&["--conv-algorithm", "ftt"]);
    assert!(
        message.contains("knows no convolution algorithm `ftt`; it has gemm, fft, winograd"),
        "{message}"
    );
    let message = with(&["--batch", "256"]);
    assert!(message.contains("the largest that fits is"), "{message}");
    let message = with(&["--core-clock", "1001"]);
    assert!(
        message.contains("--core-clock: 1001 MHz is not offered"),
        "{message}"
    );
    let message = with(&["--gpus", "2"]);
    assert!(message.contains("--gpus 2: there are 1"), "{message}");
    let message = with(&["--energy-of", "node"]);
    assert!(message.contains("name a node with --node"), "{message}");
}

#[test]
fn a_node_is_swept_over_its_gpus() {
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

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// What a study was made for is what its report, its resumption and a run from it answer.
#[test]
fn a_study_keeps_its_objective_and_limits() {
    let folder = folder();
    let place = folder.path();
    for strategy in [&["--strategy", "guided", "--prior", "none"][..], &[]] {
        let question = ["--objective", "energy", "--limit", "time<=+5%"];
        let study = ["--study", "kept", "--export-json", "whole.json"];
        let args = [&SWEEP[..], strategy, &question, &study].concat();
        let output = sweetspot(place, &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let recommends = |output: &std::process::Output| {
            let text = text(&output.stdout);
            let line = text.lines().find(|line| line.contains("Recommendation"));
            line.unwrap_or_default().to_owned()
        };
        let told = recommends(&output);
        assert!(told.contains("best energy, time<=+5%"), "{told}");
        let again = ["sweep", "--resume", "kept", "--export-json", "again.json"];
        let output = sweetspot(place, &again);
        assert_eq!(recommends(&output), told);
        let whole = json(&place.join("whole.json"));
        assert_eq!(whole, json(&place.join("again.json")));
        assert_eq!(whole["limits"][0], "time<=+5%");
        let report = text(&sweetspot(place, &["report", "kept"]).stdout);
        assert!(
            report.contains("best energy within `time<=+5%`"),
            "{report}"
        );
        let other = ["--objective", "edp", "--limit", "none"];
        let report = text(&sweetspot(place, &[&["report", "kept"][..], &other].concat()).stdout);
        assert!(report.contains("best edp."), "{report}");
        std::fs::remove_dir_all(place.join("kept")).unwrap();
    }
}

#[test]
fn a_searched_study_tells_its_answer_to_programs() {
    let folder = folder();
    let more = ["--strategy", "guided", "--prior", "none", "--no-study"];
    let args = [&SWEEP[..], &more, &["--export-json", "found.json"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert!(output.status.success());
    let study = json(&folder.path().join("found.json"));
    let search = &study["search"];
    assert_eq!(search["strategy"], "guided");
    assert_eq!(search["objective"], "edp");
    assert_eq!(search["ended"], "sure");
    assert!(search["expected_regret"].as_f64().unwrap() < 0.004);
    assert_eq!(search["point"], study["best"]["edp"]["point"]);
    let cap = &search["choice"]["power_cap_w"];
    let told = text(&output.stdout);
    assert!(
        told.contains(&format!("set the power cap to {cap} W")),
        "{told}"
    );
    let points = study["points"].as_array().unwrap();
    let runs: u64 = points
        .iter()
        .map(|point| point["runs"].as_u64().unwrap())
        .sum();
    assert_eq!(search["evaluations"], runs);
    for point in points {
        let is_run = point["runs"].as_u64() > Some(0);
        assert_eq!(point["status"] == "ok", is_run, "{point}");
        assert_eq!(point["status"] == "not-run", !is_run, "{point}");
    }
}

#[test]
fn a_limit_on_what_nobody_reports_is_not_met() {
    let folder = folder();
    let more = ["--power-cap", "150,200,300", "--repeat", "1", "--no-study"];
    let args = [&SWEEP[..], &more, &["--limit", "accuracy>=0.7"]].concat();
    let output = sweetspot(folder.path(), &args);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    assert!(told.contains("Nothing to recommend"), "{told}");
}

#[test]
fn what_a_search_learns_from_is_said() {
    let folder = folder();
    let place = folder.path();
    let other = [
        "sweep",
        "--simulate",
        "quadro_rtx_6000",
        "--network",
        "resnet50",
    ];
    let few = ["--power-cap", "150,200", "--repeat", "1"];
    sweetspot(place, &[&other[..], &few, &["--study", "other"]].concat());
    let caps = ["--repeat", "1", "--study", "own"];
    sweetspot(place, &[&SWEEP[..], &caps].concat());
    let prior = [
        "--strategy",
        "guided",
        "--no-study",
        "--prior",
        "other,own,own",
    ];
    let output = sweetspot(place, &[&SWEEP[..], &prior].concat());
    let err = text(&output.stderr);
    assert!(
        err.contains("learns nothing from") && err.contains("another GPU"),
        "{err}"
    );
    assert_eq!(err.matches("the search learns from").count(), 1, "{err}");
    std::fs::create_dir_all(place.join("studies/broken")).unwrap();
    std::fs::write(place.join("studies/broken/study.db"), "no database").unwrap();
    let output = sweetspot(place, &[&SWEEP[..], &prior[..3]].concat());
    let err = text(&output.stderr);
    assert!(err.contains("studies/broken"), "{err}");
    // A copy without its samples goes on all the same.
    std::fs::remove_dir_all(place.join("own/samples")).unwrap();
    let output = sweetspot(place, &["sweep", "--resume", "own"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}
