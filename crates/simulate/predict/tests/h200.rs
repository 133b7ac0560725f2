//! Predictions compared with networks that were measured on an H200 (`data/measured_h200`). The constants were fitted to
//! these rows; `cargo run --release -p sweetspot-benchmarks --bin predict` judges them on networks that were left out.

use std::path::Path;
use std::process::Command;

use sweetspot_network::{Network, OnnxOptions, Precision, read_onnx};
use sweetspot_predict::{Prediction, Predictor};
use sweetspot_sim::{GpuProfile, Mode, find_gpu};

struct Zoo {
    folder: tempfile::TempDir,
    name: String,
    gpu: GpuProfile,
}

impl Zoo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let archive = data().join("zoo_onnx.tar.gz");
        let mut tar = Command::new("tar");
        tar.arg("xzf").arg(archive).arg("-C").arg(folder.path());
        assert!(tar.status().unwrap().success());
        let (name, gpu) = find_gpu("h200").unwrap();
        Self { folder, name, gpu }
    }

    fn network(&self, name: &str) -> Network {
        let path = self.folder.path().join(format!("{name}.onnx"));
        read_onnx(path.to_str().unwrap(), &OnnxOptions::default()).unwrap()
    }

    fn predict(&self, network: &Network, batch: u64, mode: Mode) -> Prediction {
        let on = (self.name.as_str(), &self.gpu);
        let predictor = Predictor::new(network, on, Precision::Bf16, mode).unwrap();
        predictor.predict(batch)
    }
}

fn data() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../data/measured_h200")
}

/// The median and the 90th percentile.
fn summary(mut errors: Vec<f64>) -> (f64, f64) {
    errors.sort_by(f64::total_cmp);
    (errors[errors.len() / 2], errors[errors.len() * 9 / 10])
}

#[test]
fn networks_cost_what_was_measured() {
    let zoo = Zoo::new();
    for (file, mode, limits) in [
        (
            "zoo_inference.csv",
            Mode::Infer,
            [(0.06, 0.16), (0.05, 0.13), (0.08, 0.2)],
        ),
        (
            "zoo_training.csv",
            Mode::Train,
            [(0.1, 0.4), (0.1, 0.2), (0.15, 0.35)],
        ),
    ] {
        let text = std::fs::read_to_string(data().join(file)).unwrap();
        let mut errors = [Vec::new(), Vec::new(), Vec::new()];
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields[index].parse::<f64>().unwrap();
            let network = zoo.network(fields[1]);
            let predicted = zoo.predict(&network, number(2) as u64, mode);
            let (rate, power) = (number(5), number(8));
            errors[0].push((predicted.items_per_s() / rate - 1.0).abs());
            errors[1].push((predicted.at_default.power.get() / power - 1.0).abs());
            errors[2].push((predicted.energy_per_item().get() / (power / rate) - 1.0).abs());
        }
        for (errors, limit) in errors.into_iter().zip(limits) {
            let (median, high) = summary(errors);
            assert!(
                median < limit.0 && high < limit.1,
                "{file}: {median} {high}"
            );
        }
    }
}

#[test]
fn larger_batches_are_never_slower_for_an_item_by_much_and_need_more_memory() {
    let zoo = Zoo::new();
    for name in ["resnet50", "vit_b_16", "mobilenet_v2", "swin_t"] {
        let network = zoo.network(name);
        let sizes = (0..10).map(|power| zoo.predict(&network, 1 << power, Mode::Infer));
        let sizes: Vec<Prediction> = sizes.collect();
        for pair in sizes.windows(2) {
            assert!(
                pair[1].items_per_s() > 0.97 * pair[0].items_per_s(),
                "{name}"
            );
            assert!(pair[1].memory > pair[0].memory, "{name}");
            assert!(pair[1].at_default.power.get() < 700.01, "{name}");
        }
    }
}

#[test]
fn a_gpu_without_constants_is_named() {
    let zoo = Zoo::new();
    let (name, v100) = find_gpu("v100").unwrap();
    let network = zoo.network("resnet18");
    let refused = Predictor::new(&network, (&name, &v100), Precision::Bf16, Mode::Infer);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("v100") || message.contains(&name),
        "{message}"
    );
}
