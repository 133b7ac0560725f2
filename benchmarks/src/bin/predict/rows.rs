//! Networks as they were measured on an H200.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use sweetspot_network::{Network, OnnxOptions, find, read_onnx};
use sweetspot_predict::{Kernel, kernels};
use sweetspot_sim::Mode;

/// The default core clock of an H200, in megahertz.
const DEFAULT_CLOCK: f64 = 1980.0;

/// A network at a batch size, and what was measured.
#[derive(Clone)]
pub struct MeasuredRow {
    pub network: Arc<Network>,
    pub kernels: Arc<[Kernel]>,
    pub mode: Mode,
    pub batch: u64,
    /// The time of a batch, in seconds.
    pub time: f64,
    /// The average power, in watts.
    pub power: f64,
    /// The core clock, relative to the default clock.
    pub clock: f64,
    /// The memory that PyTorch allocated, in bytes, if it was measured.
    pub memory: Option<f64>,
}

/// The columns of a file that are read.
pub struct Columns {
    mode: usize,
    rate: usize,
    power: usize,
    clock: usize,
    memory: Option<usize>,
}

/// The columns of networks measured one by one.
pub const ZOO: Columns = Columns {
    mode: 0,
    rate: 5,
    power: 8,
    clock: 9,
    memory: None,
};
/// The same with the memory that was allocated.
pub const JUDGED: Columns = Columns {
    memory: Some(10),
    ..ZOO
};
/// The columns of the batch study, which begins with the number of the run.
pub const BATCH_STUDY: Columns = Columns {
    mode: 1,
    rate: 6,
    power: 9,
    clock: 12,
    memory: None,
};

/// Reads a file of `data/measured_h200`.
pub fn measured_rows(file: &str, columns: &Columns) -> Result<Vec<MeasuredRow>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/measured_h200");
    let folder = tempfile::tempdir()?;
    for archive in ["zoo_onnx.tar.gz", "judge_onnx.tar.gz"] {
        let mut tar = Command::new("tar");
        let unpacked = tar.arg("xzf").arg(data.join(archive)).arg("-C");
        let unpacked = unpacked.arg(folder.path()).status()?;
        ensure!(unpacked.success(), "cannot unpack {archive}");
    }
    let text = std::fs::read_to_string(data.join(file)).with_context(|| file.to_owned())?;
    let mut known: HashMap<String, (Arc<Network>, Arc<[Kernel]>)> = HashMap::new();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| -> Result<f64> {
            Ok(fields.get(index).context("a field is missing")?.parse()?)
        };
        let name = fields.get(columns.mode + 1).context("no name")?.to_string();
        if !known.contains_key(&name) {
            let network = read(&name, folder.path())?;
            let kernels = kernels(&network).into();
            known.insert(name.clone(), (Arc::new(network), kernels));
        }
        let (network, kernels) = known[&name].clone();
        let batch = number(columns.mode + 2)?;
        rows.push(MeasuredRow {
            network,
            kernels,
            mode: match fields.get(columns.mode) {
                Some(&"train") => Mode::Train,
                _ => Mode::Infer,
            },
            batch: batch as u64,
            time: batch / number(columns.rate)?,
            power: number(columns.power)?,
            clock: number(columns.clock)? / DEFAULT_CLOCK,
            memory: columns.memory.map(number).transpose()?,
        });
    }
    Ok(rows)
}

/// Reads a network from its ONNX file in a folder, or a built-in network.
fn read(name: &str, folder: &Path) -> Result<Network> {
    let path = folder.join(format!("{name}.onnx"));
    let mut network = match path.exists() {
        true => read_onnx(&path.display().to_string(), &OnnxOptions::default())?,
        false => find(name)?,
    };
    network.name = name.to_owned();
    Ok(network)
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
