//! A made tree of sysfs for tests.

use std::path::{Path, PathBuf};

/// The range of a common processor's counter: 2^32 - 1 steps of 61 uJ.
pub const RANGE: u64 = 262_143_328_850;

/// A folder with the files of powercap and hwmon.
pub struct MadeTree(tempfile::TempDir);

impl MadeTree {
    /// Creates a tree without zones and chips.
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A server with two packages, each with cores and memory.
    pub fn server() -> Self {
        Self::empty().with_packages()
    }

    /// The same server in a folder that the caller chooses.
    #[allow(dead_code, reason = "not every test binary needs it")]
    pub fn server_in(folder: &Path) -> Self {
        Self(tempfile::tempdir_in(folder).unwrap()).with_packages()
    }

    fn with_packages(self) -> Self {
        let tree = self;
        for package in 0..2 {
            let zone = format!("intel-rapl:{package}");
            tree.zone(&zone, &format!("package-{package}"), 1_000_000);
            tree.cap(&zone, 205, 205);
            tree.zone(&format!("{zone}:0"), "core", 500_000);
            tree.zone(&format!("{zone}:1"), "dram", 300_000);
        }
        tree
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.root().join("class").join(file)
    }

    /// Writes a file below `class`.
    pub fn write(&self, file: &str, text: impl ToString) {
        let path = self.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.to_string() + "\n").unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        let text = std::fs::read_to_string(self.path(file)).unwrap();
        text.trim().to_owned()
    }

    /// Adds a zone of powercap.
    pub fn zone(&self, zone: &str, name: &str, energy_uj: u64) {
        self.write(&format!("powercap/{zone}/name"), name);
        self.energy(zone, energy_uj);
        self.write(&format!("powercap/{zone}/max_energy_range_uj"), RANGE);
        self.write(&format!("powercap/{zone}/enabled"), 1);
    }

    /// Sets the energy counter of a zone.
    pub fn energy(&self, zone: &str, energy_uj: u64) {
        self.write(&format!("powercap/{zone}/energy_uj"), energy_uj);
    }

    /// Adds a long-term and a short-term limit to a zone, in watts.
    pub fn cap(&self, zone: &str, limit: u64, max: u64) {
        let limits = [
            ("long_term", limit, max, 999_424),
            ("short_term", limit * 6 / 5, 0, 9765),
        ];
        for (number, (name, limit, max, window)) in limits.into_iter().enumerate() {
            let file = |item: &str| format!("powercap/{zone}/constraint_{number}_{item}");
            self.write(&file("name"), name);
            self.write(&file("power_limit_uw"), limit * 1_000_000);
            self.write(&file("max_power_uw"), max * 1_000_000);
            self.write(&file("time_window_us"), window);
        }
    }
}
