//! Of `network`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use sweetspot_network::{Convention, Precision, Shape};

use super::shared::TextExportArgs;

/// What a network costs before it runs: operations, parameters, data, and the least time and energy.
///
/// Counts every layer of a built-in network, of an ONNX file (its weights are not needed), or of a
/// description of your own. With a GPU it adds what its peaks allow at best, with a study what was got
/// from each joule.
#[derive(Debug, Args)]
#[command(after_help = NETWORK_EXAMPLES, arg_required_else_help = true)]
pub struct NetworkArgs {
    /// A network by name, an .onnx file, or a .net file (docs/network.md has the form).
    #[arg(value_name = "NAME|FILE", required_unless_present = "list")]
    pub network: Option<String>,

    /// List the built-in networks with their parameters and multiply-accumulates.
    #[arg(long, conflicts_with_all = ["network", "export_json", "export_csv", "export_md"])]
    pub list: bool,

    /// Rows of the table: each layer, or layers of a kind together.
    #[arg(long, value_enum, default_value_t = By::Layer)]
    pub by: By,

    /// Items in a batch [default: as in the file, 1 for built-in networks].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub batch: Option<u64>,

    /// The shape of an input of an ONNX file, where the file does not say or to try another: x=1x3x224x224.
    /// Can be given several times.
    #[arg(long, value_name = "NAME=SHAPE", value_parser = input)]
    pub input: Vec<(String, Shape)>,

    /// Whose rules: usual, equations-as-printed or table-1 (of multi_gpu_2018).
    #[arg(long, value_name = "RULES", default_value_t)]
    pub convention: Convention,

    /// What elements are stored as: fp32, tf32, fp16, bf16, int8.
    #[arg(long, value_name = "TYPE", default_value_t)]
    pub precision: Precision,

    /// Count the backward pass too.
    #[arg(long)]
    pub train: bool,

    /// The least time and energy on this GPU: a name (see `simulate --list`) or a profile file.
    #[arg(long, value_name = "GPU")]
    pub simulate: Option<String>,

    /// A study that ran the network: GFLOPS/W of each configuration, against the GPU's peak and SGEMM.
    #[arg(long, value_name = "STUDY")]
    pub study: Option<PathBuf>,

    #[command(flatten)]
    pub export: TextExportArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Layer,
    Kind,
}

fn input(text: &str) -> Result<(String, Shape), String> {
    let (name, shape) = text
        .rsplit_once('=')
        .ok_or("write it as NAME=1x3x224x224")?;
    Ok((name.to_owned(), shape.parse()?))
}

const NETWORK_EXAMPLES: &str = "\
Examples:
  sweetspot network resnet50
  sweetspot network resnet50 --by kind --batch 64 --train --simulate v100
  sweetspot network model.onnx --input x=1x3x224x224 --export-json cost.json
  sweetspot network caffenet --convention table-1
  sweetspot network resnet50 --study studies/mine";
