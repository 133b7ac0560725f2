//! Words from the tool to the workload.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use crate::layout::{BATCH_SIZE, CONTROL_HEADER, TUNING};
use crate::map::Map;

/// What the tool does to the settings while the workload runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tuning {
    /// Nothing.
    #[default]
    Off,
    /// It tries settings: times of now are no basis for decisions of the workload's own.
    Exploring,
    /// It holds a setting that it chose.
    Settled,
}

/// The tool's side of the words; the tool is their only writer.
#[derive(Debug)]
pub struct Control(pub(crate) Map);

impl Control {
    /// The batch size to use next, or none where the workload decides.
    pub fn set_batch_size(&self, size: Option<NonZeroU64>) {
        self.set(BATCH_SIZE, size.map_or(0, NonZeroU64::get));
    }

    /// What the tool is doing.
    pub fn set_tuning(&self, tuning: Tuning) {
        self.set(
            TUNING,
            match tuning {
                Tuning::Off => 0,
                Tuning::Exploring => 1,
                Tuning::Settled => 2,
            },
        );
    }

    fn set(&self, word: usize, value: u64) {
        self.0
            .word(CONTROL_HEADER + word * 8)
            .store(value, Ordering::Release);
    }
}

/// A workload's view of a word.
pub(crate) fn word(map: &Map, word: usize) -> u64 {
    map.word(CONTROL_HEADER + word * 8).load(Ordering::Acquire)
}

/// A number that this version does not know is no tuning that it knows of.
pub(crate) fn tuning(value: u64) -> Tuning {
    match value {
        1 => Tuning::Exploring,
        2 => Tuning::Settled,
        _ => Tuning::Off,
    }
}
