//! Power sensors on the board, as hwmon shows them.

use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use sweetspot_device::Moment;
use sweetspot_quantity::Seconds;

use super::{NumberFile, link_in_class, write_text};
use crate::NodeEnergy;
use crate::node::NodeState;

/// The time over which the node's power meter averages, and between two of its values.
const AVERAGE: Seconds = Seconds::new(1.0);
/// The time over which a probe averages, and between two of its values.
const PROBE: Seconds = Seconds::new(0.1);

/// The power sensors: the meter of the node's supplies, and a probe on the supply wires of each GPU.
#[derive(Debug)]
pub(super) struct Sensors {
    node: NumberFile,
    node_shown_at: Moment,
    probes: Vec<Probe>,
    probes_shown_at: Moment,
}

/// A probe that measures power and counts energy.
#[derive(Debug)]
struct Probe {
    power: NumberFile,
    energy: NumberFile,
    /// The energy in joules when the power was shown last.
    before: f64,
}

impl Sensors {
    /// Makes the files of the sensors.
    pub fn create(root: &Path, node: &NodeState) -> io::Result<Self> {
        let now = node.wall().0;
        let meter = folder(
            root,
            "devices/LNXSYSTM:00/ACPI000D:00/hwmon/hwmon0",
            "power_meter",
        )?;
        let interval = (AVERAGE.get() * 1e3) as u64;
        write_text(&meter, "power1_average_interval", &interval.to_string())?;
        write_text(&meter, "power1_oem_info", "Node at the wall")?;
        let power = node.mean_power(now + -AVERAGE, now).get();
        let mut probes = Vec::new();
        for (index, gpu) in node.gpus().iter().enumerate() {
            let number = index + 1;
            let device = format!(
                "devices/platform/i2c-0/0-00{:02x}/hwmon/hwmon{number}",
                0x40 + index
            );
            let probe = folder(root, &device, "ina228")?;
            write_text(&probe, "power1_label", &format!("GPU {index}"))?;
            let power = micro(gpu.power.get());
            probes.push(Probe {
                power: NumberFile::create(probe.join("power1_input"), power, 0o444)?,
                energy: NumberFile::create(probe.join("energy1_input"), 0, 0o444)?,
                before: gpu.energy.get(),
            });
        }
        Ok(Self {
            node: NumberFile::create(meter.join("power1_average"), micro(power), 0o444)?,
            node_shown_at: now,
            probes,
            probes_shown_at: now,
        })
    }

    /// Shows new values where they are due.
    pub fn show(&mut self, node: &NodeState) -> io::Result<()> {
        let now = node.wall().0;
        if now - self.node_shown_at >= AVERAGE {
            self.node_shown_at = now;
            self.node
                .write(micro(node.mean_power(now + -AVERAGE, now).get()))?;
        }
        let since = now - self.probes_shown_at;
        if since < PROBE {
            return Ok(());
        }
        self.probes_shown_at = now;
        for (probe, gpu) in self.probes.iter_mut().zip(node.gpus()) {
            let energy = gpu.energy.get();
            probe
                .power
                .write(micro((energy - probe.before) / since.get()))?;
            probe.energy.write(micro(energy))?;
            probe.before = energy;
        }
        Ok(())
    }
}

/// Makes the folder of a device, its name, and its links to the chip and in the class.
fn folder(root: &Path, device: &str, name: &str) -> io::Result<std::path::PathBuf> {
    let folder = root.join(device);
    std::fs::create_dir_all(&folder)?;
    // The chip's own folder has the name of its address on the bus.
    let chip = folder
        .parent()
        .and_then(|class| class.parent()?.file_name());
    if let Some(chip) = chip {
        symlink(Path::new("../../..").join(chip), folder.join("device"))?;
    }
    write_text(&folder, "name", name)?;
    link_in_class(root, "hwmon", device)?;
    Ok(folder)
}

/// A value in millionths.
fn micro(value: f64) -> u64 {
    (value * 1e6).round().max(0.0) as u64
}
