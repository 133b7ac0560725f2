//! What is broken about a GPU.

use serde::{Deserialize, Serialize};
use sweetspot_device::{Knob, SensorKind};
use sweetspot_quantity::{Joules, Seconds, Watts};

use super::{Problem, check, problem};

/// Something that goes wrong. Times count from the moment the GPU is made. It is flat, as it is written,
/// so that a mistake in it is found at its line.
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FaultKind {
    Lost,
    WriteDenied,
    StuckSensor,
    CounterWraps,
    BoardLimit,
}

impl Fault {
    fn of(kind: FaultKind) -> Self {
        Self {
            kind,
            after: None,
            knob: None,
            sensor: None,
            at: None,
            limit: None,
        }
    }

    /// The GPU no longer answers from this age on.
    pub fn lost(after: Seconds) -> Self {
        Self {
            after: Some(after),
            ..Self::of(FaultKind::Lost)
        }
    }

    /// A knob may not be set.
    pub fn write_denied(knob: Knob) -> Self {
        Self {
            knob: Some(knob),
            ..Self::of(FaultKind::WriteDenied)
        }
    }

    /// A sensor repeats its last value from this age on.
    pub fn stuck_sensor(sensor: SensorKind, after: Seconds) -> Self {
        Self {
            sensor: Some(sensor),
            after: Some(after),
            ..Self::of(FaultKind::StuckSensor)
        }
    }

    /// The energy counter starts again from zero when it has counted so much.
    pub fn counter_wraps(at: Joules) -> Self {
        Self {
            at: Some(at),
            ..Self::of(FaultKind::CounterWraps)
        }
    }

    /// The board enforces no more than this, whatever cap is set.
    pub fn board_limit(limit: Watts) -> Self {
        Self {
            limit: Some(limit),
            ..Self::of(FaultKind::BoardLimit)
        }
    }

    /// What is in force of a cap.
    pub fn enforced(&self, cap: Watts) -> Watts {
        match (self.kind, self.limit) {
            (FaultKind::BoardLimit, Some(limit)) => cap.min(limit),
            _ => cap,
        }
    }

    /// Whether the GPU is gone at this age.
    pub fn is_lost(&self, age: Seconds) -> bool {
        self.kind == FaultKind::Lost && self.after.is_some_and(|after| age >= after)
    }

    /// Whether the knob may not be set.
    pub fn denies(&self, knob: Knob) -> bool {
        self.kind == FaultKind::WriteDenied && self.knob == Some(knob)
    }

    /// Whether the sensor is stuck at this age.
    pub fn sticks(&self, sensor: SensorKind, age: Seconds) -> bool {
        self.kind == FaultKind::StuckSensor
            && self.sensor == Some(sensor)
            && self.after.is_some_and(|after| age >= after)
    }

    /// What the counter shows of what it has counted.
    pub fn wrapped(&self, counted: Joules) -> Joules {
        match (self.kind, self.at) {
            (FaultKind::CounterWraps, Some(at)) => Joules::new(counted.get() % at.get()),
            _ => counted,
        }
    }

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
        };
        if let Some((key, _)) = needed.iter().find(|(_, there)| !there) {
            let message = format!("missing key `{key}`");
            return Err(problem(format!("fault.{index}"), message));
        }
        if let Some(after) = self.after {
            check::not_negative(&format!("fault.{index}.after"), after)?;
        }
        if let Some(limit) = self.limit {
            check::positive(&format!("fault.{index}.limit"), limit)?;
        }
        match self.at {
            Some(at) => check::positive(&format!("fault.{index}.at"), at),
            None => Ok(()),
        }
    }
}
