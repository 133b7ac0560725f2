//! A value for each knob, and the axes along which values are tried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::KnobKind;
use sweetspot_device::Settings;
use sweetspot_quantity::{Megahertz, Watts};

/// The name of the workload parameter that is the batch size.
pub const BATCH_PARAMETER: &str = "batch";

/// One combination of values to run: device settings, number of GPUs and workload parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Configuration {
    /// The power caps: empty for the default cap, one cap for all GPUs of the job, or one for each GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power_caps: Vec<Watts>,
    /// The clock at which the cores are locked; absent if they are not locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<Megahertz>,
    /// The clock at which the memory is locked; absent if it is not locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<Megahertz>,
    /// The power cap of each processor package; absent if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_power_cap: Option<Watts>,
    /// The number of GPUs of the job.
    pub gpus: u64,
    /// The values of the workload's parameters, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
}

impl Configuration {
    /// Creates the configuration with default settings on this number of GPUs.
    pub fn on(gpus: u64) -> Self {
        Self {
            gpus,
            ..Self::default()
        }
    }

    /// Returns this configuration with this batch size.
    pub fn with_batch(mut self, batch: u64) -> Self {
        self.parameters
            .insert(BATCH_PARAMETER.to_owned(), batch.to_string());
        self
    }

    /// Returns this configuration with these settings on each GPU.
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.power_caps = settings.power_cap.into_iter().collect();
        self.core_clock = settings.core_clock;
        self.memory_clock = settings.memory_clock;
        self
    }

    /// The settings of the GPU with this index in the job.
    pub fn settings(&self, gpu: usize) -> Settings {
        let caps = &self.power_caps;
        Settings {
            power_cap: caps.get(gpu).or(caps.last()).copied(),
            core_clock: self.core_clock,
            memory_clock: self.memory_clock,
        }
    }

    /// The settings of each processor package.
    pub fn package_settings(&self) -> Settings {
        Settings {
            power_cap: self.cpu_power_cap,
            ..Settings::default()
        }
    }

    /// Whether a setting of a GPU or of a processor package is to be changed.
    pub fn sets_devices(&self) -> bool {
        let mut gpus = 0..self.gpus.max(1) as usize;
        self.cpu_power_cap.is_some() || gpus.any(|gpu| self.settings(gpu) != Settings::default())
    }

    /// The power cap; `None` if it is not set or differs between the GPUs.
    pub fn power_cap(&self) -> Option<Watts> {
        let first = self.power_caps.first()?;
        let same = self.power_caps.iter().all(|cap| cap == first);
        same.then_some(*first)
    }

    /// The batch size; `None` if the configuration has no numeric parameter `batch`.
    pub fn batch(&self) -> Option<u64> {
        self.parameters.get(BATCH_PARAMETER)?.parse().ok()
    }

    /// A text that identifies the configuration, from which seeds are derived. It is the same on every machine and
    /// contains all digits of every value.
    pub(crate) fn label(&self) -> String {
        let caps: Vec<String> = self
            .power_caps
            .iter()
            .map(|cap| cap.get().to_string())
            .collect();
        let clock = |clock: Option<Megahertz>| clock.map(|clock| clock.get().to_string());
        let batch = self.parameters.get(BATCH_PARAMETER).cloned();
        let knobs = [
            ("power_cap_w", (!caps.is_empty()).then(|| caps.join("/"))),
            ("core_clock_mhz", clock(self.core_clock)),
            ("memory_clock_mhz", clock(self.memory_clock)),
            (
                "cpu_power_cap_w",
                self.cpu_power_cap.map(|cap| cap.get().to_string()),
            ),
            (BATCH_PARAMETER, batch),
            ("gpus", Some(self.gpus.to_string())),
        ];
        let knobs = knobs
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        let others = self
            .parameters
            .iter()
            .filter(|(name, _)| *name != BATCH_PARAMETER);
        let others = others.map(|(name, value)| format!("{name}={value}"));
        knobs.chain(others).collect::<Vec<_>>().join(";")
    }
}

/// A knob or parameter that a study can vary.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The number of GPUs that the job uses.
    Gpus,
    /// The power cap of each device.
    PowerCap,
    /// The core clock of each device.
    CoreClock,
    /// The memory clock of each device.
    MemoryClock,
    /// The power cap of each processor package.
    CpuPowerCap,
    /// The parameter of the workload that has this name.
    Parameter(String),
}

impl Axis {
    /// The name of the axis as users write it: `power-cap`, `batch`.
    pub fn name(&self) -> &str {
        match self {
            Self::Gpus => "gpus",
            Self::PowerCap => "power-cap",
            Self::CoreClock => "core-clock",
            Self::MemoryClock => "memory-clock",
            Self::CpuPowerCap => "cpu-power-cap",
            Self::Parameter(name) => name,
        }
    }

    /// The axis with this name; a name that is not a knob of a device is a parameter.
    pub fn named(name: &str) -> Self {
        match name {
            "gpus" => Self::Gpus,
            "power-cap" | "power_cap" => Self::PowerCap,
            "core-clock" | "core_clock" => Self::CoreClock,
            "memory-clock" | "memory_clock" => Self::MemoryClock,
            "cpu-power-cap" | "cpu_power_cap" => Self::CpuPowerCap,
            other => Self::Parameter(other.to_owned()),
        }
    }

    /// The kind of knob that the axis is for a search strategy.
    pub fn knob_kind(&self) -> KnobKind {
        match self {
            Self::PowerCap => KnobKind::PowerCap,
            Self::CoreClock => KnobKind::CoreClock,
            _ => KnobKind::Level,
        }
    }

    /// The name of the axis in JSON and CSV output, with its unit: `power_cap_w`, `batch`.
    pub fn column(&self) -> &str {
        match self {
            Self::Gpus => "gpus",
            Self::PowerCap => "power_cap_w",
            Self::CoreClock => "core_clock_mhz",
            Self::MemoryClock => "memory_clock_mhz",
            Self::CpuPowerCap => "cpu_power_cap_w",
            Self::Parameter(name) => name,
        }
    }

    /// A configuration's value on this axis as text, without a unit; `None` if the configuration leaves it at its
    /// default.
    pub fn text(&self, configuration: &Configuration) -> Option<String> {
        match self {
            Self::Gpus => Some(configuration.gpus.to_string()),
            Self::PowerCap => {
                let all = configuration.power_caps.iter();
                let caps: Vec<String> = match configuration.power_cap() {
                    Some(cap) => vec![cap.get().to_string()],
                    None => all.map(|cap| cap.get().to_string()).collect(),
                };
                (!caps.is_empty()).then(|| caps.join("/"))
            }
            Self::CoreClock => configuration
                .core_clock
                .map(|clock| clock.get().to_string()),
            Self::MemoryClock => configuration
                .memory_clock
                .map(|clock| clock.get().to_string()),
            Self::CpuPowerCap => configuration.cpu_power_cap.map(|cap| cap.get().to_string()),
            Self::Parameter(name) => configuration.parameters.get(name).cloned(),
        }
    }

    /// A configuration's value on this axis as a number; `None` if it is not a number or is left at its default.
    pub fn number(&self, configuration: &Configuration) -> Option<f64> {
        let number: f64 = self.text(configuration)?.parse().ok()?;
        number.is_finite().then_some(number)
    }
}

impl std::fmt::Display for Axis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
