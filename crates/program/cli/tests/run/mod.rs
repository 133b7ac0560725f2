//! `sweetspot run`: a command at a setting, and restored settings afterwards.

mod failures;
mod from_study;
mod memory_clocks;
mod settings;

use std::process::Output;

use sweetspot_sim_host::Host;

use crate::host::TestHost;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run(host: &TestHost, args: &[&str]) -> Output {
    host.sweetspot().arg("run").args(args).output().unwrap()
}

fn cap(host: &TestHost) -> f64 {
    let shared = Host::open(host.folder()).unwrap();
    shared.gpus()[0]
        .with_gpu(|gpu| gpu.power_cap().get())
        .unwrap()
}
