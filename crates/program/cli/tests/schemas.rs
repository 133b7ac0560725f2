//! The JSON documents of the program against their schemas in docs/schemas.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{sweetspot, text, words};
use crate::host::TestHost;

/// Prints a line for each document, one in each line of the input: its first problem, or nothing.
const VALIDATE: &str = "
import json, sys
from jsonschema import Draft202012Validator
validator = Draft202012Validator(json.load(open(sys.argv[1])))
Draft202012Validator.check_schema(validator.schema)
for line in sys.stdin:
    problems = sorted(validator.iter_errors(json.loads(line)), key=lambda problem: str(problem.path))
    print(f'{problems[0].json_path}: {problems[0].message[:300]}' if problems else '')
";

/// Commands on simulated GPUs in virtual time, by the schema of what they export. They run one after the other in the
/// same folder, so that later ones can use the studies of earlier ones.
const IN_VIRTUAL_TIME: [(&str, &str); 22] = [
    (
        "study",
        "sweep --study caps --simulate v100 --network resnet50",
    ),
    (
        "study",
        "sweep --study clocks --simulate tesla_p100 --network vgg16 --infer --core-clock all --axis batch=8,32 --repeat 1",
    ),
    (
        "study",
        "sweep --study node --node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node",
    ),
    (
        "study",
        "sweep --study memory --simulate v100 --network resnet50 --axis batch=64,100000 --power-cap 200",
    ),
    (
        "study",
        "sweep --study mixed --simulate v100:2 --network resnet50 --power-cap 160,200/250 --gpus 2",
    ),
    (
        "study",
        "sweep --study guided --simulate v100 --network resnet50 --strategy guided",
    ),
    ("study", "study export caps"),
    ("report", "report caps --limit time<=+5%"),
    ("report", "report caps --limit time<=-50%"),
    ("report", "report clocks --by core-clock --over batch"),
    ("compare", "compare caps guided memory"),
    ("fit", "fit caps -o fitted.toml"),
    (
        "replay",
        "replay --study caps --strategy all --objective energy",
    ),
    (
        "replay",
        "replay --study caps --strategy golden --objective energy --limit time<=-50%",
    ),
    ("reproduce", "reproduce dvfs-2019"),
    ("reproduce", "reproduce batch-sizer-2021"),
    (
        "network",
        "network googlenet --train --batch 8 --simulate v100",
    ),
    ("network", "network caffenet --convention table-1"),
    ("network", "network resnet50 --study caps"),
    (
        "tune",
        "tune --simulate v100 --network resnet50 --objective energy",
    ),
    (
        "tune",
        "tune --simulate quadro_rtx_6000 --network vgg19 --network resnet50 --objective energy --limit time<=+10%",
    ),
    (
        "tune",
        "tune --simulate v100 --network resnet50 --objective energy --items 1000",
    ),
];

/// Commands on a simulated host in real time; `SERVER` and `JOB` stand for workloads that use its GPUs.
const ON_A_HOST: [(&str, &str); 9] = [
    ("devices", "devices"),
    ("doctor", "doctor"),
    ("measure", "measure --device 0 -- JOB"),
    ("measure", "measure --runs 2 --idle -- sh -c :"),
    ("measure", "measure -- sh -c kill\u{a0}-TERM\u{a0}$$"),
    ("budget", "budget --below 400W --for 3s"),
    ("hold", "hold --device 0 --below 400W -- SERVER"),
    (
        "reproduce-on-gpu",
        "reproduce multi-gpu-2018 --on-this-gpu --points 2 --repeat 1 -- JOB",
    ),
    (
        "study",
        "sweep --power-cap 160,200/250 --gpus 2 --axis batch=32 --repeat 2 --settle 0 -- JOB",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The schemas of documents that need a running service or a node with meters: their own tests validate them.
const IN_OWN_TESTS: [&str; 3] = ["calibrate", "counter", "live"];

/// Returns the first problem of each document, found by the `jsonschema` package of `.venv`.
pub fn problems(schema: &str, documents: &[Value]) -> Vec<String> {
    let schema = format!("docs/schemas/{schema}.schema.json");
    let mut python = Command::new(root().join(".venv/bin/python"))
        .args(["-c", VALIDATE])
        .arg(root().join(schema))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python is needed in .venv: run scripts/setup");
    let lines: String = documents.iter().map(|one| format!("{one}\n")).collect();
    let mut input = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "is jsonschema in .venv?");
    let found: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(found.len(), documents.len());
    found
}

fn json(output: &Output) -> Value {
    let document = serde_json::from_slice(&output.stdout);
    document.unwrap_or_else(|problem| panic!("{problem}: {}", text(&output.stderr)))
}

/// The words of a command with its flag for the document, before `--` where a command of the user's follows.
fn exporting(line: &str) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let workload = format!("{program} sim-workload --network resnet50 --batch 32");
    let line = line
        .replace("JOB", &format!("{workload} --items 64"))
        .replace("SERVER", &format!("{workload} --infer --serve --seconds 3"));
    let line = match line.split_once(" -- ") {
        Some((own, command)) => format!("{own} --export-json - -- {command}"),
        None => format!("{line} --export-json -"),
    };
    let words = line.split(' ');
    words.map(|word| word.replace('\u{a0}', " ")).collect()
}

/// Every document of the tables, with its schema and its command.
fn documents(folder: &Path) -> Vec<(&'static str, &'static str, Value)> {
    let mut all = Vec::new();
    for (schema, line) in IN_VIRTUAL_TIME {
        let args = exporting(line);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        all.push((schema, line, json(&sweetspot(folder, &args))));
    }
    let host = TestHost::new("v100:2");
    for (schema, line) in ON_A_HOST {
        let mut command = host.sweetspot();
        command.args(exporting(line)).current_dir(folder);
        all.push((schema, line, json(&command.output().unwrap())));
    }
    all
}

#[test]
#[ignore = "needs jsonschema in .venv: run scripts/setup"]
fn every_document_matches_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let documents = documents(folder.path());
    let files = std::fs::read_dir(root().join("docs/schemas")).unwrap();
    let schemas: BTreeSet<String> = files
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".schema.json")?.to_owned()))
        .collect();
    let of_commands = |schema: &String| !IN_OWN_TESTS.contains(&schema.as_str());
    for schema in schemas.into_iter().filter(of_commands) {
        let own: Vec<_> = documents.iter().filter(|one| one.0 == schema).collect();
        assert!(!own.is_empty(), "no command exports {schema}");
        let values: Vec<Value> = own.iter().map(|one| one.2.clone()).collect();
        for (problem, (_, line, _)) in problems(&schema, &values).iter().zip(own) {
            assert_eq!(problem, "", "{line}");
        }
    }
}

#[test]
#[ignore = "needs jsonschema in .venv: run scripts/setup"]
fn the_schema_of_a_study_rejects_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        words("sweep --no-study --simulate v100 --network alexnet --power-cap 200 --export-json -");
    let good = json(&sweetspot(folder.path(), &args));
    let mistakes: [fn(&mut Value); 8] = [
        |study| study["schema"] = "sweetspot.study/2".into(),
        |study| study["points"][0]["status"] = "fine".into(),
        |study| study["points"][0]["time_s"]["mean"] = "long".into(),
        |study| study["points"][0]["unheard_of"] = 1.into(),
        |study| study["points"][0]["average_power_w"] = Value::Null,
        |study| study["points"][0]["energy_by_device_j"]["GPU-0"] = (-1.0).into(),
        |study| {
            study.as_object_mut().unwrap().remove("reference");
        },
        |study| {
            let point = study["points"][0].as_object_mut().unwrap();
            point.remove("time_s");
        },
    ];
    let mut studies = vec![good; mistakes.len() + 1];
    for (study, mistake) in studies.iter_mut().skip(1).zip(mistakes) {
        mistake(study);
    }
    let found = problems("study", &studies);
    assert_eq!(found[0], "");
    for (problem, study) in found.iter().zip(&studies).skip(1) {
        assert!(!problem.is_empty(), "{study}");
    }
}
