//! The meters that a simulated node offers.

/// A meter that a simulated node offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterKind {
    /// A Yokogawa WT310E over TCP.
    Wt310,
    /// A Yokogawa WT310E over a serial line.
    Wt310Serial,
    /// A Shelly of the second generation.
    Shelly,
    /// A Shelly of the first generation.
    ShellyGen1,
    /// A plug with the firmware Tasmota.
    Tasmota,
    /// A plug with an old version of Tasmota.
    TasmotaOld,
    /// A board controller with Redfish in its new schema.
    Redfish,
    /// A board controller with Redfish in its old schema.
    RedfishOld,
}

impl MeterKind {
    /// All meters.
    pub const ALL: [Self; 8] = [
        Self::Wt310,
        Self::Wt310Serial,
        Self::Shelly,
        Self::ShellyGen1,
        Self::Tasmota,
        Self::TasmotaOld,
        Self::Redfish,
        Self::RedfishOld,
    ];

    /// The name of the kind, as in a list of meters or faults.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wt310 => "wt310",
            Self::Wt310Serial => "wt310-serial",
            Self::Shelly => "shelly",
            Self::ShellyGen1 => "shelly-gen1",
            Self::Tasmota => "tasmota",
            Self::TasmotaOld => "tasmota-old",
            Self::Redfish => "redfish",
            Self::RedfishOld => "redfish-old",
        }
    }

    /// The name under which the meter is listed for the command.
    pub const fn given_name(self) -> &'static str {
        match self {
            Self::Wt310 => "wall",
            Self::Wt310Serial => "wall-serial",
            Self::Shelly => "plug",
            Self::ShellyGen1 => "plug-gen1",
            Self::Tasmota => "tasmota",
            Self::TasmotaOld => "tasmota-old",
            Self::Redfish => "bmc",
            Self::RedfishOld => "bmc-old",
        }
    }

    /// The environment variable that names the meter to the command.
    pub fn variable(self) -> String {
        let name = self.name().replace('-', "_");
        format!("SWEETSPOT_METER_{}", name.to_ascii_uppercase())
    }

    /// The first word of the meter's specification.
    pub(crate) const fn family(self) -> &'static str {
        match self {
            Self::Wt310 | Self::Wt310Serial => "wt310",
            Self::Shelly | Self::ShellyGen1 => "shelly",
            Self::Tasmota | Self::TasmotaOld => "tasmota",
            Self::Redfish | Self::RedfishOld => "redfish",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The names of all kinds, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}
