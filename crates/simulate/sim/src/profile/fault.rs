//! Simulated faults of a GPU.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Knob, SensorKind};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::{Problem, check, problem};

/// A simulated fault. Times count from the creation of the GPU. All keys are in one structure, as in the
/// file, so an error message can name their line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    kind: FaultKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knob: Option<Knob>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensor: Option<SensorKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<Joules>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Watts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    every: Option<Seconds>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<Ratio>,
}

/// How a simulated fault spoils the readings of the use of a GPU's units (NVML's GPM).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitUseFault {
    /// The GPU does not support them.
    Unsupported,
    /// Another client uses them, and every sample fails.
    InUse,
    /// Samples can be taken, but there are no values between them.
    NoData,
    /// The values are not numbers.
    NotANumber,
}

/// The kind of a simulated fault, as in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FaultKind {
    Lost,
    WriteDenied,
    StuckSensor,
    CounterWraps,
    BoardLimit,
    SensorGain,
    NoThrottleTimes,
    ThrottleTimesReset,
    NoUnitUse,
    UnitUseInUse,
    UnitUseNoData,
    UnitUseNan,
}

impl Fault {
    /// A fault of this kind, without its parameters.
    fn new(kind: FaultKind) -> Self {
        Self {
            kind,
            after: None,
            knob: None,
            sensor: None,
            at: None,
            limit: None,
            every: None,
            gain: None,
        }
    }

    /// A fault that makes the GPU stop responding from this age on.
    pub fn lost(after: Seconds) -> Self {
        Self {
            after: Some(after),
            ..Self::new(FaultKind::Lost)
        }
    }

    /// A fault that prevents the knob from being set.
    pub fn write_denied(knob: Knob) -> Self {
        Self {
            knob: Some(knob),
            ..Self::new(FaultKind::WriteDenied)
        }
    }

    /// A fault that makes the sensor repeat its last value from this age on.
    pub fn stuck_sensor(sensor: SensorKind, after: Seconds) -> Self {
        Self {
            sensor: Some(sensor),
            after: Some(after),
            ..Self::new(FaultKind::StuckSensor)
        }
    }

    /// A fault that makes the energy counter restart from zero whenever it reaches this value.
    pub fn counter_wraps(at: Joules) -> Self {
        Self {
            at: Some(at),
            ..Self::new(FaultKind::CounterWraps)
        }
    }

    /// A fault that makes the board enforce at most this power, even if a higher cap is set.
    pub fn board_limit(limit: Watts) -> Self {
        Self {
            limit: Some(limit),
            ..Self::new(FaultKind::BoardLimit)
        }
    }

    /// A fault that makes all sensors show this share of the true power and energy.
    pub fn sensor_gain(gain: Ratio) -> Self {
        Self {
            gain: Some(gain),
            ..Self::new(FaultKind::SensorGain)
        }
    }

    /// A fault that makes the throttle times unsupported.
    pub fn no_throttle_times() -> Self {
        Self::new(FaultKind::NoThrottleTimes)
    }

    /// A fault that makes the throttle times restart from zero whenever they reach this value.
    pub fn throttle_times_reset(every: Seconds) -> Self {
        Self {
            every: Some(every),
            ..Self::new(FaultKind::ThrottleTimesReset)
        }
    }

    /// A fault that spoils the readings of the use of the GPU's units.
    pub fn unit_use(fault: UnitUseFault) -> Self {
        Self::new(match fault {
            UnitUseFault::Unsupported => FaultKind::NoUnitUse,
            UnitUseFault::InUse => FaultKind::UnitUseInUse,
            UnitUseFault::NoData => FaultKind::UnitUseNoData,
            UnitUseFault::NotANumber => FaultKind::UnitUseNan,
        })
    }

    /// How this fault spoils the readings of the use of the GPU's units; `None` if it does not.
    pub fn unit_use_fault(&self) -> Option<UnitUseFault> {
        match self.kind {
            FaultKind::NoUnitUse => Some(UnitUseFault::Unsupported),
            FaultKind::UnitUseInUse => Some(UnitUseFault::InUse),
            FaultKind::UnitUseNoData => Some(UnitUseFault::NoData),
            FaultKind::UnitUseNan => Some(UnitUseFault::NotANumber),
            _ => None,
        }
    }

    /// The throttle time that the GPU shows after it has counted this one; `None` if it shows none.
    pub fn throttle_time(&self, counted: Seconds) -> Option<Seconds> {
        match (self.kind, self.every) {
            (FaultKind::NoThrottleTimes, _) => None,
            (FaultKind::ThrottleTimesReset, Some(every)) => {
                Some(Seconds::new(counted.get() % every.get()))
            }
            _ => Some(counted),
        }
    }

    /// The power cap that the board enforces with this fault, if `cap` is set.
    pub fn enforced_cap(&self, cap: Watts) -> Watts {
        match (self.kind, self.limit) {
            (FaultKind::BoardLimit, Some(limit)) => cap.min(limit),
            _ => cap,
        }
    }

    /// The share of the true power and energy that the sensors show with this fault.
    pub fn shown_share(&self) -> Ratio {
        match (self.kind, self.gain) {
            (FaultKind::SensorGain, Some(gain)) => gain,
            _ => Ratio::new(1.0),
        }
    }

    /// Whether the GPU no longer responds at this age.
    pub fn is_lost(&self, age: Seconds) -> bool {
        self.kind == FaultKind::Lost && self.after.is_some_and(|after| age >= after)
    }

    /// Whether this fault prevents the knob from being set.
    pub fn denies(&self, knob: Knob) -> bool {
        self.kind == FaultKind::WriteDenied && self.knob == Some(knob)
    }

    /// Whether the sensor is stuck at this age.
    pub fn is_stuck(&self, sensor: SensorKind, age: Seconds) -> bool {
        self.kind == FaultKind::StuckSensor
            && self.sensor == Some(sensor)
            && self.after.is_some_and(|after| age >= after)
    }

    /// The value that the energy counter shows after it has counted this energy.
    pub fn wrap_counter(&self, counted: Joules) -> Joules {
        match (self.kind, self.at) {
            (FaultKind::CounterWraps, Some(at)) => Joules::new(counted.get() % at.get()),
            _ => counted,
        }
    }

    /// Checks that the fault has the keys that its kind needs; `index` is its position in the profile.
    pub(super) fn check(&self, index: usize) -> Result<(), Problem> {
        let needed = match self.kind {
            FaultKind::Lost => vec![("after", self.after.is_some())],
            FaultKind::WriteDenied => vec![("knob", self.knob.is_some())],
            FaultKind::StuckSensor => vec![
                ("sensor", self.sensor.is_some()),
                ("after", self.after.is_some()),
            ],
            FaultKind::CounterWraps => vec![("at", self.at.is_some())],
            FaultKind::BoardLimit => vec![("limit", self.limit.is_some())],
            FaultKind::ThrottleTimesReset => vec![("every", self.every.is_some())],
            FaultKind::SensorGain => vec![("gain", self.gain.is_some())],
            FaultKind::NoThrottleTimes
            | FaultKind::NoUnitUse
            | FaultKind::UnitUseInUse
            | FaultKind::UnitUseNoData
            | FaultKind::UnitUseNan => Vec::new(),
        };
        if let Some((key, _)) = needed.iter().find(|(_, is_given)| !is_given) {
            let message = format!("missing key `{key}`");
            return Err(problem(format!("fault.{index}"), message));
        }
        if let Some(after) = self.after {
            check::not_negative(&format!("fault.{index}.after"), after)?;
        }
        if let Some(limit) = self.limit {
            check::positive(&format!("fault.{index}.limit"), limit)?;
        }
        if let Some(every) = self.every {
            check::positive(&format!("fault.{index}.every"), every)?;
        }
        if let Some(gain) = self.gain {
            check::positive(&format!("fault.{index}.gain"), gain)?;
        }
        match self.at {
            Some(at) => check::positive(&format!("fault.{index}.at"), at),
            None => Ok(()),
        }
    }
}
