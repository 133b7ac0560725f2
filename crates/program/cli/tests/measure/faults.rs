//! Faulty GPUs.

use std::path::Path;

use super::common::{expected_energy, json, number, text, warnings, words, workload};
use crate::host::TestHost;

/// Writes a GPU profile with a fault.
fn faulty_gpu(folder: &Path, profile: &str, fault: &str) -> String {
    let path = folder.join("gpu.toml");
    std::fs::write(&path, format!("{profile}\n[[fault]]\n{fault}\n")).unwrap();
    path.to_string_lossy().into_owned()
}

const H200: &str = include_str!("../../../../simulate/sim/profiles/gpus/nvidia_h200.toml");
const MAXWELL: &str = include_str!("../../../../simulate/sim/profiles/gpus/titan_x_maxwell.toml");

#[test]
fn a_lost_gpu_gives_a_partial_energy_and_no_total() {
    let folder = tempfile::tempdir().unwrap();
    for profile in [H200, MAXWELL] {
        let gpu = faulty_gpu(folder.path(), profile, "kind = \"lost\"\nafter = \"3 s\"");
        let host = TestHost::new(&gpu);
        let (document, output) = json(&host, &["--", "sleep", "4"]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(document.get("energy_j").is_none(), "{document}");
        assert!(document.get("average_power_w").is_none(), "{document}");
        let device = &document["devices"][0];
        let (part, whole) = (number(&device["covered_s"]), number(&document["time_s"]));
        assert!((0.5..3.1).contains(&part), "{document}");
        let missing = &device["missing"][0];
        assert_eq!(missing["reason"], "the device was lost", "{document}");
        assert!(
            (number(&missing["time_s"]) + part - whole).abs() < 0.05,
            "{document}"
        );
        let told = warnings(&document);
        assert!(told[0].contains("the energy covers only"), "{told:?}");
        // What it drew while it was there is right.
        let power = number(&device["energy_j"]) / part;
        assert!(
            (power - number(&device["average_power_w"])).abs() < 1e-6,
            "{document}"
        );
        assert!(power > 10.0, "{document}");
    }
}

#[test]
fn a_counter_reset_loses_no_energy() {
    let folder = tempfile::tempdir().unwrap();
    let gpu = faulty_gpu(
        folder.path(),
        H200,
        "kind = \"counter-wraps\"\nat = \"500 J\"",
    );
    let host = TestHost::new(&gpu);
    let (document, output) = json(&host, &words(&workload("resnet50", "2")));
    let truth = expected_energy(&text(&output.stderr), number(&document["time_s"]), 72.0);
    assert!(
        (number(&document["energy_j"]) / truth - 1.0).abs() < 0.02,
        "{truth} J: {document}"
    );
    let missing = &document["devices"][0]["missing"][0];
    assert_eq!(missing["sensor"], "energy counter", "{document}");
    assert_eq!(missing["reason"], "the counter was reset", "{document}");
}
