//! The settings of a GPU that are nearest to those that the user wants.

use std::fmt::Display;

use sweetspot_device::{Descriptor, DeviceKind, Domain, Knob, KnobDescriptor, Settings};
use sweetspot_quantity::{Megahertz, Quantity};

use crate::host::DevicesError;

/// The settings that a device supports and that are nearest to `wanted`: a clock between two levels becomes the nearest
/// level. Returns an error if a setting is out of range, before anything is set.
pub fn nearest_settings(device: &Descriptor, wanted: &Settings) -> Result<Settings, DevicesError> {
    let unsupported = |problem: String| DevicesError::NotSupported {
        device: device.name.clone(),
        problem,
    };
    let what = match device.kind {
        DeviceKind::Gpu => "this GPU",
        _ => "this device",
    };
    let missing = |knob: Knob| unsupported(format!("{what} has no {knob} that can be set"));
    let mut settings = *wanted;
    if let Some(cap) = &mut settings.power_cap {
        match device.knob(Knob::PowerCap) {
            Some(KnobDescriptor::PowerCap(range)) => {
                *cap = nearest(Knob::PowerCap, *cap, &range.domain).map_err(unsupported)?;
            }
            _ => return Err(missing(Knob::PowerCap)),
        }
    }
    if let Some(clock) = &mut settings.core_clock {
        match device.knob(Knob::CoreClock) {
            Some(KnobDescriptor::CoreClock(range)) => {
                *clock = nearest(Knob::CoreClock, *clock, &range.domain).map_err(unsupported)?;
            }
            _ => return Err(missing(Knob::CoreClock)),
        }
    }
    if let Some(clock) = &mut settings.memory_clock {
        match device.knob(Knob::MemoryClock) {
            Some(KnobDescriptor::MemoryClock(range)) => {
                *clock = nearest(Knob::MemoryClock, *clock, &range.domain).map_err(unsupported)?;
            }
            _ => return Err(missing(Knob::MemoryClock)),
        }
    }
    Ok(settings)
}

/// The clocks that differ: the knob, the clock that is wanted, and the one that is set.
pub fn changed_clocks(
    wanted: &Settings,
    settings: &Settings,
) -> impl Iterator<Item = (Knob, Megahertz, Megahertz)> {
    let clocks = [
        (Knob::CoreClock, wanted.core_clock, settings.core_clock),
        (
            Knob::MemoryClock,
            wanted.memory_clock,
            settings.memory_clock,
        ),
    ];
    clocks.into_iter().filter_map(|(knob, from, to)| {
        let (from, to) = (from?, to?);
        (from != to).then_some((knob, from, to))
    })
}

/// The supported value nearest to `value`.
fn nearest<Q: Quantity + Display>(knob: Knob, value: Q, domain: &Domain<Q>) -> Result<Q, String> {
    domain.nearest(value).ok_or_else(|| {
        format!(
            "{knob} {value} is not supported: {}",
            domain.describe_nearest(value)
        )
    })
}
