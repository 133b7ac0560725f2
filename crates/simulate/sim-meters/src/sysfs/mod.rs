//! A made tree of sysfs files: the processors' energy counters and power caps, and power sensors on the board.
//!
//! The layout is that of the kernel: devices below `devices/`, and links to them in `class/powercap` and `class/hwmon`.
//! The files are plain files that are rewritten in place, so a program may keep them open or open them anew.

mod hwmon;
mod powercap;

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sweetspot_device::Moment;
use sweetspot_stats::Seed;

use crate::node::NodeState;
use hwmon::Sensors;
use powercap::Powercap;

/// A made tree of sysfs files.
#[derive(Debug)]
pub(crate) struct Sysfs {
    powercap: Option<Powercap>,
    sensors: Sensors,
}

impl Sysfs {
    /// Makes the tree of a node in a new folder.
    pub fn create(root: &Path, node: &NodeState, seed: Seed) -> io::Result<Self> {
        for class in ["class/powercap", "class/hwmon"] {
            std::fs::create_dir_all(root.join(class))?;
        }
        let powercap = node
            .processors()
            .map(|processors| Powercap::create(root, processors, seed));
        Ok(Self {
            powercap: powercap.transpose()?,
            sensors: Sensors::create(root, node)?,
        })
    }

    /// Shows the energy counters of the processors at a moment.
    pub fn show_counters(&mut self, now: Moment, node: &NodeState) -> io::Result<()> {
        match &mut self.powercap {
            Some(powercap) => powercap.show(&node.package_energies(now), node.memory_energy(now)),
            None => Ok(()),
        }
    }

    /// Reads the power caps that somebody may have written, and shows the sensors on the board.
    pub fn follow(&mut self, node: &mut NodeState) -> io::Result<()> {
        if let Some(powercap) = &mut self.powercap {
            node.set_caps(powercap.read_caps());
        }
        self.sensors.show(node)
    }
}

/// A file of the tree with one number, which is rewritten in place.
#[derive(Debug)]
struct NumberFile {
    path: PathBuf,
    file: File,
    text: String,
}

impl NumberFile {
    /// Creates the file with this number and these permissions.
    fn create(path: PathBuf, value: u64, mode: u32) -> io::Result<Self> {
        let mut new = Self {
            file: File::create(&path)?,
            path,
            text: String::new(),
        };
        new.write(value)?;
        std::fs::set_permissions(&new.path, Permissions::from_mode(mode))?;
        Ok(new)
    }

    /// Replaces the number. The file is never empty in between.
    fn write(&mut self, value: u64) -> io::Result<()> {
        let text = format!("{value}\n");
        if text == self.text {
            return Ok(());
        }
        self.file.write_all_at(text.as_bytes(), 0)?;
        if text.len() < self.text.len() {
            self.file.set_len(text.len() as u64)?;
        }
        self.text = text;
        Ok(())
    }

    /// The number in the file, which somebody else may have written; `None` if it is not a number.
    fn read(&self) -> Option<u64> {
        std::fs::read_to_string(&self.path)
            .ok()?
            .trim()
            .parse()
            .ok()
    }
}

/// Writes a file that does not change.
fn write_text(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, format!("{text}\n"))?;
    std::fs::set_permissions(path, Permissions::from_mode(0o444))
}

/// Links a device in its class: `class/CLASS/NAME`.
fn link_in_class(root: &Path, class: &str, device: &str) -> io::Result<()> {
    let name = device.rsplit('/').next().unwrap_or(device);
    let target = Path::new("../..").join(device);
    symlink(target, root.join("class").join(class).join(name))
}
