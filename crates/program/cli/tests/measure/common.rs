//! How the program is called and its answer read.

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

/// The document of a measurement, and how it ended.
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

pub fn begin(host: &TestHost, args: &[&str]) -> Child {
    let mut command = command(host, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// What the workload says it drew, and what is drawn at rest in the rest of the window.
pub fn truth(said: &str, window: f64, idle: f64) -> f64 {
    let done = said
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
