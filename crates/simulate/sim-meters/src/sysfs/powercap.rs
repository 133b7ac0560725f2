//! The powercap tree of Intel processors, which AMD's processors use too.

use std::io;
use std::path::Path;

use sweetspot_quantity::{Joules, Watts};
use sweetspot_sim::Processors;
use sweetspot_stats::Seed;

use super::{NumberFile, link_in_class, write_text};

/// The step of the energy counters, in joules: 2^-14 J.
const STEP: f64 = 1.0 / 16_384.0;
/// The limit on short peaks, relative to the power cap (assumed, as boards usually set it).
const SHORT_TERM: f64 = 1.2;
/// A power that is not a number is replaced after this many reads: the kernel would have refused it at once.
const INVALID_READS: u32 = 10;

/// The powercap tree.
#[derive(Debug)]
pub(super) struct Powercap {
    packages: Vec<Package>,
    range: Joules,
    default: Watts,
}

/// The files of one package.
#[derive(Debug)]
struct Package {
    energy: Counter,
    memory: Counter,
    enabled: Setting,
    long_term: Setting,
    short_term: Setting,
}

/// An energy counter, which does not start at zero.
#[derive(Debug)]
struct Counter {
    file: NumberFile,
    start: Joules,
}

/// A file that others may write.
#[derive(Debug)]
struct Setting {
    file: NumberFile,
    value: u64,
    invalid_reads: u32,
}

impl Powercap {
    /// Makes the tree below the root of the sysfs tree.
    pub fn create(root: &Path, processors: &Processors, seed: Seed) -> io::Result<Self> {
        let control = "devices/virtual/powercap/intel-rapl";
        std::fs::create_dir_all(root.join(control))?;
        write_text(&root.join(control), "enabled", "1")?;
        link_in_class(root, "powercap", control)?;
        let mut packages = Vec::new();
        for index in 0..processors.packages {
            let device = format!("{control}/intel-rapl:{index}");
            let memory = format!("{device}/intel-rapl:{index}:0");
            std::fs::create_dir_all(root.join(&memory))?;
            let seed = seed.label("powercap").number(index);
            packages.push(Package::create(
                root, &device, &memory, processors, index, seed,
            )?);
            link_in_class(root, "powercap", &device)?;
            link_in_class(root, "powercap", &memory)?;
        }
        Ok(Self {
            packages,
            range: processors.counter_range,
            default: processors.cap,
        })
    }

    /// Shows the energies of the packages and of the memory of each.
    pub fn show(&mut self, energies: &[Joules], memory: Joules) -> io::Result<()> {
        for (package, energy) in self.packages.iter_mut().zip(energies) {
            package.energy.show(*energy, self.range)?;
            package.memory.show(memory, self.range)?;
        }
        Ok(())
    }

    /// The power caps that are set: the lower of both limits of each package, or the default if they are switched off.
    pub fn read_caps(&mut self) -> Vec<Watts> {
        let packages = self.packages.iter_mut().map(|package| {
            let limit = package.long_term.read().min(package.short_term.read());
            match package.enabled.read() {
                0 => self.default,
                _ => Watts::new(limit as f64 * 1e-6),
            }
        });
        packages.collect()
    }
}

impl Package {
    /// Makes the files of a package and of its memory.
    fn create(
        root: &Path,
        device: &str,
        memory: &str,
        processors: &Processors,
        index: u64,
        seed: Seed,
    ) -> io::Result<Self> {
        let (folder, memory) = (root.join(device), root.join(memory));
        let cap = micro(processors.cap.get());
        let peak = micro(processors.cap.get() * SHORT_TERM);
        let constraints = [
            ("constraint_0_name", "long_term".to_owned()),
            ("constraint_0_max_power_uw", cap.to_string()),
            ("constraint_0_time_window_us", "999424".to_owned()),
            ("constraint_1_name", "short_term".to_owned()),
            ("constraint_1_max_power_uw", peak.to_string()),
            ("constraint_1_time_window_us", "7808".to_owned()),
            ("name", format!("package-{index}")),
        ];
        for (name, text) in &constraints {
            write_text(&folder, name, text)?;
        }
        write_text(&memory, "name", "dram")?;
        write_text(&memory, "enabled", "0")?;
        let range = processors.counter_range;
        for folder in [&folder, &memory] {
            write_text(
                folder,
                "max_energy_range_uj",
                &micro(range.get()).to_string(),
            )?;
        }
        let setting = |name: &str, value| Setting::create(&folder, name, value);
        Ok(Self {
            energy: Counter::create(&folder, range, seed.label("package"))?,
            memory: Counter::create(&memory, range, seed.label("memory"))?,
            enabled: setting("enabled", 1)?,
            long_term: setting("constraint_0_power_limit_uw", cap)?,
            short_term: setting("constraint_1_power_limit_uw", peak)?,
        })
    }
}

impl Counter {
    /// Makes a counter, which only root or its owner may read.
    fn create(folder: &Path, range: Joules, seed: Seed) -> io::Result<Self> {
        let start = range * seed.uniform();
        let mut counter = Self {
            file: NumberFile::create(folder.join("energy_uj"), 0, 0o400)?,
            start,
        };
        counter.show(Joules::ZERO, range)?;
        Ok(counter)
    }

    /// Shows an energy in the counter's steps; the counter restarts from zero at the end of its range.
    fn show(&mut self, energy: Joules, range: Joules) -> io::Result<()> {
        let counted = (self.start + energy).get().rem_euclid(range.get());
        self.file.write(micro((counted / STEP).floor() * STEP))
    }
}

impl Setting {
    /// Makes a file that its owner may write.
    fn create(folder: &Path, name: &str, value: u64) -> io::Result<Self> {
        Ok(Self {
            file: NumberFile::create(folder.join(name), value, 0o644)?,
            value,
            invalid_reads: 0,
        })
    }

    /// The value that was written last. A text that is not a number is ignored, and later replaced by that value.
    fn read(&mut self) -> u64 {
        match self.file.read() {
            Some(value) => (self.value, self.invalid_reads) = (value, 0),
            None => self.invalid_reads += 1,
        }
        if self.invalid_reads == INVALID_READS {
            // The content of the file is unknown, so it is replaced whole.
            let _ = std::fs::write(&self.file.path, format!("{}\n", self.value));
            self.invalid_reads = 0;
        }
        self.value
    }
}

/// A value in millionths.
fn micro(value: f64) -> u64 {
    (value * 1e6).round().max(0.0) as u64
}
