//! Helpers that run `sweetspot measure` and read its result.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::host::TestHost;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn measure(host: &TestHost, args: &[&str]) -> Output {
    command(host, args).output().unwrap()
}

pub fn command(host: &TestHost, args: &[&str]) -> Command {
    let mut command = host.sweetspot();
    command.arg("measure").args(args).stdin(Stdio::null());
    command
}

/// Runs a measurement, and returns its document and its output.
pub fn json(host: &TestHost, args: &[&str]) -> (Value, Output) {
    let output = measure(host, &[&["--export-json", "-"], args].concat());
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (document, output)
}

pub fn shell(script: &str) -> [&str; 4] {
    ["--", "sh", "-c", script]
}

pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is a number"))
}

pub fn warnings(document: &Value) -> Vec<String> {
    let all = document["warnings"].as_array().unwrap();
    all.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

pub fn workload(network: &str, seconds: &str) -> Vec<String> {
    let words = [
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        network,
        "--seconds",
        seconds,
    ];
    words.map(str::to_owned).to_vec()
}

pub fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

pub fn start_measure(host: &TestHost, args: &[&str]) -> Child {
    let mut command = command(host, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The true energy of a window: what the workload reports that it drew, and idle power in the rest of the window.
pub fn expected_energy(message: &str, window: f64, idle: f64) -> f64 {
    let done = message
        .lines()
        .find(|line| line.starts_with("done: "))
        .unwrap();
    let before = |unit: &str| -> f64 {
        let words: Vec<&str> = done.split([' ', ',']).collect();
        let place = words.iter().position(|word| *word == unit).unwrap();
        words[place - 1].parse().unwrap()
    };
    before("J") + idle * (window - before("s"))
}
