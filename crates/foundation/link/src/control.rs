//! Control words from the tool to the workload.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use crate::layout::{BATCH_SIZE, CONTROL_HEADER, TUNING};
use crate::map::Map;

/// What the tool does with the settings while the workload runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Tuning {
    /// It does not change settings.
    #[default]
    Off,
    /// It tries settings: present timings are no basis for decisions of the workload itself.
    Exploring,
    /// It keeps the setting that it chose.
    Settled,
}

/// The tool's side of the control words; the tool is their only writer.
#[derive(Debug)]
pub struct Control(pub(crate) Map);

impl Control {
    /// Sets the batch size to use next; `None` if the workload decides.
    pub fn set_batch_size(&self, size: Option<NonZeroU64>) {
        self.set(BATCH_SIZE, size.map_or(0, NonZeroU64::get));
    }

    /// Sets the state of tuning.
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

/// The workload's reading of a control word.
pub(crate) fn word(map: &Map, word: usize) -> u64 {
    map.word(CONTROL_HEADER + word * 8).load(Ordering::Acquire)
}

/// The state of tuning; a number that this version does not know means no tuning.
pub(crate) fn tuning(value: u64) -> Tuning {
    match value {
        1 => Tuning::Exploring,
        2 => Tuning::Settled,
        _ => Tuning::Off,
    }
}
