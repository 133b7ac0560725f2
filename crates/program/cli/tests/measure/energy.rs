//! Measured energy compared with what the simulated GPUs really drew.

use super::common::{expected_energy, json, number, text, words, workload};
use crate::host::TestHost;

#[test]
fn energies_are_accurate_on_every_generation() {
    let generations = [
        ("titan_x_maxwell", "resnet_im", 16.0),
        ("tesla_p100", "resnet50", 26.0),
        ("v100", "resnet50", 40.0),
        ("gtx_2080ti", "resnet50", 15.0),
        ("nvidia_h200", "resnet50", 72.0),
    ];
    let errors: Vec<(String, f64, f64)> = std::thread::scope(|scope| {
        let one = |(gpu, network, idle): (&'static str, &'static str, f64)| {
            scope.spawn(move || {
                let host = TestHost::new(gpu);
                let (document, output) = json(&host, &words(&workload(network, "2.5")));
                let truth =
                    expected_energy(&text(&output.stderr), number(&document["time_s"]), idle);
                let device = &document["devices"][0];
                let half = number(&device["interval95_j"][1]) - number(&device["energy_j"]);
                let error = number(&device["energy_j"]) / truth - 1.0;
                (
                    format!("{gpu}: {error:+.4}, {document}"),
                    error,
                    half / truth,
                )
            })
        };
        let all: Vec<_> = generations.into_iter().map(one).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    for (what, error, half) in &errors {
        assert!(error.abs() < 0.02, "{what}");
        // A single result may be outside its 95 % interval, but not far outside.
        assert!(error.abs() < 2.5 * half + 0.001, "{what}");
        assert!((0.0..0.1).contains(half), "{what}");
    }
}
