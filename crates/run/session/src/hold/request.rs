//! What is asked of a hold, and what it can do on a device.

use std::ffi::OsString;
use std::path::PathBuf;

use sweetspot_control::hold::{DeviceKnob, HoldGoal, HoldMode};
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, SensorKind};
use sweetspot_quantity::{Quantity, Ratio, Seconds, Watts};

use super::HoldError;
use super::cap::Below;
use crate::host::DevicesError;

/// What is set to hold the cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldKnob {
    /// The batch size, over the link: nothing on the device.
    #[default]
    Batch,
    /// The core clock, at one batch size.
    CoreClock,
    /// The device's own power cap, at one batch size.
    PowerCap,
    /// Batch size and core clock together, or the power cap where there is no clock.
    Joint,
}

impl HoldKnob {
    /// As flags write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::CoreClock => "core-clock",
            Self::PowerCap => "power-cap",
            Self::Joint => "joint",
        }
    }
}

impl std::fmt::Display for HoldKnob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A command to hold below a power.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// Which GPU, where the user says.
    pub device: Option<String>,
    /// The command.
    pub command: Vec<OsString>,
    /// The cap at the start; the file's where nothing is given.
    pub below: Option<Below>,
    /// A file that somebody writes the cap to.
    pub cap_file: Option<PathBuf>,
    /// What is set.
    pub knob: HoldKnob,
    /// How the setting is found, where the user says.
    pub mode: Option<HoldMode>,
    /// What is best.
    pub goal: HoldGoal,
    /// The batch sizes to choose from.
    pub batches: Vec<u64>,
    /// The batch size where only the device is set.
    pub fixed_batch: Option<u64>,
    /// The longest that 99 of 100 items may take.
    pub latency_p99: Option<Seconds>,
    /// See [`sweetspot_control::hold::HoldConfig`]; the usual where nothing is given.
    pub alpha: Option<Ratio>,
    /// The same.
    pub window: Option<u32>,
    /// The same.
    pub settle: Option<Seconds>,
    /// The same.
    pub expiry: Option<Seconds>,
    /// The same.
    pub probe: Option<Seconds>,
    /// After so long a program that has not asked for its batch size is told of.
    pub patience: Option<Seconds>,
    /// The sensor that power is taken from; the finest where nothing is given.
    pub sensor: Option<SensorKind>,
    /// No write is allowed.
    pub read_only: bool,
    /// Whether standard output is taken by a document.
    pub keep_stdout: bool,
}

impl HoldRequest {
    /// The mode of the knob, unless the user names one that fits it.
    pub(super) fn mode(&self) -> Result<HoldMode, HoldError> {
        let usual = match self.knob {
            HoldKnob::Batch | HoldKnob::CoreClock | HoldKnob::PowerCap => HoldMode::Robust,
            HoldKnob::Joint => HoldMode::Joint,
        };
        let Some(mode) = self.mode else {
            return Ok(usual);
        };
        let fits = match self.knob {
            HoldKnob::Batch => mode.is_batch_only(),
            HoldKnob::CoreClock | HoldKnob::PowerCap => {
                matches!(mode, HoldMode::Robust | HoldMode::Dvfs | HoldMode::StepUp)
            }
            HoldKnob::Joint => mode == HoldMode::Joint,
        };
        match fits {
            true => Ok(mode),
            false => Err(HoldError::ModeForKnob {
                mode,
                knob: self.knob,
            }),
        }
    }

    /// The levels of what may be set on the device.
    pub(super) fn device_knob(&self, device: &Descriptor) -> Result<DeviceKnob, DevicesError> {
        let clock = || match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => match &range.domain {
                Domain::Levels(levels) => Some(DeviceKnob::CoreClock(ascending(levels))),
                Domain::Range { min, max } => {
                    Some(DeviceKnob::CoreClock(steps(min.get(), max.get(), 15.0)))
                }
            },
            _ => None,
        };
        let cap = || match device.knob(Knob::PowerCap) {
            Some(KnobDescriptor::PowerCap(range)) => match &range.domain {
                Domain::Levels(levels) => Some(DeviceKnob::PowerCap(ascending(levels))),
                Domain::Range { min, max } => {
                    Some(DeviceKnob::PowerCap(steps(min.get(), max.get(), 5.0)))
                }
            },
            _ => None,
        };
        let knob = match self.knob {
            HoldKnob::Batch => return Ok(DeviceKnob::None),
            HoldKnob::CoreClock => clock(),
            HoldKnob::PowerCap => cap(),
            HoldKnob::Joint => clock().or_else(cap).map(spread),
        };
        knob.filter(|knob| knob.level_count() > 0)
            .ok_or_else(|| DevicesError::NotSupported {
                device: device.name.clone(),
                problem: format!(
                    "it has nothing to set for the knob {}: use the knob batch",
                    self.knob
                ),
            })
    }

    /// Refuses options that contradict each other, before anything starts.
    pub(super) fn check(&self) -> Result<(), HoldError> {
        if let Some(mode @ (HoldMode::Paper | HoldMode::Text | HoldMode::Windowed)) = self.mode {
            let feature = match (self.latency_p99, self.goal) {
                (Some(_), _) => Some("latency bound"),
                (None, HoldGoal::EnergyPerItem) => Some("objective energy-per-item"),
                _ => None,
            };
            if let Some(feature) = feature {
                return Err(HoldError::ModeWithout { mode, feature });
            }
        }
        if self.fixed_batch.is_some() && matches!(self.knob, HoldKnob::Batch | HoldKnob::Joint) {
            return Err(HoldError::FixedBatch(self.knob));
        }
        if self.knob != HoldKnob::Batch && self.read_only {
            return Err(HoldError::ReadOnly(self.knob));
        }
        match self.below {
            None if self.cap_file.is_none() => Err(HoldError::NoCap),
            Some(Below::Device) if self.knob == HoldKnob::PowerCap => Err(HoldError::KnobSetsCap),
            Some(Below::Device) if self.cap_file.is_some() => Err(HoldError::TwoCaps),
            _ => Ok(()),
        }
    }
}

fn ascending<Q: Copy + PartialOrd>(levels: &[Q]) -> Vec<Q> {
    let mut levels = levels.to_vec();
    levels.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    levels.dedup_by(|a, b| a == b);
    levels
}

/// With two knobs there are many settings to try: levels that differ by a few parts of a hundred are enough.
fn spread(knob: DeviceKnob) -> DeviceKnob {
    const MOST: usize = 24;
    fn some<Q: Copy>(levels: Vec<Q>) -> Vec<Q> {
        let last = levels.len() - 1;
        if last < MOST {
            return levels;
        }
        (0..MOST).map(|n| levels[n * last / (MOST - 1)]).collect()
    }
    match knob {
        DeviceKnob::CoreClock(levels) if !levels.is_empty() => DeviceKnob::CoreClock(some(levels)),
        DeviceKnob::PowerCap(levels) if !levels.is_empty() => DeviceKnob::PowerCap(some(levels)),
        knob => knob,
    }
}

/// From the least to the most, both included.
fn steps<Q: Quantity>(min: f64, max: f64, step: f64) -> Vec<Q> {
    let count = ((max - min) / step).floor().max(0.0) as usize;
    let mut values: Vec<f64> = (0..=count).map(|n| min + n as f64 * step).collect();
    if values.last().is_some_and(|last| max - last > 1e-9) {
        values.push(max);
    }
    values.into_iter().map(Q::from_base).collect()
}

/// The usual batch sizes: doublings up to 256.
pub fn usual_batches() -> Vec<u64> {
    (0..=8).map(|power| 1 << power).collect()
}

/// The cap at the start.
pub(super) fn first_cap(
    below: Option<Below>,
    of_file: Option<Result<Watts, String>>,
    enforced: Option<Watts>,
) -> Result<Watts, HoldError> {
    match (below, of_file) {
        (_, Some(Ok(cap))) => Ok(cap),
        (Some(Below::Power(cap)), _) => Ok(cap),
        (Some(Below::Device), _) => enforced.ok_or(HoldError::NoDeviceLimit),
        (None, Some(Err(problem))) => Err(HoldError::CapFile(problem)),
        (None, None) => Err(HoldError::NoCap),
    }
}
