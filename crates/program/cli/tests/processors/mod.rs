//! Processor packages: their power caps and their energy, on made trees of sysfs.

mod bad_input;
mod caps;
mod exporter;
mod kills;
#[path = "../../../../hardware/backend-host/tests/tree/made_tree.rs"]
mod made_tree;
mod studies;

use std::process::{Command, Output};

use crate::host::TestHost;
pub use made_tree::MadeTree;

const LIMIT: &str = "powercap/intel-rapl:0/constraint_0_power_limit_uw";
const OTHER_LIMIT: &str = "powercap/intel-rapl:1/constraint_0_power_limit_uw";
const ENABLED: &str = "powercap/intel-rapl:0/enabled";

/// A simulated GPU in a machine with two processor packages.
struct Machine {
    host: TestHost,
    tree: MadeTree,
}

impl Machine {
    fn new() -> Self {
        Self {
            host: TestHost::new("v100"),
            tree: MadeTree::server(),
        }
    }

    /// The program on this machine.
    fn sweetspot(&self) -> Command {
        let mut command = self.host.sweetspot();
        command.env("SWEETSPOT_SYSFS", self.tree.root());
        command
    }

    fn output(&self, args: &[&str]) -> Output {
        self.sweetspot()
            .args(args)
            .current_dir(self.tree.root())
            .output()
            .unwrap()
    }

    /// The limits of both packages, in watts, as the kernel has them.
    fn limits(&self) -> (f64, f64) {
        let watts = |file| self.tree.read(file).parse().unwrap_or(0.0) / 1e6;
        (watts(LIMIT), watts(OTHER_LIMIT))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
