//! Traits and data types for devices that draw power: how to read their sensors and set their knobs. The
//! implementations are in other crates.
//!
//! A backend is a [`Host`] of one vendor: it lists and opens [`Device`]s (reading) and [`Actuator`]s (writing).
//! Reading and writing are separate because the writer may be in another process: everything sent to it
//! ([`Settings`], [`AppliedSettings`], [`WriteError`]) is serialisable and free of vendors' types.
//!
//! Promises: a device is identified by its UUID; time comes from an injected [`Clock`]; a value that a device
//! cannot report is an error or `None`, never zero.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod clock;
mod descriptor;
mod error;
mod host;
mod knob;
mod limits;
mod meter;
mod reading;
mod sensor;
mod settings;
mod traits;

pub use clock::{Clock, Moment, MonotonicClock, VirtualClock};
pub use descriptor::{Descriptor, DeviceId, DeviceKind};
pub use error::{OpenError, ReadError, WriteError};
pub use host::{
    ControllableDevice, Host, HostDevice, HostError, MigSlices, SelectError, Selector,
    select_devices,
};
pub use knob::{Domain, Knob, KnobDescriptor, KnobRange};
pub use limits::{ThrottleTimes, UnitUse, UnitUseReading};
pub use meter::{Meter, MeterGap, MeterProperties, MeterReading, MeterTrace};
pub use reading::{Amount, DrainedSamples, PowerLimits, Reading, Throttle};
pub use sensor::{Scope, SensorDescriptor, SensorKind};
pub use settings::{AppliedKnob, AppliedSettings, Settings, Shortfall, is_same_cap};
pub use traits::{Actuator, Device};
