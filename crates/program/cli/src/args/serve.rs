//! Flags of `serve`, of `policy` and of the process that changes settings as root.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sweetspot_service::policy::POLICY_FILE;
use sweetspot_service::{AUDIT_LOG, JOURNAL_FOLDER, SOCKET};

/// Let users without root change GPU settings, within a policy.
///
/// The service runs as root and does four things: it leases GPUs, applies settings, restores them and releases the GPUs.
/// It runs no command and opens no file that a user names. A user's settings are restored when the process that asked
/// for them ends. `run`, `sweep`, `tune` and `hold` use it by themselves, and so do the Python clients of Zeus.
#[derive(Debug, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    #[command(flatten)]
    pub files: ServiceFileArgs,

    /// The socket on which users reach the service.
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,

    /// The policy: who may change what. Without this file, the members of group `sweetspot` may change power cap and
    /// clocks of GPUs that nobody else uses.
    #[arg(long, value_name = "FILE", default_value = POLICY_FILE)]
    pub policy: PathBuf,

    /// Serve the live page, and metrics for Prometheus at /metrics, on this address; without HOST:PORT on
    /// 127.0.0.1:9440. Only GET is answered. Other addresses than loopback need --token-file and --insecure.
    #[arg(
        long,
        value_name = "HOST:PORT",
        num_args = 0..=1,
        default_missing_value = DEFAULT_ADDRESS
    )]
    pub listen: Vec<String>,

    /// A file with the token that clients of other addresses than loopback must send
    /// (`Authorization: Bearer TOKEN`); only root may be able to write it.
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub token_file: Option<PathBuf>,

    /// Serve on other addresses than loopback without encryption, in a network that you trust.
    #[arg(long, requires = "listen")]
    pub insecure: bool,

    /// A further name by which clients may call this machine, such as its name in DNS.
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub host_name: Vec<String>,

    /// Give the metrics the names of NVIDIA's DCGM exporter too.
    #[arg(long, requires = "listen")]
    pub dcgm_names: bool,

    /// Start no measuring process: no counters, metrics or live page.
    #[arg(long, conflicts_with = "listen")]
    pub no_monitor: bool,

    /// Start no measuring process, but pass clients to the one that waits at this socket; the systemd unit does this.
    #[arg(long, value_name = "PATH", hide = true, conflicts_with_all = ["listen", "no_monitor"])]
    pub monitor_link: Option<PathBuf>,

    /// Install the service: program, group, systemd unit, example policy; then start it.
    #[arg(long, conflicts_with = "uninstall")]
    pub install: bool,

    /// With --install: write the files below this folder and do nothing else, for packages.
    #[arg(
        long,
        value_name = "FOLDER",
        requires = "install",
        default_value = "/",
        hide_default_value = true
    )]
    pub root: PathBuf,

    /// Stop the service and remove program and unit. Policy, journal and log stay.
    #[arg(long)]
    pub uninstall: bool,
}

/// The files that only root may choose.
#[derive(Debug, Args)]
pub struct ServiceFileArgs {
    /// The NVML library to use; it must belong to root.
    #[arg(long, value_name = "PATH")]
    pub nvml: Option<PathBuf>,

    /// The tree of sysfs with the power caps of processors; it must belong to root.
    #[arg(long, value_name = "FOLDER", default_value = "/sys")]
    pub sysfs: PathBuf,

    /// The folder with the settings from before a change, from which they are restored after a crash.
    #[arg(long, value_name = "FOLDER", default_value = JOURNAL_FOLDER)]
    pub journal: PathBuf,

    /// The log of all changes and refusals.
    #[arg(long, value_name = "FILE", default_value = AUDIT_LOG)]
    pub audit: PathBuf,
}

/// The address of the live page.
const DEFAULT_ADDRESS: &str = "127.0.0.1:9440";

const SERVE_EXAMPLES: &str = "\
Examples:
  sudo sweetspot serve --install      Install and start the service
  sudo usermod -aG sweetspot alice    Let alice set GPUs
  sudo sweetspot serve                Serve in the foreground, without systemd
  sudo sweetspot serve --listen       The same, with the live page on http://127.0.0.1:9440";

/// Explain the policy of the service.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    #[command(subcommand)]
    pub command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Check the policy file, and explain what a user may change and why.
    Check {
        /// The user to explain it for; you if absent.
        #[arg(long, value_name = "NAME")]
        user: Option<String>,

        /// The policy file.
        #[arg(long, value_name = "FILE", default_value = POLICY_FILE)]
        policy: PathBuf,
    },
}

/// Change settings as root for a user who used sudo; `run` and other commands start it themselves.
#[derive(Debug, Args)]
pub struct RootGuardArgs {
    /// The socket on which the user's guard process waits.
    #[arg(required_unless_present_any = ["check", "keeper"])]
    pub socket: Option<PathBuf>,

    /// Do nothing: sudo asks for the password if it needs one.
    #[arg(long)]
    pub check: bool,

    /// Start such a process for every socket that is named on standard input.
    #[arg(long)]
    pub keeper: bool,

    /// The NVML library to use; it must belong to root. There are no flags for other files: a user whom sudo allows this
    /// command alone must not choose where root writes.
    #[arg(long, value_name = "PATH")]
    pub nvml: Option<PathBuf>,
}
