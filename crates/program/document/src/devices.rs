//! The devices of a machine, `sweetspot.devices/1`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::common::SchemaName;

/// The devices of a machine, with their sensors and knobs. Values are in SI units; a key is absent if its value is
/// unknown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Devices {
    /// The name and version of this format.
    #[schemars(extend("const" = SchemaName::DEVICES))]
    pub schema: SchemaName,
    /// The version of the GPU driver; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The GPUs of the machine, and the MIG slices of its GPUs.
    pub devices: Vec<Device>,
    /// The processor packages, their memory and parts, and the power probes of the machine; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host: Vec<HostPart>,
    /// The power meters of the whole machine that the user has named; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<Meter>,
}

/// A power meter of the whole machine, with its observed behaviour.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Meter {
    /// The name of the meter, or what it is, as the user wrote it.
    pub name: String,
    /// The model that the meter reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The present power in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The observed time between two updates, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_period_s: Option<f64>,
    /// The observed smallest step of its power, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution_w: Option<f64>,
    /// The observed smallest step of its energy counter, in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_resolution_j: Option<f64>,
    /// The delay in seconds that was observed against the GPUs' power; absent if their power did not change enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_s: Option<f64>,
    /// The longest delay of this kind of meter, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_delay_s: Option<f64>,
    /// Why the meter cannot be read; absent if it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A processor package, its memory, a part of it, the platform, or a power probe.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostPart {
    /// The identity of the part.
    pub id: String,
    /// The name of the part.
    pub name: String,
    /// What the part is.
    pub kind: HostPartKind,
    /// The name of the zone or channel in the kernel.
    pub zone: String,
    /// How a probe is named as a meter (`--meter`); absent for other parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    /// The package that the part lies in, whose energy includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Whether the energy of the part is added to that of the host.
    pub is_host_energy: bool,
    /// The sensors of the part with their current readings.
    pub sensors: Vec<HostSensor>,
    /// What to do where a sensor may not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
    /// The power caps of the part; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<PowerCaps>,
    /// Whether the power cap is switched on; absent if it cannot be switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_enabled: Option<bool>,
    /// What to do where the power cap may not be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_remedy: Option<&'static str>,
}

/// What a part of a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostPartKind {
    /// A processor package.
    CpuPackage,
    /// The memory beside a package, which the package's energy does not include.
    Dram,
    /// A part of a package, or a zone of which it is unknown what it includes.
    CpuPart,
    /// The platform as its firmware measures it: the packages and more.
    Platform,
    /// A power probe.
    Probe,
}

/// A sensor of a part of the host.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HostSensor {
    /// The quantity that the sensor measures.
    pub kind: SensorKind,
    /// The current reading of the sensor.
    #[serde(flatten)]
    pub reading: Reading,
}

/// A GPU, or a MIG slice of a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Device {
    /// The index by which `--device` selects the device.
    pub index: u32,
    /// The UUID of the device.
    pub uuid: String,
    /// The product name of the device.
    pub name: String,
    /// The architecture of the GPU.
    pub architecture: String,
    /// The UUID of the GPU to which this slice belongs; absent for a whole GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The size of the device's memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The power caps of the device: current, default and possible ones.
    pub power_cap_w: PowerCaps,
    /// The core clocks that can be set, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clocks_mhz: Option<Vec<f64>>,
    /// The memory clocks that can be set, in MHz; absent if every clock of `memory_clock_range_mhz` can be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clocks_mhz: Option<Vec<f64>>,
    /// The range of memory clocks, in MHz, on a device that sets any clock in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock_range_mhz: Option<ClockRange>,
    /// The sensors of the device with their current readings.
    pub sensors: Vec<Sensor>,
}

/// A range of clocks that can all be set.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ClockRange {
    /// The lowest clock in MHz.
    #[schemars(range(min = 0))]
    pub min: f64,
    /// The highest clock in MHz.
    #[schemars(range(min = 0))]
    pub max: f64,
    /// The clock in MHz if none is set.
    #[schemars(range(min = 0))]
    pub default: f64,
}

/// The power caps of a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PowerCaps {
    /// The power cap that was requested last, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<f64>,
    /// The power cap that the device enforces, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforced: Option<f64>,
    /// The default power cap in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<f64>,
    /// The lowest power cap that can be set, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The highest power cap that can be set, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// A sensor of a device and its present reading.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sensor {
    /// What the sensor measures.
    pub kind: SensorKind,
    /// The source of the sensor's readings, such as a function of the driver.
    pub source: String,
    /// The time between two updates of the sensor's reading, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_period_s: Option<f64>,
    /// The present reading, or why there is none.
    #[serde(flatten)]
    pub reading: Reading,
}

/// The quantity that a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SensorKind {
    /// The energy since an unspecified moment in the past; only differences have a meaning.
    EnergyCounter,
    /// The power, averaged over a long time.
    AveragePower,
    /// The power, averaged over a short time.
    InstantPower,
    /// Power samples with their times, from a buffer of the driver.
    BufferedPower,
    /// The power of the memory alone, averaged over a long time.
    MemoryPower,
    /// The temperature of the chip.
    Temperature,
    /// The clock of the cores.
    CoreClock,
    /// The clock of the memory.
    MemoryClock,
    /// The share of time in which a program ran on the device.
    Utilisation,
    /// The reasons why the device does not run faster.
    ThrottleReasons,
}

/// The reading of a sensor; exactly one of the keys is present.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Reading {
    /// The energy in joules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// The power in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_w: Option<f64>,
    /// The temperature in degrees Celsius.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// The clock in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_mhz: Option<f64>,
    /// The share of time in which a program ran on the device, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The reasons why the device does not run faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttle: Option<Throttle>,
    /// Why the sensor has no reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The reasons why a device does not run faster; several may be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Throttle {
    /// Whether nothing runs on the device.
    pub idle: bool,
    /// Whether the power cap limits the device.
    pub power_cap: bool,
    /// Whether a user or program has limited the clock.
    pub clock_setting: bool,
    /// Whether the device is too hot.
    pub thermal: bool,
    /// Whether the board limits the device for another reason.
    pub hardware: bool,
}
