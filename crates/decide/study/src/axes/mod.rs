//! Resolves the axes that a user writes into configurations.

mod error;
mod knob_values;
mod parameters;
mod reference;
mod values;
mod written;

pub use error::AxesError;
pub use knob_values::{AxisError, KnobValues, parse_axis};
pub use written::written_configurations;

use std::collections::BTreeMap;

use sweetspot_device::{Descriptor, Domain, Knob, KnobDescriptor, KnobRange};
use sweetspot_quantity::{Megahertz, Quantity, Watts};

use crate::{Axis, Configuration, Definition};
use values::AxisValues;

/// The maximum number of runs of a study; more are rejected as a probable typing error.
const MAX_RUNS: usize = 1_000_000;

/// The axes of a study with every combination of their values, and the reference.
pub struct ResolvedAxes {
    /// The axes that the study varies.
    pub axes: Vec<Axis>,
    /// Every combination of the axes' values.
    pub configurations: Vec<Configuration>,
    /// The configuration that all others are compared with.
    pub reference: Configuration,
    /// What the user should know about the values: which of them were replaced by supported ones.
    pub notes: Vec<String>,
}

/// The devices and the default parameters of a study, which determine the values that its axes may have.
pub struct SupportedKnobs<'a> {
    /// The devices that the study may use, at least one, in the order in which jobs use them.
    pub devices: &'a [Descriptor],
    /// The processor packages of the machine; empty if they are not set.
    pub packages: &'a [Descriptor],
    /// The devices' names as the user wrote them.
    pub names: &'a [String],
    /// The default value of each parameter of the workload whose default is known, by name.
    pub usual_parameters: BTreeMap<String, String>,
}

impl SupportedKnobs<'_> {
    /// Whether the devices are of several models.
    pub(super) fn is_mixed(&self) -> bool {
        self.names.iter().any(|name| *name != self.names[0])
    }

    /// The supported values and the default of a knob of the first device, or an error if it cannot be set.
    fn range<Q: Quantity>(
        &self,
        knob: Knob,
        pick: impl Fn(&KnobDescriptor) -> Option<&KnobRange<Q>>,
    ) -> Result<&KnobRange<Q>, AxesError> {
        let found = self.devices[0].knob(knob).and_then(pick);
        found.ok_or_else(|| AxesError::NotSettable {
            device: self.devices[0].name.clone(),
            knob,
        })
    }

    /// The supported power caps.
    pub(super) fn caps(&self) -> Result<&KnobRange<Watts>, AxesError> {
        self.range(Knob::PowerCap, |knob| match knob {
            KnobDescriptor::PowerCap(range) => Some(range),
            _ => None,
        })
    }

    /// The supported power caps of processor packages: those that all of them support.
    pub(super) fn cpu_caps(&self) -> Result<KnobRange<Watts>, AxesError> {
        common_cap_range(self.packages).ok_or(AxesError::NoPackageCap)
    }

    /// The supported core clocks.
    pub(super) fn core_clocks(&self) -> Result<&KnobRange<Megahertz>, AxesError> {
        self.range(Knob::CoreClock, |knob| match knob {
            KnobDescriptor::CoreClock(range) => Some(range),
            _ => None,
        })
    }

    /// The supported memory clocks.
    pub(super) fn memory_clocks(&self) -> Result<&KnobRange<Megahertz>, AxesError> {
        self.range(Knob::MemoryClock, |knob| match knob {
            KnobDescriptor::MemoryClock(range) => Some(range),
            _ => None,
        })
    }
}

/// The power caps that all of these devices support, and the lowest of their defaults; `None` if one of them has no cap,
/// or if there is no device.
pub fn common_cap_range(devices: &[Descriptor]) -> Option<KnobRange<Watts>> {
    let mut common: Option<(Watts, Watts, Watts)> = None;
    for device in devices {
        let Some(KnobDescriptor::PowerCap(range)) = device.knob(Knob::PowerCap) else {
            return None;
        };
        let Domain::Range { min, max } = range.domain else {
            return None;
        };
        common = Some(match common {
            None => (min, max, range.default),
            Some((low, high, default)) => (low.max(min), high.min(max), default.min(range.default)),
        });
    }
    let (min, max, default) = common.filter(|(min, max, _)| min <= max)?;
    Some(KnobRange {
        domain: Domain::Range { min, max },
        default,
        readable: true,
    })
}

/// Turns the axes of a definition into configurations that the devices support: every combination of their values, and
/// the reference. The reference has the default settings, the largest number of GPUs on the axis, and the usual value
/// of each parameter (or its first).
pub fn resolve_axes(
    definition: &Definition,
    supported: &SupportedKnobs<'_>,
) -> Result<ResolvedAxes, AxesError> {
    let mut values = AxisValues::read(definition, supported)?;
    let count = values.combination_count();
    if count.saturating_mul(definition.repeat() as usize) > MAX_RUNS {
        return Err(AxesError::TooManyRuns {
            count: count.saturating_mul(definition.repeat() as usize),
            limit: MAX_RUNS,
        });
    }
    let reference = values.reference(definition, supported)?;
    let configurations = values.combinations();
    // A knob that only the reference sets is an axis too, because it distinguishes the reference.
    let knobs = [
        Axis::Gpus,
        Axis::PowerCap,
        Axis::CoreClock,
        Axis::MemoryClock,
        Axis::CpuPowerCap,
    ];
    for axis in knobs {
        let differs = axis.text(&reference) != axis.text(&configurations[0]);
        if differs && !values.axes.contains(&axis) {
            values.axes.push(axis);
        }
    }
    Ok(ResolvedAxes {
        configurations,
        reference,
        axes: values.axes,
        notes: values.notes,
    })
}
