//! A request for a hold, and the levels of its knob that a device supports.

use std::ffi::OsString;
use std::path::PathBuf;

use sweetspot_control::hold::{CapOn, DeviceKnob, HoldGoal, HoldMode};
use sweetspot_control::tune::SettingsScope;
use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, SensorKind};
use sweetspot_quantity::{Quantity, Ratio, Seconds, Watts};

use super::HoldError;
use super::cap::CapSource;
use crate::host::DevicesError;

/// The settings that `hold` adjusts to stay below the power cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldKnob {
    /// What allows the most throughput: the device's own power cap and the batch size together, or only the batch size
    /// if the user may not change device settings.
    #[default]
    Auto,
    /// The batch size, which the program receives over the shared-memory link; no device setting is changed.
    Batch,
    /// The core clock, at a fixed batch size.
    CoreClock,
    /// The device's own power cap, at a fixed batch size.
    PowerCap,
    /// Batch size and core clock together; if the clock cannot be set, batch size and the device's own power cap.
    Joint,
}

impl HoldKnob {
    /// The knob's name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
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

/// A request to run a command while the power of its GPUs, summed up, is kept below a cap.
#[derive(Clone, Debug)]
pub struct HoldRequest {
    /// The GPUs, by index or UUID; `None` for all.
    pub device: Option<String>,
    /// Whether several GPUs get the same power cap or caps of their own.
    pub scope: SettingsScope,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The cap at the start; if `None`, the cap is read from the cap file.
    pub cap: Option<CapSource>,
    /// The path of a file to which another program writes the cap.
    pub cap_file: Option<PathBuf>,
    /// What the cap binds.
    pub cap_on: CapOn,
    /// The settings that `hold` adjusts to stay below the cap.
    pub knob: HoldKnob,
    /// The control algorithm that chooses the settings; the knob's default algorithm if `None`.
    pub mode: Option<HoldMode>,
    /// The goal to optimise among the settings below the cap.
    pub goal: HoldGoal,
    /// The batch sizes that `hold` may use.
    pub batches: Vec<u64>,
    /// The batch size, if the knob does not choose it.
    pub fixed_batch: Option<u64>,
    /// The bound on the p99 latency of an item; no bound if `None`.
    pub latency_p99: Option<Seconds>,
    /// The share of the cap below which the papers' algorithms raise the setting; a default if `None`.
    pub alpha: Option<Ratio>,
    /// The minimum number of batches in a measurement window; a default if `None`.
    pub window: Option<u32>,
    /// The time after a change of setting whose readings are ignored; a default if `None`.
    pub settle: Option<Seconds>,
    /// The time after which a setting that exceeded a limit is tried again; a default if `None`.
    pub expiry: Option<Seconds>,
    /// The shorter time after which a setting is tried again that was good many times and failed once; a
    /// default if `None`.
    pub probe: Option<Seconds>,
    /// The user is warned if the program has not asked for a batch size within this time; a default if
    /// `None`.
    pub patience: Option<Seconds>,
    /// The power sensor to use; the one with the finest time resolution if `None`.
    pub sensor: Option<SensorKind>,
    /// Whether writes to the device are forbidden.
    pub read_only: bool,
    /// Whether standard output is reserved for the result document; the command's output then goes to standard error.
    pub keep_stdout: bool,
}

impl HoldRequest {
    /// The requested control algorithm, or the default one of the knob. It is an error if the algorithm
    /// cannot set the knob.
    pub(super) fn mode(&self) -> Result<HoldMode, HoldError> {
        let default = match self.knob {
            HoldKnob::Batch | HoldKnob::CoreClock | HoldKnob::PowerCap => HoldMode::Robust,
            HoldKnob::Joint | HoldKnob::Auto => HoldMode::Joint,
        };
        let Some(mode) = self.mode else {
            return Ok(default);
        };
        let fits = match self.knob {
            HoldKnob::Batch => mode.is_batch_only(),
            HoldKnob::CoreClock | HoldKnob::PowerCap => {
                matches!(mode, HoldMode::Robust | HoldMode::Dvfs | HoldMode::StepUp)
            }
            HoldKnob::Joint | HoldKnob::Auto => mode == HoldMode::Joint,
        };
        match fits {
            true => Ok(mode),
            false => Err(HoldError::ModeForKnob {
                mode,
                knob: self.knob,
            }),
        }
    }

    /// The device setting that the knob adjusts, with the values it can have. For several GPUs a power cap is the sum of
    /// theirs, between `caps`, and a clock is one that at least one of them has.
    pub(super) fn device_knob(
        &self,
        devices: &[Descriptor],
        caps: Option<(Watts, Watts)>,
    ) -> Result<DeviceKnob, DevicesError> {
        let clock = || clock_knob(devices);
        let cap = || cap_knob(devices, caps);
        let knob = match self.knob {
            HoldKnob::Batch => return Ok(DeviceKnob::None),
            HoldKnob::CoreClock => clock(),
            HoldKnob::PowerCap | HoldKnob::Auto => cap(),
            HoldKnob::Joint => clock().or_else(cap).map(thin_out),
        };
        let needed = match self.knob {
            HoldKnob::PowerCap | HoldKnob::Auto => Knob::PowerCap,
            _ => Knob::CoreClock,
        };
        let lacks = devices.iter().find(|device| device.knob(needed).is_none());
        knob.filter(|knob| knob.level_count() > 0)
            .ok_or_else(|| DevicesError::NotSupported {
                device: lacks
                    .or(devices.first())
                    .map_or(String::new(), |device| device.name.clone()),
                problem: format!(
                    "this GPU does not support the knob {}: use the knob batch",
                    self.knob
                ),
            })
    }

    /// Rejects options that contradict each other, before anything starts.
    pub(super) fn check(&self) -> Result<(), HoldError> {
        if let Some(mode) = self.mode.filter(|mode| mode.follows_paper()) {
            let feature = match (self.latency_p99, self.goal) {
                (Some(_), _) => Some("latency bound"),
                (None, HoldGoal::EnergyPerItem) => Some("objective energy-per-item"),
                _ if self.cap_on != CapOn::Reading => Some("cap on a mean, only on every reading"),
                _ => None,
            };
            if let Some(feature) = feature {
                return Err(HoldError::ModeWithout { mode, feature });
            }
        }
        if self.fixed_batch.is_some()
            && matches!(
                self.knob,
                HoldKnob::Auto | HoldKnob::Batch | HoldKnob::Joint
            )
        {
            return Err(HoldError::FixedBatch(self.knob));
        }
        if !matches!(self.knob, HoldKnob::Auto | HoldKnob::Batch) && self.read_only {
            return Err(HoldError::ReadOnly(self.knob));
        }
        match self.cap {
            None if self.cap_file.is_none() => Err(HoldError::NoCap),
            Some(CapSource::Device) if self.knob == HoldKnob::PowerCap => {
                Err(HoldError::KnobSetsCap)
            }
            Some(CapSource::Device) if self.cap_file.is_some() => Err(HoldError::TwoCaps),
            _ => Ok(()),
        }
    }
}

/// The core clocks that all devices support or come close to; `None` if one device's clock cannot be set.
pub(super) fn clock_knob(devices: &[Descriptor]) -> Option<DeviceKnob> {
    let levels = devices
        .iter()
        .map(|device| match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => Some(match &range.domain {
                Domain::Levels(levels) => levels.clone(),
                Domain::Range { min, max } => steps(min.get(), max.get(), 15.0),
            }),
            _ => None,
        });
    let levels: Vec<Vec<_>> = levels.collect::<Option<_>>()?;
    Some(DeviceKnob::CoreClock(ascending(&levels.concat())))
}

/// The power caps of a device, or the sums of the caps of several; `None` if one device's cap cannot be set.
fn cap_knob(devices: &[Descriptor], caps: Option<(Watts, Watts)>) -> Option<DeviceKnob> {
    if let [device] = devices {
        let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
            return None;
        };
        return Some(match &range.domain {
            Domain::Levels(levels) => DeviceKnob::PowerCap(ascending(levels)),
            Domain::Range { min, max } => DeviceKnob::PowerCap(steps(min.get(), max.get(), 5.0)),
        });
    }
    let (lowest, highest) = caps?;
    let step = 5.0 * devices.len() as f64;
    Some(DeviceKnob::PowerCap(steps(
        lowest.get(),
        highest.get(),
        step,
    )))
}

/// The values in ascending order, each once.
fn ascending<Q: Copy + PartialOrd>(levels: &[Q]) -> Vec<Q> {
    let mut levels = levels.to_vec();
    levels.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    levels.dedup_by(|a, b| a == b);
    levels
}

/// Reduces the values of a knob to at most 24, for a search over two knobs: values a few percent apart are
/// enough.
fn thin_out(knob: DeviceKnob) -> DeviceKnob {
    /// The maximum number of values for each knob.
    const MAX_LEVELS: usize = 24;
    /// Picks at most [`MAX_LEVELS`] evenly spaced values.
    fn pick<Q: Copy>(levels: Vec<Q>) -> Vec<Q> {
        let last = levels.len() - 1;
        if last < MAX_LEVELS {
            return levels;
        }
        (0..MAX_LEVELS)
            .map(|n| levels[n * last / (MAX_LEVELS - 1)])
            .collect()
    }
    match knob {
        DeviceKnob::CoreClock(levels) if !levels.is_empty() => DeviceKnob::CoreClock(pick(levels)),
        DeviceKnob::PowerCap(levels) if !levels.is_empty() => DeviceKnob::PowerCap(pick(levels)),
        knob => knob,
    }
}

/// The values from `min` to `max` at distance `step`; `min` and `max` are included.
fn steps<Q: Quantity>(min: f64, max: f64, step: f64) -> Vec<Q> {
    let count = ((max - min) / step).floor().max(0.0) as usize;
    let mut values: Vec<f64> = (0..=count).map(|n| min + n as f64 * step).collect();
    if values.last().is_some_and(|last| max - last > 1e-9) {
        values.push(max);
    }
    values.into_iter().map(Q::from_base).collect()
}

/// The default batch sizes: the powers of two up to 256.
pub fn default_batches() -> Vec<u64> {
    (0..=8).map(|power| 1 << power).collect()
}

/// The power cap at the start of `hold`, from the request, the cap file or the device.
pub(super) fn first_cap(
    source: Option<CapSource>,
    from_file: Option<Result<Watts, String>>,
    enforced: Option<Watts>,
) -> Result<Watts, HoldError> {
    match (source, from_file) {
        (_, Some(Ok(cap))) => Ok(cap),
        (Some(CapSource::Power(cap)), _) => Ok(cap),
        (Some(CapSource::Device), _) => enforced.ok_or(HoldError::NoDeviceLimit),
        (None, Some(Err(problem))) => Err(HoldError::CapFile(problem)),
        (None, None) => Err(HoldError::NoCap),
    }
}
