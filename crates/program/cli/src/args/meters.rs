//! The flags about the energy of the host and of the whole machine.

use clap::Args;

/// What is measured beside the GPUs.
#[derive(Clone, Debug, Default, Args)]
pub struct MeterArgs {
    /// Also measure the energy of the processors and their memory (RAPL; needs permission to read it, see
    /// docs/reference/node.md).
    #[arg(long)]
    pub host: bool,

    /// A power meter of the whole machine, by its name in ~/.config/sweetspot/meters.toml or by what it is:
    /// wt310:/dev/usbtmc0, wt310:tcp://HOST:PORT, shelly:http://ADDRESS, tasmota:http://ADDRESS, redfish:https://ADDRESS,
    /// prometheus:URL#METRIC, sweetspot://HOST:PORT[/GPU], hwmon:NAME[/CHANNEL]. Repeat it for a machine with several supplies:
    /// their energies are added.
    #[arg(long, value_name = "SPEC|NAME")]
    pub meter: Vec<String>,

    /// Correct the energy of a GPU or of the host by a calibration, by the name that `sweetspot calibrate` stored it
    /// under. Repeat it for several devices.
    #[arg(long, value_name = "NAME")]
    pub calibration: Vec<String>,
}
