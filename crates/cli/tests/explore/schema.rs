//! The JSON of a study against its schema, docs/study.schema.json.

use serde_json::Value;

use crate::common::{sweetspot, text, words};
use crate::host::TestHost;
use crate::tools::{sweep, workload};

fn schema() -> jsonschema::Validator {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn check(document: &[u8]) -> Value {
    let study: Value = serde_json::from_slice(document).unwrap();
    let problems: Vec<String> = schema()
        .iter_errors(&study)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(problems.is_empty(), "{problems:?}");
    study
}

#[test]
fn simulated_studies_are_as_the_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let studies = [
        "--simulate v100 --network resnet50",
        "--simulate tesla_p100 --network vgg16 --infer --core-clock all --repeat 1",
        "--node node_power_capping_2023 --network xception --gpus 1,8 --energy-of node",
        "--simulate v100 --network resnet50 --axis batch=64,100000 --power-cap 200",
    ];
    for args in studies {
        let line = format!("sweep --no-study --export-json - {args}");
        let output = sweetspot(folder.path(), &words(&line));
        let study = check(&output.stdout);
        let points = study["points"].as_array().unwrap();
        assert!(
            points.iter().any(|point| point["status"] == "ok"),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_measured_study_is_as_the_schema_says() {
    let host = TestHost::new("v100:2");
    let folder = tempfile::tempdir().unwrap();
    let args = words(
        "--power-cap 160,200/250 --gpus 2 --axis batch=32 --repeat 2 --settle 0 --export-json - --",
    );
    let output = sweep(&host, folder.path(), &[&args[..], &workload("64")].concat());
    let study = check(&output.stdout);
    assert_eq!(study["points"].as_array().unwrap().len(), 2);
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let args =
        words("sweep --no-study --simulate v100 --network alexnet --power-cap 200 --export-json -");
    let good = check(&sweetspot(folder.path(), &args).stdout);
    let breaks: [fn(&mut Value); 5] = [
        |study| study["schema"] = "sweetspot.study/2".into(),
        |study| study["points"][0]["status"] = "fine".into(),
        |study| study["points"][0]["time_s"]["mean"] = "long".into(),
        |study| study["points"][0]["unheard_of"] = 1.into(),
        |study| {
            study.as_object_mut().unwrap().remove("reference");
        },
    ];
    for wrong in breaks {
        let mut study = good.clone();
        wrong(&mut study);
        assert!(!schema().is_valid(&study), "{study}");
    }
}
