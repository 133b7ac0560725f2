//! The JSON of a study matches its schema, docs/study.schema.json.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::common::{sweep, workload};
use crate::common::{sweetspot, text, words};
use crate::host::TestHost;

/// A script that prints the first problem of each document, or an empty line; each line of its input is a document.
const VALIDATE: &str = "
import json, sys
from jsonschema import Draft202012Validator
validator = Draft202012Validator(json.load(open(sys.argv[1])))
Draft202012Validator.check_schema(validator.schema)
for line in sys.stdin:
    problems = sorted(validator.iter_errors(json.loads(line)), key=lambda problem: str(problem.path))
    print(f'{problems[0].json_path}: {problems[0].message[:300]}' if problems else '')
";

/// The first problem of each document, found by the package `jsonschema` in `.venv`.
fn problems(documents: &[Value]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let mut python = Command::new(root.join(".venv/bin/python"))
        .args(["-c", VALIDATE])
        .arg(root.join("docs/study.schema.json"))
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

fn check(documents: &[Value]) {
    for problem in problems(documents) {
        assert_eq!(problem, "");
    }
}

fn json(document: &[u8]) -> Value {
    serde_json::from_slice(document).unwrap()
}

#[test]
#[ignore = "needs jsonschema in .venv: run scripts/setup"]
fn simulated_studies_match_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let studies = [
        "--simulate v100 --network resnet50",
        "--simulate tesla_p100 --network vgg16 --infer --core-clock all --repeat 1",
        "--node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node",
        "--simulate v100 --network resnet50 --axis batch=64,100000 --power-cap 200",
    ];
    let mut documents = Vec::new();
    for args in studies {
        let line = format!("sweep --no-study --export-json - {args}");
        let output = sweetspot(folder.path(), &words(&line));
        let study = json(&output.stdout);
        let points = study["points"].as_array().unwrap();
        assert!(
            points.iter().any(|point| point["status"] == "ok"),
            "{}",
            text(&output.stderr)
        );
        documents.push(study);
    }
    check(&documents);
}

#[test]
#[ignore = "needs jsonschema in .venv: run scripts/setup"]
fn a_measured_study_matches_the_schema() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let args = words(
        "--power-cap 160,200/250 --gpus 2 --axis batch=32 --repeat 2 --settle 0 --export-json - --",
    );
    let output = sweep(&host, folder.path(), &[&args[..], &workload("64")].concat());
    let study = json(&output.stdout);
    assert_eq!(study["points"].as_array().unwrap().len(), 2);
    check(&[study]);
}

#[test]
#[ignore = "needs jsonschema in .venv: run scripts/setup"]
fn the_schema_rejects_wrong_documents() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        words("sweep --no-study --simulate v100 --network alexnet --power-cap 200 --export-json -");
    let good = json(&sweetspot(folder.path(), &args).stdout);
    let breaks: [fn(&mut Value); 5] = [
        |study| study["schema"] = "sweetspot.study/2".into(),
        |study| study["points"][0]["status"] = "fine".into(),
        |study| study["points"][0]["time_s"]["mean"] = "long".into(),
        |study| study["points"][0]["unheard_of"] = 1.into(),
        |study| {
            study.as_object_mut().unwrap().remove("reference");
        },
    ];
    let mut studies = vec![good; breaks.len() + 1];
    for (study, wrong) in studies.iter_mut().skip(1).zip(breaks) {
        wrong(study);
    }
    let found = problems(&studies);
    assert_eq!(found[0], "");
    for (problem, study) in found.iter().zip(&studies).skip(1) {
        assert!(!problem.is_empty(), "{study}");
    }
}
