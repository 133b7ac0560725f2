//! The work of a step as a constant and a part for each item, for networks whose steps do not share one shape.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds};

use super::workload::{DAY, MAX_ITEMS, MAX_RATIO};
use super::{Problem, check};

/// The work of one phase of an iteration on one GPU, in place of its share of the item's work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepLine {
    /// The time of the phase for an empty batch, at the default clocks.
    pub constant: Seconds,
    /// The further time for each item, at the default clocks.
    pub per_item: Seconds,
    /// The share of the time that scales with the memory clock.
    pub memory: Ratio,
    /// The switching power while kernels run, relative to the GPU's `power.core`.
    pub switching: Ratio,
    /// The batch at which the switching power is half of its highest.
    #[serde(default)]
    pub half_power_batch: f64,
    /// The change of the algorithm for large batches, if the library makes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub large_batches: Option<LargeBatches>,
}

/// Another algorithm, which a library chooses for large batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeBatches {
    /// The largest batch for which the usual algorithm is chosen.
    pub above: u64,
    /// The time relative to that of the usual algorithm.
    pub time: Ratio,
}

impl StepLine {
    /// The time of the phase for a batch, at the default clocks.
    pub fn time(&self, batch: u64) -> Seconds {
        let time = self.constant + self.per_item * batch as f64;
        match &self.large_batches {
            Some(large) if batch > large.above => time * large.time.get(),
            _ => time,
        }
    }

    /// The switching power for a batch.
    pub fn switching(&self, batch: u64) -> Ratio {
        let batch = batch as f64;
        self.switching * (batch / (batch + self.half_power_batch))
    }

    /// Checks the values; `key` is the path of the entry.
    pub(super) fn check(&self, key: &str) -> Result<(), Problem> {
        let (none, all) = (Ratio::ZERO, Ratio::new(1.0));
        check::within(
            &format!("{key}.constant"),
            self.constant,
            Seconds::ZERO,
            DAY,
        )?;
        check::within(
            &format!("{key}.per_item"),
            self.per_item,
            Seconds::ZERO,
            DAY,
        )?;
        check::within(&format!("{key}.memory"), self.memory, none, all)?;
        check::within(&format!("{key}.switching"), self.switching, none, MAX_RATIO)?;
        let half = Ratio::new(self.half_power_batch);
        check::within(
            &format!("{key}.half_power_batch"),
            half,
            none,
            Ratio::new(1e6),
        )?;
        if let Some(large) = &self.large_batches {
            check::count(
                &format!("{key}.large_batches.above"),
                large.above,
                MAX_ITEMS,
            )?;
            let key = format!("{key}.large_batches.time");
            check::within(&key, large.time, Ratio::new(0.01), MAX_RATIO)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_followed_until_the_algorithm_changes() {
        let line = StepLine {
            constant: Seconds::new(0.03),
            per_item: Seconds::new(0.001),
            memory: Ratio::new(0.3),
            switching: Ratio::new(0.8),
            half_power_batch: 64.0,
            large_batches: Some(LargeBatches {
                above: 128,
                time: Ratio::new(0.5),
            }),
        };
        assert!((line.time(64).get() - 0.094).abs() < 1e-12);
        assert!((line.time(128).get() - 0.158).abs() < 1e-12);
        assert!((line.time(256).get() - 0.143).abs() < 1e-12);
        assert!((line.switching(64).get() - 0.4).abs() < 1e-12);
    }
}
