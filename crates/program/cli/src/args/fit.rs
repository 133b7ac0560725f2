//! The flags of `fit`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_study::EnergyOf;

/// Fit a simulated model of your own GPU and workload to a study.
///
/// Fits power, voltage and amount of work to the measured time and energy of every configuration; caps, clocks and
/// memory size are those of the device. The profile describes both the GPU and the workload, and can be given
/// wherever either is named, so that you can try other settings, strategies and limits without the hardware. A table
/// compares the model with the measurements; the exit code is 1 if it is more than 5 % off on average.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// The study: its folder, or its name below studies/. All its runs must use the same number of GPUs; it may vary
    /// power caps, core clocks, memory clocks and batch sizes.
    pub study: PathBuf,

    /// Write the profile to this .toml file, replacing an old one; `-` is standard output, and the table then goes to
    /// standard error [default: write no profile, only show the table].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Which energy to fit: job-gpus; all-gpus and node only if they equal it [default: as in the study].
    #[arg(long, value_name = "WHOSE")]
    pub energy_of: Option<EnergyOf>,

    /// Write the table as JSON; `-` writes it to standard output in place of the table.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

/// The examples in the help text of `fit`.
const EXAMPLES: &str = "\
Examples:
  sweetspot sweep --power-cap all --repeat 3 -- python train.py --epochs 1
  sweetspot fit studies/train -o mine.toml
  sweetspot sweep --simulate mine.toml --network mine.toml --core-clock all
  sweetspot simulate --gpu mine.toml -- sweetspot sim-workload --network mine.toml --seconds 10";
