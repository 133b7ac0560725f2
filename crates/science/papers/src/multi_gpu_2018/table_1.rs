//! Reproduces table 1 of multi_gpu_2018: the operations and data of its four networks, counted as that table does.

use sweetspot_network::{Convention, Cost, Layer, Network, Precision, built_in};

use super::tables::NetworkCost;
use crate::PapersError;
use crate::origin::ValueOrigin;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};

/// The number of layers of a network.
const LAYERS: ValueKind = ValueKind::difference("layers", "layers", 1.0, 0);
/// The arithmetic operations for one sample.
const OPERATIONS: ValueKind = ValueKind::relative("operations", "operations [millions]", 1e-6, 2);
/// The data read for one sample.
const READ: ValueKind = ValueKind::relative("read_bytes", "read [MB]", 1.0 / MEGABYTE, 1);
/// The data written for one sample.
const WRITTEN: ValueKind = ValueKind::relative("written_bytes", "written [MB]", 1.0 / MEGABYTE, 1);
/// The computation-to-communication ratio: operations per byte read.
const CTC: ValueKind = ValueKind::relative("ctc", "CTC", 1.0, 1);
/// The number of bytes in a megabyte as the paper counts it.
const MEGABYTE: f64 = 1_048_576.0;

/// The label of the main interpretation of the paper's text, which the built-in networks follow.
const MAIN_READING: &str = "as the text describes it";
/// The largest relative deviation at which a printed value is considered to follow from the text.
const TEXT_TOLERANCE: f64 = 0.02;

/// The rows of table 1 for each network as the text describes it, and for other interpretations of that text.
pub fn rows(printed: &[NetworkCost]) -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("1");
    for count in printed {
        let network = built_in(profile_name(&count.network))?;
        add_network(&mut rows, count, &network, MAIN_READING, &network.layers);
        for variant in &network.variants {
            add_network(&mut rows, count, &network, &variant.about, &variant.layers);
        }
    }
    Ok(rows.rows)
}

/// The profile name of a network, by its printed name.
fn profile_name(printed: &str) -> &str {
    match printed {
        "ResNet" => "resnet_gait",
        "2D-CNN" => "cnn2d",
        "CaffeNet" => "caffenet",
        "ResNetIm" => "resnet_im",
        other => other,
    }
}

/// Adds the rows of one network under one interpretation (`reading`) of the paper's text.
fn add_network(
    rows: &mut Rows,
    printed: &NetworkCost,
    network: &Network,
    reading: &str,
    layers: &[Layer],
) {
    let (table, precision) = (Convention::Table1, Precision::Fp32);
    let cost = Cost::of_layers(layers, network.batch, table, precision, 1, false);
    let total = cost.total();
    let labels: [(&'static str, Label); 2] = [
        ("network", printed.network.as_str().into()),
        ("reading", reading.into()),
    ];
    let values = [
        (LAYERS, printed.layers as f64, Some(layers.len() as f64)),
        (
            OPERATIONS,
            1e6 * printed.arithmetic_operations_millions,
            Some(total.operations.all() as f64),
        ),
        (
            READ,
            MEGABYTE * printed.data_read_mb,
            Some(cost.read_bytes(&total) as f64),
        ),
        (
            WRITTEN,
            MEGABYTE * printed.data_written_mb,
            Some(cost.written_bytes(&total) as f64),
        ),
        (CTC, printed.ctc_ratio, total.ctc()),
    ];
    for (kind, published, here) in values {
        let judgement = judgement(&printed.network, reading, kind);
        let note = rows.add(&labels, kind, Some(published), here, judgement);
        let off = here.is_none_or(|here| (here / published - 1.0).abs() > TEXT_TOLERANCE);
        if reading == MAIN_READING && off {
            *note = Some(note_on_error(&printed.network, kind).to_owned());
        }
        rows.set_origin(origin(&printed.network, reading, kind));
    }
}

/// The tolerance of a row: 1 % if the printed value follows from the text, 2 % if it follows from one interpretation of
/// the text, and none otherwise.
fn judgement(network: &str, reading: &str, kind: ValueKind) -> Judgement {
    match (network, reading) {
        ("CaffeNet", _) if kind != LAYERS => Judgement::Each(0.01),
        ("2D-CNN", "without full5") if kind != LAYERS && kind != WRITTEN => Judgement::Each(0.02),
        _ => Judgement::Shown,
    }
}

/// The origin of a printed value. The rules of counting were found with CaffeNet's row in view, and other interpretations of
/// the text with the rows of their networks.
fn origin(network: &str, reading: &str, kind: ValueKind) -> ValueOrigin {
    match (network, reading) {
        // Operations over bytes read.
        _ if kind == CTC => ValueOrigin::Derived,
        ("CaffeNet", MAIN_READING) if kind != LAYERS => ValueOrigin::Fitted,
        (_, MAIN_READING) => ValueOrigin::Predicted,
        _ => ValueOrigin::Fitted,
    }
}

/// The note on a printed value that does not follow from the paper's text.
fn note_on_error(network: &str, kind: ValueKind) -> &'static str {
    match network {
        "CaffeNet" => "error in the paper's table: the text describes 23 layers",
        "2D-CNN" if kind == WRITTEN => {
            "error in the paper's table: the four ReLUs alone write 1.2 MB, all layers 2.8 MB"
        }
        "2D-CNN" => "error in the paper's table: its count lacks one layer of 4096 x 4096",
        "ResNet" => {
            "error in the paper's table: its values need a stride of 2 in the first convolution"
        }
        _ => "error in the paper's table: no interpretation of the network gives these numbers",
    }
}
