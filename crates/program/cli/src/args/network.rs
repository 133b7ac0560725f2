//! The flags of `network`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sweetspot_network::{Convention, Precision, Shape};

use super::shared::{CriteriaArgs, TextExportArgs};

/// Count a network's operations, parameters and memory traffic.
///
/// Counts every layer of a built-in network, of an ONNX file (its weights are not needed) or of your own description.
/// Add a GPU to see the lowest time and energy that its peak rates allow and, on newer ones, what the network will really
/// cost; or a study to see the operations per joule that were achieved.
#[derive(Debug, Args)]
#[command(after_help = NETWORK_EXAMPLES, arg_required_else_help = true)]
pub struct NetworkArgs {
    /// The name of a built-in network, an .onnx file, or a .net file (format: docs/reference/network.md).
    #[arg(value_name = "NAME|FILE", required_unless_present = "list")]
    pub network: Option<String>,

    /// List the built-in networks with their parameters and multiply-accumulates.
    #[arg(long, conflicts_with_all = ["network", "export_json", "export_csv", "export_md"])]
    pub list: bool,

    /// What a row of the table shows: one layer, or all layers of a kind.
    #[arg(long, value_enum, default_value_t = RowGrouping::Layer)]
    pub by: RowGrouping,

    /// Items in a batch [default: as in the file; 1 for built-in networks].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: Option<u64>,

    /// The shape of an input, to try another one or because an ONNX file does not contain it: x=1x3x224x224 for an ONNX
    /// file, input=3x256x256 or input=512 (tokens) for other networks. Can be given several times.
    #[arg(long, value_name = "NAME=SHAPE", value_parser = parse_input)]
    pub input: Vec<(String, Shape)>,

    /// How to count operations and data: usual, or as the paper multi_gpu_2018 does: equations-as-printed, table-1.
    #[arg(long, value_name = "RULES", default_value_t)]
    pub convention: Convention,

    /// Number format of weights and activations: fp32, tf32, fp16, bf16, int8 [default: bf16 on a GPU with predictions,
    /// else fp32].
    #[arg(long, value_name = "TYPE")]
    pub precision: Option<Precision>,

    /// Count a training step: the backward pass too.
    #[arg(long)]
    pub train: bool,

    /// Show the lowest possible time and energy on this GPU, and a prediction of the real ones where the GPU's profile
    /// allows it (h200, h100, a100, l40s): a name (see `simulate --list`) or a profile file.
    #[arg(long, value_name = "GPU")]
    pub simulate: Option<String>,

    /// Show the GFLOPS/W of each configuration of a study of this network, compared with the GPU's peak and SGEMM.
    #[arg(long, value_name = "STUDY")]
    pub study: Option<PathBuf>,

    #[command(flatten)]
    pub criteria: CriteriaArgs,

    #[command(flatten)]
    pub export: TextExportArgs,
}

/// Whether a row of the table shows one layer or all layers of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowGrouping {
    Layer,
    Kind,
}

fn parse_input(text: &str) -> Result<(String, Shape), String> {
    let (name, shape) = text
        .rsplit_once('=')
        .ok_or("write NAME=SHAPE, such as x=1x3x224x224")?;
    Ok((name.to_owned(), shape.parse()?))
}

/// The examples in the help text of `network`.
const NETWORK_EXAMPLES: &str = "\
Examples:
  sweetspot network resnet50
  sweetspot network resnet50 --by kind --batch 64 --train --simulate v100
  sweetspot network model.onnx --input x=1x3x224x224 --export-json cost.json
  sweetspot network bert_base --input input=512 --simulate h200
  sweetspot network caffenet --convention table-1
  sweetspot network resnet50 --study studies/mine";
