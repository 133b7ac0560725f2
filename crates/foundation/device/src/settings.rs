//! Requested settings of a device, and their effect.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Megahertz, Watts};

use crate::Knob;

/// The requested values of a device's knobs; a knob without a value is not changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The limit on the device's power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<Watts>,
    /// The clock to which the cores are locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<Megahertz>,
    /// The clock to which the memory is locked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<Megahertz>,
}

impl Settings {
    /// The settings of one knob only.
    pub fn only(&self, knob: Knob) -> Self {
        let mut part = Self::default();
        match knob {
            Knob::PowerCap => part.power_cap = self.power_cap,
            Knob::CoreClock => part.core_clock = self.core_clock,
            Knob::MemoryClock => part.memory_clock = self.memory_clock,
        }
        part
    }

    /// The knobs that have a value, clocks before the cap.
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

/// The reason why a device enforces less than was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// The device is too hot.
    Thermal,
    /// Another limit of the board is lower.
    BoardLimit,
    /// The backend gives no reason.
    Unknown,
}

/// A knob after it was set: the requested value as read back, and the enforced one, which may be lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedKnob<Q> {
    /// The value read back.
    pub requested: Q,
    /// The value in force.
    pub enforced: Q,
    /// The reason for the difference, if there is one.
    pub shortfall: Option<Shortfall>,
}

/// The effect of [`Settings`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AppliedSettings {
    /// The power cap, if one was requested.
    pub power_cap: Option<AppliedKnob<Watts>>,
    /// The core clock, if one was requested.
    pub core_clock: Option<AppliedKnob<Megahertz>>,
    /// The memory clock, if one was requested.
    pub memory_clock: Option<AppliedKnob<Megahertz>>,
}
