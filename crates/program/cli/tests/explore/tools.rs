//! What the tests share.

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use sweetspot_sim_host::Host;

use crate::common::{sweetspot, text};
use crate::host::TestHost;

/// `sweep` on a host, in a folder.
pub fn sweep(host: &TestHost, folder: &Path, args: &[&str]) -> Output {
    on(host, folder, &[&["sweep"], args].concat())
}

/// The program on a host, in a folder.
pub fn on(host: &TestHost, folder: &Path, args: &[&str]) -> Output {
    host.sweetspot()
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the program starts")
}

/// The JSON of a study.
pub fn exported(folder: &Path, study: &str) -> Value {
    let output = sweetspot(folder, &["study", "export", study, "--export-json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Caps and locks of every GPU.
pub fn settings(host: &TestHost) -> Vec<(f64, bool)> {
    let shared = Host::open(host.folder()).unwrap();
    let gpus = shared.gpus().iter();
    gpus.map(|gpu| {
        gpu.with_gpu(|gpu| (gpu.power_cap().get(), gpu.core_lock().is_some()))
            .unwrap()
    })
    .collect()
}

/// The stand-in workload as words.
pub fn workload(items: &str) -> Vec<&str> {
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let network = ["sim-workload", "--network", "resnet50", "--batch", "32"];
    [&[program], &network[..], &["--items", items]].concat()
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// Whether a process with this in its command line is there.
pub fn is_running(words: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.starts_with("sleep") && line.contains(words)
    })
}
