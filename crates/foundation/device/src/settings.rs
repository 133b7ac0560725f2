//! What is asked of a device, whole, and what it makes of it.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Megahertz, Watts};

use crate::Knob;

/// The wanted state of a device's knobs; a knob that is not named stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The most power it may draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<Watts>,
    /// The clock its cores are locked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<Megahertz>,
    /// The clock its memory is locked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<Megahertz>,
}

impl Settings {
    /// The part of it that concerns one knob.
    pub fn only(&self, knob: Knob) -> Self {
        let mut part = Self::default();
        match knob {
            Knob::PowerCap => part.power_cap = self.power_cap,
            Knob::CoreClock => part.core_clock = self.core_clock,
            Knob::MemoryClock => part.memory_clock = self.memory_clock,
        }
        part
    }

    /// The knobs it names, clocks before the cap.
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

/// Why a device enforces less than was requested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shortfall {
    /// It is too hot.
    Thermal,
    /// Another limit of the board is lower.
    BoardLimit,
    /// The backend does not say.
    Unknown,
}

/// A knob after it was set: requested as read back, and enforced, which may be lower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppliedKnob<Q> {
    /// The value read back.
    pub requested: Q,
    /// The value in force.
    pub enforced: Q,
    /// Why the two differ, if they do.
    pub shortfall: Option<Shortfall>,
}

/// What became of [`Settings`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Applied {
    /// Of the power cap, if one was asked for.
    pub power_cap: Option<AppliedKnob<Watts>>,
    /// Of the core clock, if one was asked for.
    pub core_clock: Option<AppliedKnob<Megahertz>>,
    /// Of the memory clock, if one was asked for.
    pub memory_clock: Option<AppliedKnob<Megahertz>>,
}
