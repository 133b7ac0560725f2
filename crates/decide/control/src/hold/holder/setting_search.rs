//! Selects the search of a controller: `batch_search` for `--knob batch` or core clocks alone, `joint_search` for both
//! together, and `paper_search` for the algorithms of the BatchSizer paper.

use crate::hold::batch_search::BatchSearch;
use crate::hold::config::{DeviceKnob, HoldConfig, HoldMode};
use crate::hold::joint_search::{GridPosition, JointSearch};
use crate::hold::paper_search::PaperSearch;
use crate::hold::power_profile::PowerProfile;
use crate::hold::running_search::RunningSearch;

/// The search that the controller uses, which depends on the control algorithm and the knob.
#[derive(Clone, Debug)]
pub(super) enum SettingSearch {
    /// An algorithm of the BatchSizer paper, along one axis (`--mode paper`, `text`, `windowed`, `dvfs` or
    /// `step_up`).
    Paper {
        search: PaperSearch,
        axis: Axis,
        profile: PowerProfile,
    },
    /// The default search along one axis (`--knob batch` or `core-clock`), which remembers all measurements.
    Axis { search: BatchSearch, axis: Axis },
    /// The search along the batch sizes for a program that batches continuously, which replaces the default one when the
    /// program has turned out to be such a one.
    Running(RunningSearch),
    /// A search over batch size and device knob together (`--knob joint`).
    Joint(JointSearch),
    /// The device's own power cap, at the highest level that does not exceed the configured cap, lowered by
    /// `steps_below` levels if the device still exceeds it.
    DeviceCap { steps_below: usize },
}

/// The axis along which a one-dimensional search runs: batch sizes, or levels of the device knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Batch,
    Level,
}

impl Axis {
    /// The index of a setting on this axis.
    pub(super) fn index_of(self, position: GridPosition) -> usize {
        match self {
            Self::Batch => position.batch,
            Self::Level => position.level,
        }
    }

    /// The position `from` with its index on this axis replaced.
    pub(super) fn position(self, from: GridPosition, index: usize) -> GridPosition {
        match self {
            Self::Batch => GridPosition {
                batch: index,
                ..from
            },
            Self::Level => GridPosition {
                level: index,
                ..from
            },
        }
    }
}

impl SettingSearch {
    pub(super) fn new(config: &HoldConfig) -> Self {
        let axis = match config.sets_device_only() {
            true => Axis::Level,
            false => Axis::Batch,
        };
        match (config.mode, &config.knob) {
            (HoldMode::Robust, DeviceKnob::None) => Self::Axis {
                search: BatchSearch::over_batches(config),
                axis,
            },
            (HoldMode::Robust, DeviceKnob::CoreClock(clocks)) => {
                let clocks = clocks.iter().map(|clock| clock.get()).collect();
                Self::Axis {
                    search: BatchSearch::over_clocks(config, clocks),
                    axis,
                }
            }
            (HoldMode::Robust, DeviceKnob::PowerCap(_)) => Self::DeviceCap { steps_below: 0 },
            (HoldMode::Joint, _) => Self::Joint(JointSearch::new(config)),
            (mode, knob) => {
                let settings = match axis {
                    Axis::Level => knob.level_count(),
                    Axis::Batch => config.batches.len(),
                };
                Self::Paper {
                    search: PaperSearch::new(mode, config.alpha.get(), settings),
                    axis,
                    profile: PowerProfile::default(),
                }
            }
        }
    }

    /// The index of the device level to start with.
    pub(super) fn first_level(&mut self, config: &HoldConfig) -> usize {
        match self {
            Self::Joint(search) => search.first_level(config.cap.get()),
            Self::DeviceCap { .. } => config.device_cap_level(0),
            Self::Axis { .. } | Self::Running(_) | Self::Paper { .. }
                if config.sets_device_only() =>
            {
                0
            }
            Self::Axis { .. } | Self::Running(_) | Self::Paper { .. } => {
                config.knob.level_count().saturating_sub(1)
            }
        }
    }

    /// The measured power of a setting, in watts; `None` if it is unknown.
    pub(super) fn power_at(&self, position: GridPosition) -> Option<f64> {
        match self {
            Self::Axis { search, axis } => search.candidates()[axis.index_of(position)].power(),
            Self::Running(search) => search.power(position.batch),
            Self::Joint(search) => search.power_at(position),
            Self::DeviceCap { .. } | Self::Paper { .. } => None,
        }
    }
}
