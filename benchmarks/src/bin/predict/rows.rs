//! Networks as they were measured on an H200.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use sweetspot_network::{Network, OnnxOptions, read_onnx};
use sweetspot_predict::{Kernel, Pass, kernels};

/// A network at a batch size, and what was measured.
#[derive(Clone)]
pub struct MeasuredRow {
    pub network: Arc<Network>,
    pub kernels: Arc<[Kernel]>,
    pub pass: Pass,
    pub batch: u64,
    /// The time of a batch, in seconds.
    pub time: f64,
    /// The average power, in watts.
    pub power: f64,
}

/// Reads a file of `data/measured_h200`.
pub fn measured_rows(file: &str, pass: Pass) -> Result<Vec<MeasuredRow>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/measured_h200");
    let folder = tempfile::tempdir()?;
    let unpacked = Command::new("tar")
        .arg("xzf")
        .arg(data.join("zoo_onnx.tar.gz"))
        .arg("-C")
        .arg(folder.path())
        .status()?;
    ensure!(unpacked.success(), "cannot unpack zoo_onnx.tar.gz");
    let text = std::fs::read_to_string(data.join(file)).with_context(|| file.to_owned())?;
    let mut known: HashMap<String, (Arc<Network>, Arc<[Kernel]>)> = HashMap::new();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| -> Result<f64> {
            Ok(fields.get(index).context("a field is missing")?.parse()?)
        };
        let name = fields.get(1).context("no name")?.to_string();
        if !known.contains_key(&name) {
            let path = folder.path().join(format!("{name}.onnx"));
            let network = read_onnx(&path.display().to_string(), &OnnxOptions::default())?;
            let kernels = kernels(&network).into();
            known.insert(name.clone(), (Arc::new(network), kernels));
        }
        let (network, kernels) = known[&name].clone();
        let batch = number(2)?;
        rows.push(MeasuredRow {
            network,
            kernels,
            pass,
            batch: batch as u64,
            time: batch / number(5)?,
            power: number(8)?,
        });
    }
    Ok(rows)
}

/// The family of a network: networks that are made of the same blocks.
pub fn family(name: &str) -> &str {
    const FAMILIES: [(&str, &str); 8] = [
        ("wide_resnet", "resnet"),
        ("resnext", "resnet"),
        ("mnasnet", "mobilenet"),
        ("mobilenet", "mobilenet"),
        ("efficientnet", "efficientnet"),
        ("regnet", "regnet"),
        ("densenet", "densenet"),
        ("vgg", "vgg"),
    ];
    let known = FAMILIES.iter().find(|(prefix, _)| name.starts_with(prefix));
    match known {
        Some((_, family)) => family,
        None if name.starts_with("resnet") => "resnet",
        None if name.starts_with("vit") => "vit",
        None => name,
    }
}
