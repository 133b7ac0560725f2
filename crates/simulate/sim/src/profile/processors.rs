//! The processors of a node: their power, and what a power cap does to it and to their speed.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Ratio, Watts};

use super::{Problem, check};

/// The processors of a node, which are part of its host: `host.idle` contains their idle power and that of their
/// memory, and `host.per_gpu` is what they add for each GPU that a job uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processors {
    /// The model of the processors.
    pub name: String,
    /// The number of packages, each of which has a power cap and an energy counter. Each feeds the same number of GPUs.
    pub packages: u64,
    /// The power of each package while no job runs.
    pub idle: Watts,
    /// The default power cap of each package.
    pub cap: Watts,
    /// The power of the memory of each package, which has an energy counter of its own.
    pub dram: Watts,
    /// The lowest speed to which a power cap slows a package, relative to its speed without a cap.
    #[serde(default = "default_slowest")]
    pub slowest: Ratio,
    /// The energy at which the energy counters restart from zero.
    #[serde(default = "default_counter_range")]
    pub counter_range: Joules,
}

/// Processors seldom run below this share of their usual clock.
const fn default_slowest() -> Ratio {
    Ratio::new(0.35)
}

/// The range of the usual counter: 32 bits in units of 2^-14 J.
const fn default_counter_range() -> Joules {
    Joules::new(262_143.328_85)
}

/// The power and the speed of a package.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PackageLoad {
    /// The power of the package, without its memory.
    pub power: Watts,
    /// The speed of the package, relative to its speed without a cap.
    pub speed: Ratio,
}

impl Processors {
    /// The index of the package that feeds a GPU. Neighbours share a package, as the slots of a server do.
    pub fn package_of(&self, gpu: usize, gpus: usize) -> usize {
        gpu * self.packages as usize / gpus.max(1)
    }

    /// The load of a package whose work draws the power `work` beyond its idle power, under a power cap. The clock falls
    /// until the package is at its cap. The power of the work is proportional to the cube of the clock, because the
    /// voltage falls with it; at the lowest clock the power may be above the cap.
    pub fn under_cap(&self, work: Watts, cap: Watts) -> PackageLoad {
        let left = (cap - self.idle).max(Watts::ZERO);
        let share = if work > left {
            (left / work).get()
        } else {
            1.0
        };
        let speed = libm::cbrt(share).max(self.slowest.get());
        PackageLoad {
            power: self.idle + work * (speed * speed * speed),
            speed: Ratio::new(speed),
        }
    }

    /// Checks the values; `host_idle` is the idle power of the whole host.
    pub(super) fn check(&self, host_idle: Watts) -> Result<(), Problem> {
        /// More packages than any server has.
        const MAX_PACKAGES: u64 = 16;
        check::text("processors.name", &self.name)?;
        check::count("processors.packages", self.packages, MAX_PACKAGES)?;
        let each = host_idle / self.packages as f64;
        check::within("processors.idle", self.idle, Watts::ZERO, each)?;
        let left = each - self.idle;
        check::within("processors.dram", self.dram, Watts::ZERO, left)?;
        let most = Watts::new(10_000.0);
        check::within("processors.cap", self.cap, self.idle, most)?;
        let (slowest, full) = (Ratio::new(0.01), Ratio::new(1.0));
        check::within("processors.slowest", self.slowest, slowest, full)?;
        let (least, range) = (Joules::new(1.0), Joules::new(1e12));
        check::within("processors.counter_range", self.counter_range, least, range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processors() -> Processors {
        Processors {
            name: "made".to_owned(),
            packages: 2,
            idle: Watts::new(20.0),
            cap: Watts::new(85.0),
            dram: Watts::new(10.0),
            slowest: Ratio::new(0.5),
            counter_range: default_counter_range(),
        }
    }

    #[test]
    fn a_cap_lowers_power_with_the_cube_of_the_speed() {
        let under = |cap| processors().under_cap(Watts::new(40.0), Watts::new(cap));
        let free = under(85.0);
        assert_eq!((free.power.get(), free.speed.get()), (60.0, 1.0));
        let capped = under(25.0);
        assert!((capped.power.get() - 25.0).abs() < 1e-9);
        assert!((capped.speed.get() - 0.5).abs() < 1e-9);
        // The lowest speed is reached: a lower cap has no further effect, and the power stays above it.
        assert_eq!(under(21.0), under(5.0));
        assert!((under(5.0).power.get() - 25.0).abs() < 1e-9);
    }

    #[test]
    fn a_package_without_work_ignores_its_cap() {
        let idle = processors().under_cap(Watts::ZERO, Watts::new(10.0));
        assert_eq!((idle.power.get(), idle.speed.get()), (20.0, 1.0));
    }

    #[test]
    fn gpus_are_divided_among_packages() {
        let of = |gpus: usize| (0..gpus).map(move |gpu| processors().package_of(gpu, gpus));
        assert_eq!(of(4).collect::<Vec<_>>(), [0, 0, 1, 1]);
        assert_eq!(of(3).collect::<Vec<_>>(), [0, 0, 1]);
        assert_eq!(of(1).collect::<Vec<_>>(), [0]);
    }
}
