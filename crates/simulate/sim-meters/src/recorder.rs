//! The thread that advances the node, keeps the sysfs tree up to date and writes the truth to a file.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sweetspot_device::{Clock, Moment, MonotonicClock};
use sweetspot_quantity::{Joules, Seconds};

use crate::node::NodeState;
use crate::serve::Shared;
use crate::sysfs::Sysfs;

/// The time between two values of the processors' energy counters.
const COUNTER_PERIOD: Duration = Duration::from_millis(1);
/// The time between two advances of the GPUs, and reads of the power caps.
const ADVANCE_PERIOD: Seconds = Seconds::new(0.01);
/// The time between two lines of the truth.
const TRUTH_PERIOD: Seconds = Seconds::new(0.1);
/// The number of lines after which the file of the truth is full: six hours.
const MAX_TRUTH_LINES: u64 = 216_000;

/// Keeps the files of a simulated node up to date until the end. It also ends when the files are gone.
pub(crate) fn record(shared: &Arc<Shared>, mut sysfs: Sysfs, mut truth: Truth) {
    let mut advanced_at = Moment::default();
    while !shared.has_ended() {
        let now = MonotonicClock.now();
        let mut result = Ok(());
        if now - advanced_at >= ADVANCE_PERIOD {
            advanced_at = now;
            let mut node = shared.node.advance();
            result = sysfs.follow(&mut node).and_then(|()| truth.write(&node));
        }
        let shown = sysfs.show_counters(MonotonicClock.now(), &shared.node.lock());
        if result.and(shown).is_err() {
            return;
        }
        std::thread::sleep(COUNTER_PERIOD);
    }
}

/// The file with the exact energies of the node, for comparison with what meters show.
#[derive(Debug)]
pub(crate) struct Truth {
    file: File,
    lines: u64,
    written_at: Moment,
}

impl Truth {
    /// Creates the file with its heading.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut file = File::create(path)?;
        writeln!(file, "monotonic_ns,wall_j,gpus_j,packages_j,memory_j")?;
        Ok(Self {
            file,
            lines: 0,
            written_at: Moment::default(),
        })
    }

    /// Adds a line if it is time for one.
    fn write(&mut self, node: &NodeState) -> io::Result<()> {
        let (now, wall) = node.wall();
        if now - self.written_at < TRUTH_PERIOD || self.lines >= MAX_TRUTH_LINES {
            return Ok(());
        }
        (self.written_at, self.lines) = (now, self.lines + 1);
        let gpus: Joules = node.gpus().iter().map(|gpu| gpu.energy).sum();
        let energies = node.package_energies(now);
        let memory = node.memory_energy(now) * energies.len() as f64;
        let packages: Joules = energies.into_iter().sum();
        let line = format!(
            "{},{:.3},{:.3},{:.3},{:.3}\n",
            now.nanos(),
            wall.get(),
            gpus.get(),
            packages.get(),
            memory.get()
        );
        self.file.write_all(line.as_bytes())
    }
}
