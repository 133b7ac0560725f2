//! The work of an iteration at several batch sizes, for workloads in which it is not proportional to the batch.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds};

use super::workload::{DAY, ItemWork, MAX_ITEMS, MAX_RATIO};
use super::{Problem, check, problem};

/// The work of an iteration at one batch size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IterationWork {
    /// The batch size.
    pub batch: u64,
    /// The parts of the iteration, in order. All batch sizes have the same ones.
    #[serde(rename = "part")]
    pub parts: Vec<PartWork>,
}

/// A part of an iteration in which the load of the GPU is constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartWork {
    /// The index of the phase that the part belongs to; several parts may belong to one phase.
    pub phase: usize,
    /// The host's time to launch the kernels; it overlaps with their execution.
    pub launch: Seconds,
    /// The time at the default clocks that scales with the core clock.
    pub core: Seconds,
    /// The time at the default clocks that scales with the memory clock.
    pub memory: Seconds,
    /// The switching power while kernels run, relative to the GPU's `power.core`.
    pub switching: Ratio,
    /// The memory power while kernels run, relative to the GPU's `power.memory`.
    pub memory_activity: Ratio,
}

impl IterationWork {
    /// The work at any batch size, from the works at some, which are in ascending order. Between two sizes it is
    /// interpolated; beyond the largest it is proportional to the batch, and below the smallest that of the smallest.
    /// `None` without any.
    pub fn interpolate(known: &[Self], batch: u64) -> Option<Self> {
        let (first, last) = (known.first()?, known.last()?);
        let above = known.partition_point(|work| work.batch < batch);
        let parts = match known.get(above) {
            None => {
                let factor = batch as f64 / last.batch as f64;
                last.parts.iter().map(|part| part.scaled(factor)).collect()
            }
            Some(_) if above == 0 => first.parts.clone(),
            Some(higher) => {
                let lower = &known[above - 1];
                let share = (batch - lower.batch) as f64 / (higher.batch - lower.batch) as f64;
                let pairs = lower.parts.iter().zip(&higher.parts);
                pairs.map(|(low, high)| low.towards(high, share)).collect()
            }
        };
        Some(Self { batch, parts })
    }
}

impl PartWork {
    /// The time of the kernels at the default clocks.
    pub fn kernel_time(&self) -> Seconds {
        self.core + self.memory
    }

    /// The part with all times multiplied by a factor.
    fn scaled(&self, factor: f64) -> Self {
        Self {
            launch: self.launch * factor,
            core: self.core * factor,
            memory: self.memory * factor,
            ..self.clone()
        }
    }

    /// The part between this one, for a share of 0, and another one, for a share of 1.
    fn towards(&self, other: &Self, share: f64) -> Self {
        let time = |from: Seconds, to: Seconds| from + (to - from) * share;
        let ratio = |from: Ratio, to: Ratio| from + (to - from) * share;
        Self {
            phase: self.phase,
            launch: time(self.launch, other.launch),
            core: time(self.core, other.core),
            memory: time(self.memory, other.memory),
            switching: ratio(self.switching, other.switching),
            memory_activity: ratio(self.memory_activity, other.memory_activity),
        }
    }
}

impl ItemWork {
    /// Checks the works at several batch sizes; `key` is the path of the entry.
    pub(super) fn check_iterations(&self, key: &str, phases: usize) -> Result<(), Problem> {
        let parts = self.iterations.first().map_or(0, |first| first.parts.len());
        let mut smaller = 0;
        for (index, work) in self.iterations.iter().enumerate() {
            let key = format!("{key}.iteration.{index}");
            check::count(&format!("{key}.batch"), work.batch, MAX_ITEMS)?;
            if work.batch <= smaller {
                let message = format!("{} is not above the batch before it", work.batch);
                return Err(problem(format!("{key}.batch"), message));
            }
            smaller = work.batch;
            if work.parts.is_empty() || work.parts.len() != parts {
                let message = "every batch size must have the same parts, at least one";
                return Err(problem(format!("{key}.batch"), message));
            }
            for (index, part) in work.parts.iter().enumerate() {
                part.check(&format!("{key}.part.{index}"), phases)?;
            }
        }
        Ok(())
    }
}

impl PartWork {
    /// Checks the values of a part; `key` is its path.
    fn check(&self, key: &str, phases: usize) -> Result<(), Problem> {
        if self.phase >= phases {
            let message = format!("there is no phase {}: the first is 0", self.phase);
            return Err(problem(format!("{key}.phase"), message));
        }
        for (name, time) in [
            ("launch", self.launch),
            ("core", self.core),
            ("memory", self.memory),
        ] {
            check::within(&format!("{key}.{name}"), time, Seconds::ZERO, DAY)?;
        }
        for (name, ratio) in [
            ("switching", self.switching),
            ("memory_activity", self.memory_activity),
        ] {
            check::within(&format!("{key}.{name}"), ratio, Ratio::ZERO, MAX_RATIO)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(batch: u64, core: f64, switching: f64) -> IterationWork {
        IterationWork {
            batch,
            parts: vec![PartWork {
                phase: 0,
                launch: Seconds::ZERO,
                core: Seconds::new(core),
                memory: Seconds::new(1.0),
                switching: Ratio::new(switching),
                memory_activity: Ratio::new(0.5),
            }],
        }
    }

    #[test]
    fn between_known_batches_the_work_is_interpolated_and_beyond_them_proportional() {
        let known = [work(2, 4.0, 0.2), work(4, 6.0, 0.6)];
        let at = |batch: u64| IterationWork::interpolate(&known, batch).unwrap().parts[0].clone();
        assert_eq!(at(1).core.get(), 4.0);
        assert_eq!(at(2).core.get(), 4.0);
        assert_eq!(at(3).core.get(), 5.0);
        assert!((at(3).switching.get() - 0.4).abs() < 1e-12);
        assert_eq!(at(4).core.get(), 6.0);
        assert_eq!(at(8).core.get(), 12.0);
        assert_eq!(at(8).memory.get(), 2.0);
        assert_eq!(at(8).switching.get(), 0.6);
        assert!(IterationWork::interpolate(&[], 1).is_none());
    }
}
