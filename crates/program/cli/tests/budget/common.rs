//! Helpers that start a budget and read the GPUs of its host.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::common::own_group;
use crate::host::TestHost;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// The power cap of every GPU before the budget.
pub const EARLIER_CAP: f64 = 280.0;

/// Runs a budget to its end.
pub fn budget(host: &TestHost, args: &[&str]) -> Output {
    let mut command = host.sweetspot();
    command.arg("budget").args(args).stdin(Stdio::null());
    command.output().unwrap()
}

/// Starts a budget that writes its document to standard output.
pub fn start_budget(host: &TestHost, args: &[&str]) -> Child {
    let mut command = host.sweetspot();
    command.args(["budget", "--export-json", "-"]).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    own_group(command.stderr(Stdio::piped())).spawn().unwrap()
}

/// Starts a stand-in training on some GPUs; one on a single GPU reports its progress over a link.
pub fn start_training(host: &TestHost, gpus: &str, ranks: &str) -> Child {
    let mut command = host.sweetspot();
    if ranks == "1" {
        command.args(["measure", "--", PROGRAM]);
    }
    let words = ["sim-workload", "--network", "resnet50", "--seconds", "60"];
    command.args(words).args(["--ranks", ranks]);
    command
        .env("CUDA_VISIBLE_DEVICES", gpus)
        .stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    own_group(&mut command).spawn().unwrap()
}

/// The power caps of the host's GPUs, in watts.
pub fn caps(host: &TestHost) -> Vec<f64> {
    let shared = Host::open(host.folder()).unwrap();
    let gpus = shared.gpus().iter();
    gpus.map(|gpu| gpu.with_gpu(|gpu| gpu.power_cap().get()).unwrap())
        .collect()
}

/// Waits until the caps are as wanted.
pub fn wait_for_caps(host: &TestHost, what: &str, is_wanted: impl Fn(&[f64]) -> bool) {
    let begun = Instant::now();
    while !is_wanted(&caps(host)) {
        let waited = begun.elapsed();
        assert!(waited < Duration::from_secs(20), "{what}: {:?}", caps(host));
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process, and to its group if that is asked for.
pub fn signal(name: &str, child: &Child, with_group: bool) {
    let sign = if with_group { "-" } else { "" };
    let target = format!("{sign}{}", child.id());
    let kill = Command::new("kill").args([name, "--", &target]).status();
    assert!(kill.unwrap().success());
}

pub fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

pub fn stderr_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
