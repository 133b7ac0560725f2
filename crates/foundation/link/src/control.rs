//! Control words: 64-bit values in shared memory with which sweetspot steers the workload.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use crate::layout::{BATCH_SIZE_INDEX, CONTROL_HEADER_SIZE, TUNING_INDEX};
use crate::map::Map;

/// What sweetspot does with the GPU's settings while the workload runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tuning {
    /// Sweetspot does not change settings.
    #[default]
    Off,
    /// Sweetspot tries different settings, so the workload should base no decisions on its present speed.
    Exploring,
    /// Sweetspot has chosen a setting and no longer changes it.
    Settled,
}

/// The control words in shared memory. Sweetspot writes them; the workload only reads them.
#[derive(Debug)]
pub struct Control(pub(crate) Map);

impl Control {
    /// Asks the workload to use this batch size from now on; `None` lets the workload decide.
    pub fn set_batch_size(&self, size: Option<NonZeroU64>) {
        self.set(BATCH_SIZE_INDEX, size.map_or(0, NonZeroU64::get));
    }

    /// Tells the workload whether settings are being tuned.
    pub fn set_tuning(&self, tuning: Tuning) {
        self.set(
            TUNING_INDEX,
            match tuning {
                Tuning::Off => 0,
                Tuning::Exploring => 1,
                Tuning::Settled => 2,
            },
        );
    }

    /// Writes the control word with this index.
    fn set(&self, index: usize, value: u64) {
        self.0
            .word(CONTROL_HEADER_SIZE + index * 8)
            .store(value, Ordering::Release);
    }
}

/// Reads the control word with this index, on the workload's side.
pub(crate) fn word(map: &Map, index: usize) -> u64 {
    map.word(CONTROL_HEADER_SIZE + index * 8)
        .load(Ordering::Acquire)
}

/// Decodes the control word for tuning; unknown numbers count as [`Tuning::Off`].
pub(crate) fn tuning(value: u64) -> Tuning {
    match value {
        1 => Tuning::Exploring,
        2 => Tuning::Settled,
        _ => Tuning::Off,
    }
}
