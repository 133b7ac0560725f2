//! Odd reports of programs, unknown results, and the end of a hold.

use std::process::Command;
use std::time::Duration;

use super::common::{document, hold, json, number, serving, start_hold, stderr_text};
use crate::host::TestHost;

/// A Python program that runs for some seconds and executes `each` after each batch; `size` is its batch size.
fn python(seconds: &str, each: &str) -> Vec<String> {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../python/src");
    let script = format!(
        "import sys, time; sys.path.insert(0, {client:?})\nimport sweetspot\nend = time.time() + {seconds}\nwhile time.time() < end:\n    size = sweetspot.batch_size(default=4); time.sleep(0.003)\n    {each}\n"
    );
    ["--", "python3", "-c", &script].map(str::to_owned).to_vec()
}

fn words(program: &[String]) -> Vec<&str> {
    program.iter().map(String::as_str).collect()
}

#[test]
fn repeated_reports_give_one_message() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "690W", "--batches", "4,8", "--patience", "1s"];
    let program = python("2", "sweetspot.out_of_memory(batch=size)");
    let output = hold(&host, &args, &words(&program));
    let text = stderr_text(&output);
    for words in [
        "even a batch of 4, the smallest, does not fit",
        "has reported no batch in 1 s: after each batch call sweetspot.batch(",
    ] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
    assert_eq!(output.status.code(), Some(1), "{text}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        told.contains("not met: your program never called sweetspot.batch()"),
        "{told}"
    );
}

#[test]
fn impossible_reports_are_ignored_and_an_unused_gpu_is_reported() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "690W", "--batches", "4"];
    let each = "sweetspot.batch(items=size, seconds=1e300); sweetspot.batch(items=2**63, seconds=0.1); sweetspot.batch(items=size, seconds=float('nan')); sweetspot.batch(items=2, seconds=0.004)";
    let program = python("8", each);
    let (document, output) = json(&host, &args, &words(&program));
    let text = stderr_text(&output);
    for words in [
        "1e300 as its batch_s",
        "as its items",
        "the last 50 batches had at most 2 of the requested",
        "check that the program uses this GPU",
    ] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
    assert!(!text.contains("no new power reading"), "{text}");
    assert!(number(&document["latency_p99_s"]) < 0.1, "{document}");
    assert_eq!(number(&document["average_batch"]), 2.0, "{document}");
    assert!(!document.to_string().contains("null"), "{document}");
}

#[test]
fn an_unknown_result_is_neither_met_nor_missed() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "690W", "--batches", "1,2"];
    let output = hold(&host, &args, &serving("0.5", &[]));
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("unknown: the run ended too early"), "{told}");
}

#[test]
fn nothing_is_counted_after_the_device_is_restored() {
    let host = TestHost::new("nvidia_h200");
    let args = ["--below", "690W", "--knob", "core-clock"];
    let server = serving("6", &[])[1..].join(" ");
    let program = format!("trap '' INT; {server}");
    let running = start_hold(&host, &args, &["--", "bash", "-c", &program]);
    std::thread::sleep(Duration::from_secs(3));
    let pid = running.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
    let output = running.wait_with_output().unwrap();
    let document = document(&output);
    assert_eq!(output.status.code(), Some(130), "{}", stderr_text(&output));
    let notes = document["notes"].to_string();
    let times = notes.matches("nothing is measured from here on").count();
    assert_eq!(times, 1, "{notes}");
    assert!(number(&document["time_s"]) < 4.0, "{document}");
}
