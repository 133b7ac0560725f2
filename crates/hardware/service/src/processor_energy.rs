//! Reads the energy of the processors for the measuring process, at most once a second.
//!
//! Only root may read these counters since kernel 5.10: from fine readings others can guess what a program computes. Here
//! they are read so seldom that they tell no more than a utilisation does, and the policy says who gets them.

use std::time::{Duration, Instant};

use sweetspot_device::{Amount, Clock, Device, MonotonicClock, ReadError, SensorKind};
use sweetspot_hosts::{HostPart, HostTree, SensorAccess};

use crate::monitor_link::{ProcessorPart, ProcessorReading};

/// The shortest time between two readings.
const MIN_PERIOD: Duration = Duration::from_secs(1);

/// The energy counters of the processors and their memory.
#[derive(Default)]
pub struct ProcessorCounters {
    parts: Vec<HostPart>,
    read: Option<Instant>,
}

impl ProcessorCounters {
    /// Finds the counters below a tree of sysfs whose energies add up to that of the host. A tree that cannot be read has
    /// none.
    pub fn find(tree: &HostTree) -> Self {
        let parts = tree.host_energy_parts();
        let parts = parts.inspect_err(|error| tracing::warn!(%error, "no processor energy"));
        let mut parts = parts.unwrap_or_default();
        let counter = SensorKind::EnergyCounter;
        parts.retain(|part| part.access(counter) == Some(&SensorAccess::Readable));
        Self { parts, read: None }
    }

    /// Reads all counters; `None` if there are none, or if they were read less than a second ago.
    pub fn read(&mut self) -> Option<ProcessorReading> {
        let is_early = self.read.is_some_and(|at| at.elapsed() < MIN_PERIOD);
        if self.parts.is_empty() || is_early {
            return None;
        }
        self.read = Some(Instant::now());
        let begin = MonotonicClock.now();
        let mut read = |part: &mut HostPart| {
            let reading = part.read(SensorKind::EnergyCounter)?;
            let Amount::Energy(energy) = reading.amount else {
                return Err(ReadError::Unsupported(SensorKind::EnergyCounter));
            };
            Ok(ProcessorPart {
                name: part.descriptor().name.clone(),
                zone: part.zone().to_owned(),
                energy,
            })
        };
        let parts: Result<Vec<_>, ReadError> = self.parts.iter_mut().map(&mut read).collect();
        let parts = parts.inspect_err(|error| tracing::debug!(%error, "no processor energy"));
        Some(ProcessorReading {
            at: begin,
            parts: parts.ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn write(root: &Path, zone: &str, file: &str, text: &str) {
        let folder = root.join("class/powercap").join(zone);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }

    #[test]
    fn counters_are_read_once_a_second_at_most() {
        let root = tempfile::tempdir().unwrap();
        for (zone, name) in [
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:0:1", "dram"),
        ] {
            write(root.path(), zone, "name", name);
            write(root.path(), zone, "energy_uj", "5000000\n");
            write(root.path(), zone, "max_energy_range_uj", "262143328850\n");
        }
        let mut counters = ProcessorCounters::find(&HostTree::open(root.path()));
        let reading = counters.read().unwrap();
        // The cores are a part of the package.
        let zones: Vec<&str> = reading
            .parts
            .iter()
            .map(|part| part.zone.as_str())
            .collect();
        assert_eq!(zones, ["intel-rapl:0", "intel-rapl:0:1"]);
        write(root.path(), "intel-rapl:0", "energy_uj", "9000000\n");
        assert_eq!(counters.read(), None);
        counters.read = Some(Instant::now() - MIN_PERIOD);
        let later = counters.read().unwrap();
        assert!((later.parts[0].energy - reading.parts[0].energy).get() == 4.0);
        // A counter that can no longer be read ends the readings, and another machine has none.
        std::fs::remove_file(root.path().join("class/powercap/intel-rapl:0/energy_uj")).unwrap();
        counters.read = None;
        assert_eq!(counters.read(), None);
        assert_eq!(ProcessorCounters::default().read(), None);
    }
}
