//! Programs and devices that misbehave.

use super::common::{PROGRAM, hold, json, last_batch, number, serving, stderr_text};
use crate::host::TestHost;

#[test]
fn a_program_that_never_asks_gets_the_line_to_add() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "300W", "--patience", "1s"];
    let output = hold(&host, &args, &["--", "sleep", "2"]);
    let message = stderr_text(&output);
    assert!(
        message.contains("has not asked for its batch size"),
        "{message}"
    );
    assert!(
        message.contains("size = sweetspot.batch_size(default=16)"),
        "{message}"
    );
    assert_eq!(message.matches("batch_size").count(), 1, "{message}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("no batch of a requested size"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_program_that_ignores_its_batch_size_is_reported() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "600W", "--batches", "4,8"];
    let output = hold(&host, &args, &serving("3", &["--batch", "64"]));
    let message = stderr_text(&output);
    assert!(message.contains("uses batches of 64"), "{message}");
    assert_eq!(message.matches("uses batches of").count(), 1, "{message}");
}

#[test]
fn a_program_that_dies_ends_the_hold_with_its_code() {
    let host = TestHost::new("nvidia_h200");
    let script =
        format!("{PROGRAM} sim-workload --network resnet50 --infer --serve --seconds 1; exit 7");
    let (document, output) = json(&host, &["--below", "300W"], &["--", "sh", "-c", &script]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(document["exit_code"], 7);
    assert!(number(&document["items"]) > 100.0, "{document}");
    let killed = hold(
        &host,
        &["--below", "300W"],
        &["--", "sh", "-c", "kill -9 $$"],
    );
    assert_eq!(killed.status.code(), Some(137));
}

fn batch_that_does_not_fit() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "5000W", "--batches", "32,2000000"];
    let (document, output) = json(&host, &args, &serving("4", &[]));
    let message = stderr_text(&output);
    assert!(
        message.contains("a batch of 2000000 does not fit"),
        "{message} {document}"
    );
    assert_eq!(message.matches("does not fit into").count(), 1, "{message}");
    assert_eq!(last_batch(&document), 32.0, "{document}");
}

fn cap_below_idle() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "50W", "--batches", "1,2"];
    let (document, output) = json(&host, &args, &serving("4", &[]));
    assert_eq!(output.status.code(), Some(1));
    let text = stderr_text(&output);
    let times = text.matches("the power cap of 50 W cannot be met").count();
    assert_eq!(times, 1, "{text}");
    assert_eq!(document["met"], false, "{document}");
}

fn latency_below_any_batch() {
    let host = TestHost::new("nvidia_h200");
    let bounds = ["--below", "600W", "--latency-p99", "1ms"];
    let args = [&bounds[..], &["--batches", "1,2"]].concat();
    let (document, output) = json(&host, &args, &serving("4", &[]));
    let text = stderr_text(&output);
    let times = text.matches("the latency bound of 1.0 ms cannot be met");
    assert_eq!(times.count(), 1, "{text}");
    let ended = (last_batch(&document), output.status.code());
    assert_eq!(ended, (1.0, Some(1)), "{document}");
}

#[test]
fn impossible_caps_and_latencies_are_reported_once() {
    std::thread::scope(|scope| {
        scope.spawn(cap_below_idle);
        scope.spawn(latency_below_any_batch);
    });
}

fn sensor_that_stops() {
    let folder = tempfile::tempdir().unwrap();
    let profile = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");
    let stuck = [
        "energy-counter",
        "average-power",
        "instant-power",
        "buffered-power",
    ]
    .map(|sensor| {
        format!("[[fault]]\nkind = \"stuck-sensor\"\nsensor = \"{sensor}\"\nafter = \"2 s\"\n")
    });
    let path = folder.path().join("gpu.toml");
    std::fs::write(&path, format!("{profile}\n{}", stuck.concat())).unwrap();
    let host = TestHost::new(path.to_str().unwrap());
    let args = ["--below", "600W", "--batches", "16,32"];
    let (document, output) = json(&host, &args, &serving("8.5", &[]));
    let message = stderr_text(&output);
    assert_eq!(
        message.matches("no new power reading for").count(),
        1,
        "{message} {document}"
    );
    // Neither an energy nor a verdict without data.
    assert_eq!(output.status.code(), Some(1), "{document}");
    assert!(document.get("met").is_none(), "{document}");
    assert!(document.get("energy_per_item_j").is_none(), "{document}");
    assert!(document["unread_s"].as_f64().unwrap() > 4.0, "{document}");
    let reason = document["met_reason"].to_string();
    assert!(reason.contains("no power readings for"), "{reason}");
}

#[test]
fn oversized_batches_and_stuck_sensors_are_reported_once() {
    std::thread::scope(|scope| {
        scope.spawn(batch_that_does_not_fit);
        scope.spawn(sensor_that_stops);
    });
}
