//! What limits a load: the sentence and the document, compared with what is known of the simulated load.

use super::common::{json, measure, number, text, words, workload};
use crate::host::TestHost;

/// A workload of which nine tenths wait for the memory, at a power far below the cap.
pub const MEMORY_BOUND: &str = r#"
network = "text_generation"
mode = "infer"
batch = 8
half_speed_batch = 1

[memory]
fixed = "1 GB"
per_item = "10 MB"

[[phase]]
name = "forward"
core = "100 %"
memory = "100 %"

[[on]]
gpu = "nvidia_h200"
items = 100000
core = "0.1 ms"
memory = "0.9 ms"
switching = "40 %"
memory_activity = "60 %"
"#;

#[test]
fn the_limit_of_a_load_is_that_of_the_simulated_gpu() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("text_generation.toml");
    std::fs::write(&profile, MEMORY_BOUND).unwrap();
    let profile = profile.to_string_lossy().into_owned();
    let host = TestHost::new("nvidia_h200");
    let limits = |network: &str| {
        let (document, _) = json(&host, &words(&workload(network, "4")));
        document["devices"][0]["limits"].clone()
    };
    let memory = limits(&profile);
    assert_eq!(memory["limited_by"], "memory", "{memory}");
    assert_eq!(memory["knob"], "core-clock", "{memory}");
    assert_eq!(memory["power_cap_binds"], false, "{memory}");
    assert_eq!(memory["throttled_by_power_cap"], 0.0, "{memory}");
    // The window includes the start of the program, in which the GPU is idle.
    let [cores, used] = ["core_use", "memory_bandwidth_use"].map(|key| number(&memory[key]));
    assert!((used / cores - 0.9).abs() < 0.01, "{memory}");
    let capped = limits("vgg19");
    assert_eq!(capped["limited_by"], "power-cap", "{capped}");
    assert_eq!(capped["knob"], "power-cap", "{capped}");
    assert!(number(&capped["throttled_by_power_cap"]) > 0.5, "{capped}");
    // Under a lower cap, the first load is limited by it too.
    host.set_cap(0, 200.0);
    let lower = limits(&profile);
    assert_eq!(lower["limited_by"], "power-cap", "{lower}");
    assert_eq!(lower["power_cap_w"], 200.0, "{lower}");
}

#[test]
fn a_gpu_without_counters_is_judged_by_its_power() {
    let host = TestHost::new("tesla_p100");
    let output = measure(&host, &words(&workload("resnet50", "4")));
    let printed = text(&output.stdout);
    let (document, _) = json(&host, &words(&workload("resnet50", "4")));
    let limits = &document["devices"][0]["limits"];
    for absent in ["throttled_by_power_cap", "core_use", "memory_bandwidth_use"] {
        assert!(limits.get(absent).is_none(), "{document}");
    }
    assert_eq!(limits["power_cap_binds"], false, "{limits}");
    assert_eq!(limits["limited_by"], "unknown", "{limits}");
    let sentence = "The power cap of 250 W does not limit this load, which draws ";
    assert!(printed.contains(sentence), "{printed}");
}

#[test]
fn a_sweep_says_once_what_limits_its_reference() {
    let folder = tempfile::tempdir().unwrap();
    let host = TestHost::new("nvidia_h200");
    let command = workload("resnet50", "3.5");
    let output = host
        .sweetspot()
        .args(["sweep", "--power-cap", "600,700", "--repeat", "1"])
        .args(command)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let notes = text(&output.stderr);
    assert!(output.status.success(), "{notes}");
    let sentence = "at the reference, the power cap of 700 W does not limit this load";
    assert_eq!(notes.matches(sentence).count(), 1, "{notes}");
    assert_eq!(notes.matches("at the reference").count(), 1, "{notes}");
}
