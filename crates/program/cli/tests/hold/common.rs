//! Helpers that start a hold and read its result.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::common::own_group;
use crate::host::TestHost;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// A stand-in server that runs for some seconds. On the H200 a batch of up to 32 takes 5 ms, and batches of 16, 32, 64 and
/// 128 draw 223, 318, 469 and 549 W.
pub fn serving<'a>(seconds: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        "resnet50",
        "--infer",
        "--serve",
        "--seconds",
        seconds,
    ];
    [&words, more].concat()
}

pub fn command(host: &TestHost, args: &[&str], program: &[&str]) -> Command {
    let mut command = host.sweetspot();
    command.arg("hold").args(args).args(program);
    command.stdin(Stdio::null());
    command
}

pub fn hold(host: &TestHost, args: &[&str], program: &[&str]) -> Output {
    command(host, args, program).output().unwrap()
}

/// Runs a hold, and returns its document and its output.
pub fn json(host: &TestHost, args: &[&str], program: &[&str]) -> (Value, Output) {
    let output = hold(host, &[&["--export-json", "-"], args].concat(), program);
    (document(&output), output)
}

pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Starts a hold that runs while the test continues.
pub fn start_hold(host: &TestHost, args: &[&str], program: &[&str]) -> Child {
    let mut command = command(host, &[&["--export-json", "-"], args].concat(), program);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    own_group(&mut command).spawn().unwrap()
}

pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is a number"))
}

pub fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn caps(document: &Value) -> Vec<f64> {
    let caps = document["caps"].as_array().unwrap();
    caps.iter().map(|cap| number(&cap["cap_w"])).collect()
}

pub fn last_batch(document: &Value) -> f64 {
    let settings = document["settings"].as_array().unwrap();
    number(&settings[settings.len() - 1]["batch"])
}
