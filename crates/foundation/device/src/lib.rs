//! What draws power, how it is read, what can be set: descriptors and traits, no implementation.
//!
//! A backend is a [`Host`] of one vendor: it lists and opens [`Device`]s (reading) and [`Actuator`]s (writing). Reading and
//! writing are apart because the writer may live in another process: everything that crosses to it
//! ([`Settings`], [`Applied`], [`WriteError`]) is plain, serialisable and free of vendors' types.
//!
//! Promises: identity is the UUID; time is an injected [`Clock`]; what a device cannot do is a named
//! state, never zero.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod clock;
mod descriptor;
mod error;
mod host;
mod knob;
mod reading;
mod sensor;
mod settings;
mod traits;

pub use clock::{Clock, Moment, MonotonicClock, VirtualClock};
pub use descriptor::{Descriptor, DeviceId, DeviceKind};
pub use error::{OpenError, ReadError, WriteError};
pub use host::{
    Controlled, Host, HostDevice, HostError, MigSlices, SelectError, Selector, select_devices,
};
pub use knob::{Domain, Knob, KnobDescriptor, KnobRange};
pub use reading::{Amount, Drained, PowerLimits, Reading, Throttle};
pub use sensor::{Scope, SensorDescriptor, SensorKind};
pub use settings::{Applied, AppliedKnob, Settings, Shortfall};
pub use traits::{Actuator, Device};
