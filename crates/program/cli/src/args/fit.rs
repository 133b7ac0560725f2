//! The flags of `fit`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_sim::Mode;
use sweetspot_study::EnergyOf;

use super::shared::mode;

/// Make a simulated copy of your GPU and workload from measurements.
///
/// From a study: fits power, voltage and amount of work to the measured time and energy of every configuration; caps,
/// clocks and memory size are those of the device. The profile describes both the GPU and the workload, and can be
/// given wherever either is named, so that you can try other settings, strategies and limits without the hardware. A
/// table compares the model with the measurements; the exit code is 1 if it is more than 5 % off on average.
///
/// From a CSV file of rows that you measured on a GPU that has a profile (--gpu): fits the workload alone, to try other
/// batch sizes, caps and clocks.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// A study: its folder, or its name below studies/. All its runs must use the same number of GPUs; it may vary power
    /// caps, core clocks, memory clocks and batch sizes. Or a CSV file with the columns batch, items_per_s and mean_w, or
    /// from `sweep --export-csv`.
    #[arg(value_name = "STUDY|ROWS.csv")]
    pub source: PathBuf,

    /// Write the profile to this .toml file, replacing an old one; `-` is standard output, and the table then goes to
    /// standard error [default: write no profile, only show the table].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// For a CSV file: the GPU on which the rows were measured, a name (see `simulate --list`) or a profile file of yours.
    #[arg(long, value_name = "GPU", help_heading = "Rows")]
    pub gpu: Option<String>,

    /// The network to fit, if the file contains several; also its name in the profile.
    #[arg(long, value_name = "NAME", requires = "gpu", help_heading = "Rows")]
    pub network: Option<String>,

    /// The rows are of training [default: as in the file, else training].
    #[arg(
        long,
        requires = "gpu",
        conflicts_with = "infer",
        help_heading = "Rows"
    )]
    pub train: bool,

    /// The rows are of inference.
    #[arg(long, requires = "gpu", help_heading = "Rows")]
    pub infer: bool,

    /// Which energy to fit: job-gpus; all-gpus and node only if they equal it [default: as in the study].
    #[arg(long, value_name = "WHOSE")]
    pub energy_of: Option<EnergyOf>,

    /// Write the table as JSON; `-` writes it to standard output in place of the table.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

impl FitArgs {
    /// Training or inference, if the user chose one.
    pub fn mode(&self) -> Option<Mode> {
        mode(self.train, self.infer)
    }
}

/// The examples in the help text of `fit`.
const EXAMPLES: &str = "\
Examples:
  sweetspot sweep --power-cap all --repeat 3 -- python train.py --epochs 1
  sweetspot fit studies/train -o mine.toml
  sweetspot sweep --simulate mine.toml --network mine.toml --core-clock all
  sweetspot fit rows.csv --gpu nvidia_h200 --network my_network -o my_network.toml
  sweetspot simulate --gpu mine.toml -- sweetspot sim-workload --network mine.toml --seconds 10";
