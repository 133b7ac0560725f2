//! The units of a network's table: chosen so that the total has at most four digits before the decimal point.

use sweetspot_network::Cost;
use sweetspot_session::GpuBounds;

/// A unit: its size in base units, and its name.
#[derive(Clone, Copy)]
pub struct Unit {
    size: f64,
    pub name: &'static str,
}

impl Unit {
    /// Chooses the largest unit in which the total is at least 1.
    fn for_total(total: f64, units: &[(f64, &'static str)]) -> Self {
        let fits = units.iter().find(|(size, _)| total / size < 1e4);
        let (size, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
        Self { size, name }
    }

    /// Formats a value in this unit.
    pub fn text(&self, value: f64) -> String {
        format!("{:.3}", value / self.size)
    }
}

/// The units of all columns.
pub struct Units {
    pub macs: Unit,
    pub others: Unit,
    pub bytes: Unit,
    pub time: Unit,
    pub energy: Unit,
}

impl Units {
    /// Chooses the units; the paper's conventions use the paper's units: millions, and MB of 2^20 bytes.
    pub fn for_network(cost: &Cost<'_>, gpu: Option<&GpuBounds>) -> Self {
        let total = cost.total();
        let bytes = cost.read_bytes(&total).max(cost.written_bytes(&total)) as f64;
        let (time, energy) = gpu.map_or((0.0, 0.0), |gpu| {
            (gpu.total.time.get(), gpu.total.energy.get())
        });
        let counts = [(1e6, "M"), (1e9, "G"), (1e12, "T")];
        let (counts, sizes): (&[_], &[_]) = match cost.convention.follows_paper() {
            true => (&counts[..1], &[(1_048_576.0, "MB")]),
            false => (&counts, &[(1e6, "MB"), (1e9, "GB"), (1e12, "TB")]),
        };
        Self {
            macs: Unit::for_total(total.operations.macs as f64, counts),
            others: Unit::for_total(total.operations.others() as f64, counts),
            bytes: Unit::for_total(bytes, sizes),
            time: Unit::for_total(time, &[(1e-6, "us"), (1e-3, "ms"), (1.0, "s")]),
            energy: Unit::for_total(energy, &[(1e-3, "mJ"), (1.0, "J"), (1e3, "kJ")]),
        }
    }
}
