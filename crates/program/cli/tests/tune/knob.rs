//! `tune --knob auto` with commands on simulated hosts in real time.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use super::{json, tune};
use crate::common::text;
use crate::host::TestHost;
use crate::measure::limits::MEMORY_BOUND;
use sweetspot_sim_host::Host;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sweetspot");

/// Tunes a stand-in job of some seconds, too few for a choice, with the knob `auto`.
pub fn tune_briefly(host: &TestHost, folder: &Path, network: &str) -> (Value, Output) {
    let args = [
        "--knob",
        "auto",
        "--fresh",
        "--objective",
        "energy",
        "--export-json",
        "-",
        "--",
        PROGRAM,
        "sim-workload",
        "--network",
        network,
        "--seconds",
        "18",
    ];
    let output = tune(host, folder, &args).output().unwrap();
    (json(&output), output)
}

/// Writes the profile of a load that waits for the memory.
pub fn memory_bound(folder: &Path) -> String {
    let file = folder.join("text_generation.toml");
    std::fs::write(&file, MEMORY_BOUND).unwrap();
    file.to_string_lossy().into_owned()
}

/// Whether the core clock of the first GPU is locked.
fn is_clock_locked(host: &TestHost) -> bool {
    let host = Host::open(host.folder()).unwrap();
    let lock = host.gpus()[0].with_gpu(|gpu| gpu.core_lock());
    lock.unwrap().is_some()
}

/// Writes a profile of the H200 on which a knob may not be changed.
fn denied_knob(folder: &Path, knob: &str) -> String {
    let profile = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");
    let file = folder.join(format!("{knob}.toml"));
    let fault = format!("[[fault]]\nkind = \"write-denied\"\nknob = \"{knob}\"\n");
    std::fs::write(&file, format!("{profile}\n{fault}")).unwrap();
    file.to_string_lossy().into_owned()
}

#[test]
fn the_clock_is_tuned_where_memory_limits_the_load_and_the_cap_where_it_binds() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory_bound(folder.path());
    let host = TestHost::new("nvidia_h200");
    let (document, output) = tune_briefly(&host, folder.path(), &memory);
    let load = &document["loads"][0];
    assert_eq!(load["knob"], "core-clock", "{document}");
    assert_eq!(load["limits"]["limited_by"], "memory", "{document}");
    assert_eq!(load["limits"]["power_cap_binds"], false, "{document}");
    assert!(
        host.writes().contains("lock_core_clock"),
        "{}",
        host.writes()
    );
    assert!(!is_clock_locked(&host));
    let err = text(&output.stderr);
    assert_eq!(err.matches("the core clock is tuned: ").count(), 1, "{err}");
    let host = TestHost::new("nvidia_h200");
    let (document, output) = tune_briefly(&host, folder.path(), "vgg19");
    let load = &document["loads"][0];
    assert_eq!(load["knob"], "power-cap", "{document}");
    assert_eq!(load["limits"]["limited_by"], "power-cap", "{document}");
    assert!(
        !host.writes().contains("lock_core_clock"),
        "{}",
        host.writes()
    );
    let err = text(&output.stderr);
    let sentence = "the power cap is tuned: the power cap of 700 W limits this load";
    assert_eq!(err.matches(sentence).count(), 1, "{err}");
}

#[test]
fn a_knob_that_may_not_be_changed_is_replaced_by_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory_bound(folder.path());
    let host = TestHost::new(&denied_knob(folder.path(), "core-clock"));
    let (document, output) = tune_briefly(&host, folder.path(), &memory);
    let err = text(&output.stderr);
    let sentence = "the core clock cannot be set, so the power cap is tuned: ";
    assert_eq!(err.matches(sentence).count(), 1, "{err}");
    assert_eq!(document["loads"][0]["knob"], "power-cap", "{document}");
    let host = TestHost::new(&denied_knob(folder.path(), "power-cap"));
    let (document, output) = tune_briefly(&host, folder.path(), "vgg19");
    let err = text(&output.stderr);
    let sentence = "the power cap cannot be set, so the core clock is tuned: ";
    assert_eq!(err.matches(sentence).count(), 1, "{err}");
    let tried = document["windows"].as_array().unwrap();
    let is_clock = |window: &Value| window["settings"].get("core_clock_mhz").is_some();
    assert!(tried.iter().any(is_clock), "{document}");
    assert!(!is_clock_locked(&host));
}
