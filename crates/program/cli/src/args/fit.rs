//! Of `fit`.

use std::path::PathBuf;

use clap::Args;
use sweetspot_study::EnergyOf;

/// Make a simulated twin of your own GPU and workload from a study of them.
///
/// Power, voltage and work are fitted to the time and energy of every configuration; caps, clocks and memory are
/// those of the device. The file holds both, the GPU and the workload, and is taken wherever either is named, so
/// that other settings, strategies and limits can be tried without the hardware. A table shows how near it
/// comes; exit code 1 if that is more than 5 % off on average.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FitArgs {
    /// The study: its folder, or its name below studies/. Runs on one GPU count, over power caps, core clocks,
    /// memory clocks and batch sizes, together or alone.
    pub study: PathBuf,

    /// Where the profile goes, a .toml file; an old one is replaced; `-` is standard output, and the table goes
    /// to standard error [default: nowhere, the table is all].
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Whose energy is fitted: job-gpus, the others only where they are the same [default: as when the study was
    /// made].
    #[arg(long, value_name = "WHOSE")]
    pub energy_of: Option<EnergyOf>,

    /// Write the table as JSON; `-` is standard output, which then carries nothing else.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  sweetspot sweep --power-cap all --repeat 3 -- python train.py --epochs 1
  sweetspot fit studies/train -o mine.toml
  sweetspot sweep --simulate mine.toml --network mine.toml --core-clock all
  sweetspot simulate --gpu mine.toml -- sweetspot sim-workload --network mine.toml --seconds 10";
