//! The identity of a device and what it offers.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Bytes;

use crate::{Knob, KnobDescriptor, SensorDescriptor, SensorKind};

/// The identity of a device: its UUID, as the vendor writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(String);

impl DeviceId {
    /// Takes the vendor's text.
    pub fn new(uuid: impl Into<String>) -> Self {
        Self(uuid.into())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A graphics processor, or a slice of one.
    Gpu,
    /// A processor package.
    CpuPackage,
    /// A whole machine behind a meter.
    Node,
}

/// The properties of a device that do not change while it is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The device's UUID.
    pub id: DeviceId,
    /// The product's name.
    pub name: String,
    /// The device's kind.
    pub kind: DeviceKind,
    /// The backend that lists it: `nvml`, `sim`.
    pub backend: String,
    /// The device whose energy it shares: for a slice, the whole GPU.
    pub parent: Option<DeviceId>,
    /// The size of its memory, where it has its own.
    pub memory: Option<Bytes>,
    /// The sensors that it has.
    pub sensors: Vec<SensorDescriptor>,
    /// The knobs that can be set on it.
    pub knobs: Vec<KnobDescriptor>,
}

impl Descriptor {
    /// The knob's description, if the device has it.
    pub fn knob(&self, knob: Knob) -> Option<&KnobDescriptor> {
        self.knobs.iter().find(|described| described.knob() == knob)
    }

    /// The sensor's description, if the device has it.
    pub fn sensor(&self, kind: SensorKind) -> Option<&SensorDescriptor> {
        self.sensors.iter().find(|sensor| sensor.kind == kind)
    }
}
