//! Reproduces table 1 of multi_gpu_2018: the operations and data of its four networks, counted as that table does.

use sweetspot_network::{Convention, Cost, Layer, Network, Precision, built_in};

use super::tables::NetworkCost;
use crate::PapersError;
use crate::row::{Judgement, Label, ReproducedRow, Rows, ValueKind};

const LAYERS: ValueKind = ValueKind::difference("layers", "layers", 1.0, 0);
const OPERATIONS: ValueKind = ValueKind::relative("operations", "operations [millions]", 1e-6, 2);
const READ: ValueKind = ValueKind::relative("read_bytes", "read [MB]", 1.0 / MEGABYTE, 1);
const WRITTEN: ValueKind = ValueKind::relative("written_bytes", "written [MB]", 1.0 / MEGABYTE, 1);
const CTC: ValueKind = ValueKind::relative("ctc", "CTC", 1.0, 1);
/// The megabyte of the paper, in bytes.
const MEGABYTE: f64 = 1_048_576.0;

/// The label of the interpretation of the paper that the built-in networks follow.
const MAIN_READING: &str = "as the text describes it";
/// The relative deviation up to which a printed value counts as following from the text.
const TEXT_TOLERANCE: f64 = 0.02;

/// The rows for each network as the text describes it, and for other interpretations of that text.
pub fn rows(printed: &[NetworkCost]) -> Result<Vec<ReproducedRow>, PapersError> {
    let mut rows = Rows::new("1");
    for count in printed {
        let network = built_in(profile_name(&count.network))?;
        add(&mut rows, count, &network, MAIN_READING, &network.layers);
        for variant in &network.variants {
            add(&mut rows, count, &network, &variant.about, &variant.layers);
        }
    }
    Ok(rows.rows)
}

/// The name of a printed network in the profiles.
fn profile_name(printed: &str) -> &str {
    match printed {
        "ResNet" => "resnet_gait",
        "2D-CNN" => "cnn2d",
        "CaffeNet" => "caffenet",
        "ResNetIm" => "resnet_im",
        other => other,
    }
}

fn add(rows: &mut Rows, printed: &NetworkCost, network: &Network, reading: &str, layers: &[Layer]) {
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
            *note = Some(fault(&printed.network, kind).to_owned());
        }
    }
}

/// The tolerance of a value: 1 % if it follows from the text, 2 % if it follows from one interpretation of the text,
/// and none otherwise.
fn judgement(network: &str, reading: &str, kind: ValueKind) -> Judgement {
    match (network, reading) {
        ("CaffeNet", _) if kind != LAYERS => Judgement::Each(0.01),
        ("2D-CNN", "without full5") if kind != LAYERS && kind != WRITTEN => Judgement::Each(0.02),
        _ => Judgement::Shown,
    }
}

fn fault(network: &str, kind: ValueKind) -> &'static str {
    match network {
        "CaffeNet" => "fault of the table: the text describes 23 layers",
        "2D-CNN" if kind == WRITTEN => {
            "fault of the table: the four ReLUs alone write 1.2 MB, all layers 2.8 MB"
        }
        "2D-CNN" => "fault of the table: the count lacks one layer of 4096 x 4096",
        "ResNet" => "fault of the table: near it only with stride 2 in the first convolution",
        _ => "fault of the table: no reading of the network reaches these numbers",
    }
}
