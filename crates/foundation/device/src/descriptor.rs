//! Descriptions of devices: identity, kind, sensors and knobs.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Bytes;

use crate::{Knob, KnobDescriptor, SensorDescriptor, SensorKind};

/// The identity of a device: its UUID, as the vendor writes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceId(String);

impl DeviceId {
    /// Creates an identity from the UUID as the vendor writes it.
    pub fn new(uuid: impl Into<String>) -> Self {
        Self(uuid.into())
    }

    /// The UUID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a device is: a GPU, a part of the machine around it, or a whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A GPU, or a MIG slice of one.
    Gpu,
    /// A CPU package: everything in one socket.
    CpuPackage,
    /// The memory beside a CPU package, which the package's own energy does not include.
    Dram,
    /// A part of a CPU package, such as its cores, or a zone of which it is unknown what it includes.
    CpuPart,
    /// The platform as its firmware measures it: the packages and more.
    Platform,
    /// A power probe on a rail, a power supply or a board, which may overlap with other devices.
    Probe,
    /// A whole machine, measured by an external power meter.
    Node,
}

impl DeviceKind {
    /// Whether the energy of such a device is a summand of the host's: packages and the memory beside them. All others
    /// lie within these or overlap with them.
    pub const fn is_host_energy(self) -> bool {
        matches!(self, Self::CpuPackage | Self::Dram)
    }
}

/// The properties of a device that do not change while it is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The device's UUID.
    pub id: DeviceId,
    /// The product name, such as `NVIDIA H200`.
    pub name: String,
    /// Whether this is a GPU, a part of the machine around it, or a whole machine.
    pub kind: DeviceKind,
    /// The name of the backend that lists this device: `nvml`, `sim`, `powercap` or `hwmon`.
    pub backend: String,
    /// For a MIG slice, the GPU that it is part of, whose energy counter and settings it shares; for a part of a
    /// package, the package; `None` for a whole device.
    pub parent: Option<DeviceId>,
    /// The size of the device's own memory; `None` if it has none.
    pub memory: Option<Bytes>,
    /// The sensors that can be read on this device.
    pub sensors: Vec<SensorDescriptor>,
    /// The knobs that can be set on this device.
    pub knobs: Vec<KnobDescriptor>,
}

impl Descriptor {
    /// The range and default of a knob; `None` if the device does not have this knob.
    pub fn knob(&self, knob: Knob) -> Option<&KnobDescriptor> {
        self.knobs.iter().find(|described| described.knob() == knob)
    }

    /// The properties of a sensor; `None` if the device does not have this sensor.
    pub fn sensor(&self, kind: SensorKind) -> Option<&SensorDescriptor> {
        self.sensors.iter().find(|sensor| sensor.kind == kind)
    }
}
