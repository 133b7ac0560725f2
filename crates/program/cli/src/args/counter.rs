//! Flags of `counter` and of the measuring process.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Measure the energy between two moments with a named counter
///
/// The service (`sweetspot serve`) reads the GPUs without pause, so a counter costs nothing while it runs, and any
/// number of programs can have counters at the same time. A counter belongs to you: other users do not see it. It is
/// forgotten an hour after its stop, and when the service restarts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CounterArgs {
    #[command(subcommand)]
    pub command: CounterCommand,
}

#[derive(Debug, Subcommand)]
pub enum CounterCommand {
    /// Start a counter.
    Start {
        /// The name of the counter: letters, digits, `.`, `-` and `_`.
        name: String,

        /// The GPUs to measure: indices or UUIDs, separated by commas.
        #[arg(long, value_name = "LIST", default_value = "all")]
        device: String,
    },
    /// Stop a counter and print its energy.
    Stop {
        /// The name of the counter.
        name: String,

        /// Write the result as JSON to this file; `-` is standard output.
        #[arg(long, value_name = "FILE")]
        export_json: Option<PathBuf>,
    },
    /// Print the energy of a counter so far, or from its start to its stop.
    Read {
        /// The name of the counter.
        name: String,

        /// Write the result as JSON to this file; `-` is standard output.
        #[arg(long, value_name = "FILE")]
        export_json: Option<PathBuf>,

        /// Write the power samples as CSV to this file; `-` is standard output.
        #[arg(long, value_name = "FILE")]
        export_csv: Option<PathBuf>,
    },
    /// List your counters.
    List,
    /// Delete a counter.
    Delete {
        /// The name of the counter.
        name: String,
    },
}

const EXAMPLES: &str = "\
Examples:
  sweetspot counter start epoch              Begin to count
  sweetspot counter read epoch               The energy so far
  sweetspot counter stop epoch               Stop, and print the energy
  sweetspot counter read epoch --export-csv power.csv";

/// Show what the GPUs do now, and why they are not faster.
///
/// Power against the cap, clocks, what limits each GPU, who has leased it and until when, and the jobs of Sweetspot. With
/// the service (`sweetspot serve`) all users' leases and jobs are shown; without it, only the GPUs. It sets nothing. The
/// same is a page in the browser: `sweetspot serve --listen`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Print the screen once and end, for scripts and pipes.
    #[arg(long)]
    pub once: bool,

    /// Write the readings as JSON to this file and end; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}

/// Measure and serve clients without rights; `serve` and the Python package start it themselves.
#[derive(Debug, Args)]
pub struct MonitorArgs {
    /// The NVML library to use.
    #[arg(long, value_name = "PATH")]
    pub nvml: Option<PathBuf>,

    /// A further name by which clients may call this machine.
    #[arg(long, value_name = "NAME")]
    pub host_name: Vec<String>,

    /// Give the metrics the names of NVIDIA's DCGM exporter too.
    #[arg(long)]
    pub dcgm_names: bool,

    /// Serve the live page and metrics on this address; for a process that systemd starts.
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: Vec<String>,

    /// A file with the token that clients of other addresses than loopback must send.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,

    /// Serve on other addresses than loopback without encryption, in a network that you trust.
    #[arg(long, requires = "listen")]
    pub insecure: bool,

    /// Measure for the process that started this one, with its rights.
    #[arg(long)]
    pub private: bool,

    /// With --private: the GPUs to measure [default: those in CUDA_VISIBLE_DEVICES, else all].
    #[arg(long, value_name = "all|0,1|UUID,...", requires = "private")]
    pub device: Option<String>,
}
