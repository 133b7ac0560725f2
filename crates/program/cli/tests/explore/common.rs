//! Helpers of these tests.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::common::{sweetspot, text};
use crate::host::TestHost;

/// Runs `sweetspot sweep` on a host, in a folder.
pub fn sweep(host: &TestHost, folder: &Path, args: &[&str]) -> Output {
    sweetspot_on_host(host, folder, &[&["sweep"], args].concat())
}

/// Runs the program on a host, in a folder.
pub fn sweetspot_on_host(host: &TestHost, folder: &Path, args: &[&str]) -> Output {
    host.sweetspot()
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

/// Exports a study as JSON.
pub fn exported_study(folder: &Path, study: &str) -> Value {
    let output = sweetspot(folder, &["study", "export", study, "--export-json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The power cap of every GPU, and whether its core clock is locked.
pub fn settings(host: &TestHost) -> Vec<(f64, bool)> {
    let shared = Host::open(host.folder()).unwrap();
    let gpus = shared.gpus().iter();
    gpus.map(|gpu| {
        gpu.with_gpu(|gpu| (gpu.power_cap().get(), gpu.core_lock().is_some()))
            .unwrap()
    })
    .collect()
}

/// The command line of a stand-in workload.
pub fn workload(items: &str) -> Vec<&str> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let network = ["sim-workload", "--network", "resnet50", "--batch", "32"];
    [&[program], &network[..], &["--items", items]].concat()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Whether a `sleep` process with these words in its command line is running.
pub fn is_running(words: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.starts_with("sleep") && line.contains(words)
    })
}
