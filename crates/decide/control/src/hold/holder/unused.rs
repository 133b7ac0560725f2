//! Which part of the cap a setting does not use, and what would use it.

use sweetspot_quantity::Watts;

use super::{Holder, SettingSearch};
use crate::hold::candidate::Candidate;
use crate::hold::config::DeviceKnob;
use crate::hold::running_search::RunningSearch;

/// Less than this share of the cap below it is not worth a word.
const MIN_UNUSED_SHARE: f64 = 0.05;

/// Power below the cap that is not used, and what would use it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnusedPower {
    /// The cap minus the average power.
    pub power: Watts,
    /// What would use it.
    pub remedy: UnusedRemedy,
}

/// What would use power that is left below the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusedRemedy {
    /// A larger batch, which exceeds the cap unless the device itself keeps it: the device's power cap, or a lower clock.
    DeviceSetting,
    /// Another batch size, which was fixed.
    BatchSize,
    /// Batch sizes above the largest that was allowed.
    LargerBatches {
        /// The largest allowed batch size.
        largest: u64,
    },
    /// A higher latency bound.
    LatencyBound,
    /// More requests.
    Requests,
    /// Nothing that can be set: larger batches are not better, or do not fit into memory.
    Nothing,
}

impl std::fmt::Display for UnusedPower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.0} below the cap are not used: ", self.power)?;
        match self.remedy {
            UnusedRemedy::DeviceSetting => f.write_str(
                "a larger batch would exceed it, and only a setting of the GPU (its own power cap) could prevent that",
            ),
            UnusedRemedy::BatchSize => f.write_str(
                "the batch size is fixed; if it may be chosen too, a larger one could use them",
            ),
            UnusedRemedy::LargerBatches { largest } => write!(
                f,
                "the largest allowed batch size is {largest}, and a larger one could use them"
            ),
            UnusedRemedy::LatencyBound => {
                f.write_str("a larger batch would exceed the latency bound")
            }
            UnusedRemedy::Requests => f.write_str("there are not enough requests"),
            UnusedRemedy::Nothing => f.write_str("no setting that was tried is faster"),
        }
    }
}

impl Holder {
    /// The power that the present setting leaves below the cap if it draws `average`; `None` if that is little, or if an
    /// algorithm of the BatchSizer paper is used: these stop at the first setting in a band below the cap, and remember
    /// nothing about the others.
    pub fn unused_power(&self, average: Watts) -> Option<UnusedPower> {
        if matches!(self.search, SettingSearch::Paper { .. }) {
            return None;
        }
        let power = self.config.cap - average;
        (power > self.config.cap * MIN_UNUSED_SHARE).then(|| UnusedPower {
            power,
            remedy: self.remedy(),
        })
    }

    /// What would use power that is left below the cap.
    fn remedy(&self) -> UnusedRemedy {
        if self.arrivals_per_s.is_some() && !self.has_backlog {
            return UnusedRemedy::Requests;
        }
        if self.config.sets_device_only() {
            return UnusedRemedy::BatchSize;
        }
        if let SettingSearch::Running(search) = &self.search {
            return self.remedy_for_running(search);
        }
        let limits = self.limits();
        let above = self.larger_candidates();
        if above.iter().any(|tried| tried.power() > Some(limits.cap)) {
            return match self.config.knob {
                DeviceKnob::None => UnusedRemedy::DeviceSetting,
                _ => UnusedRemedy::Nothing,
            };
        }
        if above.iter().any(|tried| tried.p99() > Some(limits.latency)) {
            return UnusedRemedy::LatencyBound;
        }
        match self.config.batches.last() {
            Some(largest) if *largest == self.setting().batch => {
                UnusedRemedy::LargerBatches { largest: *largest }
            }
            _ => UnusedRemedy::Nothing,
        }
    }

    /// What would use power that is left below the cap, for a program that batches continuously.
    fn remedy_for_running(&self, search: &RunningSearch) -> UnusedRemedy {
        let (has_exceeded_cap, was_slow) = search.failures_above(self.position.batch);
        match self.config.batches.last() {
            _ if search.has_too_few_requests() => UnusedRemedy::Requests,
            _ if has_exceeded_cap => UnusedRemedy::DeviceSetting,
            _ if was_slow => UnusedRemedy::LatencyBound,
            Some(largest) if *largest == self.setting().batch => {
                UnusedRemedy::LargerBatches { largest: *largest }
            }
            _ => UnusedRemedy::Nothing,
        }
    }

    /// What is known about larger batches at the present device setting.
    fn larger_candidates(&self) -> &[Candidate] {
        let at = self.position;
        let candidates = match &self.search {
            SettingSearch::Axis { search, .. } => search.candidates(),
            SettingSearch::Joint(search) => search.candidates_at(at.level),
            SettingSearch::Running(_)
            | SettingSearch::DeviceCap { .. }
            | SettingSearch::Paper { .. } => &[],
        };
        candidates.get(at.batch + 1..).unwrap_or_default()
    }
}
