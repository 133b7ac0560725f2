//! The settings requested of a device, and those in force afterwards.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Megahertz, Watts};

use crate::Knob;

/// The requested values of a device's knobs; a knob without a value is not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The requested power cap; `None` to leave it unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<Watts>,
    /// The clock to which the cores are to be locked; `None` to leave it unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<Megahertz>,
    /// The clock to which the memory is to be locked; `None` to leave it unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<Megahertz>,
}

impl Settings {
    /// Returns a copy that sets only this knob.
    pub fn only(&self, knob: Knob) -> Self {
        let mut part = Self::default();
        match knob {
            Knob::PowerCap => part.power_cap = self.power_cap,
            Knob::CoreClock => part.core_clock = self.core_clock,
            Knob::MemoryClock => part.memory_clock = self.memory_clock,
        }
        part
    }

    /// Returns a copy that does not set this knob.
    pub fn without(&self, knob: Knob) -> Self {
        let mut rest = *self;
        match knob {
            Knob::PowerCap => rest.power_cap = None,
            Knob::CoreClock => rest.core_clock = None,
            Knob::MemoryClock => rest.memory_clock = None,
        }
        rest
    }

    /// Returns a copy in which the values of `other`, where it has some, replace these.
    pub fn with(&self, other: &Self) -> Self {
        Self {
            power_cap: other.power_cap.or(self.power_cap),
            core_clock: other.core_clock.or(self.core_clock),
            memory_clock: other.memory_clock.or(self.memory_clock),
        }
    }

    /// The knobs that have a value, in the order in which they are set: clocks before the power cap.
    pub fn knobs(&self) -> Vec<Knob> {
        let named = [
            (Knob::MemoryClock, self.memory_clock.is_some()),
            (Knob::CoreClock, self.core_clock.is_some()),
            (Knob::PowerCap, self.power_cap.is_some()),
        ];
        let named = named.into_iter().filter(|(_, is)| *is);
        named.map(|(knob, _)| knob).collect()
    }
}

/// Whether two power caps are the same for a device, which may round what is written: NVML counts milliwatts, and
/// processors count steps of usually 1/8 W.
pub fn is_same_cap(one: Watts, other: Watts) -> bool {
    (one - other).get().abs() < 0.5
}

/// The reason why a device enforces a lower value than requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// The device is too hot.
    Thermal,
    /// Another limit of the board is lower than the requested value.
    BoardLimit,
    /// A budget of the node, or the scheduler's cap for the job, is lower than the requested value.
    Ceiling,
    /// The backend gives no reason.
    Unknown,
}

/// The state of a knob after it was set. The enforced value may be lower than the requested one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedKnob<Q> {
    /// The requested value, as read back from the device.
    pub requested: Q,
    /// The value that the device enforces now.
    pub enforced: Q,
    /// The reason why `enforced` is lower than `requested`; `None` if they are equal.
    pub shortfall: Option<Shortfall>,
}

/// The values that the device enforces after [`Settings`] were applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedSettings {
    /// The power cap after it was set; `None` if none was requested.
    pub power_cap: Option<AppliedKnob<Watts>>,
    /// The core clock after it was set; `None` if none was requested.
    pub core_clock: Option<AppliedKnob<Megahertz>>,
    /// The memory clock after it was set; `None` if none was requested.
    pub memory_clock: Option<AppliedKnob<Megahertz>>,
}
