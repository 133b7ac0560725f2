//! Parts that several documents share.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// The name and version of a document's format, the value of its key `schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct SchemaName(&'static str);

impl SchemaName {
    /// A sensor that was compared with a meter.
    pub const CALIBRATE: Self = Self("sweetspot.calibrate/1");
    /// Several studies, compared with the first.
    pub const COMPARE: Self = Self("sweetspot.compare/1");
    /// A named counter of the service.
    pub const COUNTER: Self = Self("sweetspot.counter/1");
    /// The GPUs of a machine, their sensors and their knobs.
    pub const DEVICES: Self = Self("sweetspot.devices/1");
    /// The checks of a machine by `sweetspot doctor`.
    pub const DOCTOR: Self = Self("sweetspot.doctor/1");
    /// A profile that was fitted to a study.
    pub const FIT: Self = Self("sweetspot.fit/1");
    /// What happens on a machine now.
    pub const LIVE: Self = Self("sweetspot.live/1");
    /// A run whose power `sweetspot hold` limited to a cap.
    pub const HOLD: Self = Self("sweetspot.hold/1");
    /// The name of the format of `sweetspot budget`.
    pub const BUDGET: Self = Self("sweetspot.budget/1");
    /// The operations of a neural network and the bytes it reads and writes.
    pub const NETWORK: Self = Self("sweetspot.network/1");
    /// Search strategies that were replayed on recorded measurements.
    pub const REPLAY: Self = Self("sweetspot.replay/1");
    /// A published study and its reproduction.
    pub const REPRODUCE: Self = Self("sweetspot.reproduce/1");
    /// A published study on the user's own GPUs.
    pub const REPRODUCE_ON_GPU: Self = Self("sweetspot.reproduce-on-gpu/1");
    /// Measured runs of a command.
    pub const RUN: Self = Self("sweetspot.run/1");
    /// A study: its configurations and their measured results.
    pub const STUDY: Self = Self("sweetspot.study/1");
    /// A training run that was tuned while it ran.
    pub const TUNE: Self = Self("sweetspot.tune/1");

    /// The name and version as written in documents.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// A number that is written without a decimal point if it is whole: `150`, not `150.0`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// A number without a fractional part.
    Whole(i64),
    /// A number with a fractional part, or one too large to be written as a whole number.
    Fraction(f64),
}

/// The largest number that is written as a whole one; an `f64` cannot represent every larger integer.
const LARGEST_WHOLE: f64 = 1e15;

impl From<f64> for Number {
    fn from(value: f64) -> Self {
        match value.fract() == 0.0 && value.abs() < LARGEST_WHOLE {
            true => Self::Whole(value as i64),
            false => Self::Fraction(value),
        }
    }
}

impl JsonSchema for Number {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "number"})
    }
}

/// A number or a text, such as the value of a workload's parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NumberOrText {
    /// A value that is a number.
    Number(Number),
    /// A value that is a text.
    Text(String),
}

impl JsonSchema for NumberOrText {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "NumberOrText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["number", "string"]})
    }
}

/// An object whose keys are data, such as the names of phases, in a fixed order.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Named<T> {
    /// Whether there are no values.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// If two values have the same key, the later value replaces the earlier one, at the earlier one's position.
impl<T> FromIterator<(String, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(pairs: I) -> Self {
        let mut all: Vec<(String, T)> = Vec::new();
        for (key, value) in pairs {
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => all.push((key, value)),
            }
        }
        Self(all)
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("NamedOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}

/// The mean of several runs and its uncertainty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The mean of the runs.
    #[schemars(range(min = 0))]
    pub mean: f64,
    /// The standard deviation of the runs; absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub sd: Option<f64>,
    /// The ends of the mean's 95 % confidence interval; absent for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// How an energy was measured; absent for other quantities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
}

/// The value of each knob in a configuration; an absent knob is at its default.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Settings {
    /// The power cap in watts; absent if it is at its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap_w: Option<PowerCap>,
    /// The core clock in MHz; absent if it is at its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub core_clock_mhz: Option<Number>,
    /// The memory clock in MHz; absent if it is at its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub memory_clock_mhz: Option<Number>,
    /// The power cap of each processor package in watts; absent if it was not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub cpu_power_cap_w: Option<Number>,
    /// The parameters of the workload, by their names.
    #[serde(flatten)]
    pub parameters: Named<NumberOrText>,
    /// The number of GPUs that the job uses.
    #[schemars(range(min = 1))]
    pub gpus: u64,
}

/// Power caps in watts: one number if all GPUs have the same cap, or a list with one cap for each GPU.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PowerCap {
    /// The cap of every GPU.
    All(#[schemars(range(min = 0))] Number),
    /// The cap of each GPU, in their order.
    Each(#[schemars(length(min = 2), inner(range(min = 0)))] Vec<Number>),
}

/// The devices whose energy the results contain: the job's GPUs, all GPUs, or the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnergyOf {
    /// The GPUs that the job uses.
    JobGpus,
    /// All GPUs of the machine, including idle ones.
    AllGpus,
    /// The whole machine, measured at the wall socket.
    Node,
}

/// The state of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// All runs of the configuration succeeded.
    Ok,
    /// A run of the configuration failed.
    Failed,
    /// A run of the configuration exceeded its time limit.
    Timeout,
    /// The memory of the device was too small.
    OutOfMemory,
    /// The configuration has not been run.
    NotRun,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Every configuration was run.
    Complete,
    /// No other configuration is expected to be noticeably better.
    Sure,
    /// The limit on the number of runs was reached.
    Spent,
    /// The reference configuration failed, so no other configuration can be compared with it.
    ReferenceFailed,
}

/// The machine on which the measurement was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Machine {
    /// The name and release of the operating system's kernel.
    pub kernel: String,
    /// The model of the processor; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
    /// The number of logical processors.
    pub processors: usize,
    /// The version of the GPU driver; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The version of sweetspot.
    pub sweetspot: String,
    /// Whether the GPUs are simulated.
    pub simulated: bool,
}

/// Relative changes against a reference: 0.05 is 5 % more, -0.05 is 5 % less.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RelativeChange {
    /// The change of time, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    /// The change of energy, as a fraction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy: Option<f64>,
}

/// A time and an energy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimeAndEnergy {
    /// The time in seconds.
    pub time_s: f64,
    /// The energy in joules.
    pub energy_j: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_no_fraction() {
        let text = |value: f64| serde_json::to_string(&Number::from(value)).unwrap();
        assert_eq!(text(150.0), "150");
        assert_eq!(text(-0.5), "-0.5");
        assert_eq!(text(1e15), "1000000000000000.0");
        assert_eq!(text(f64::NAN), "null");
    }

    #[test]
    fn named_values_keep_their_order_and_the_last_of_equal_keys() {
        let pairs = [("b", 1), ("a", 2), ("b", 3)].map(|(key, value)| (key.to_owned(), value));
        let named: Named<i32> = pairs.into_iter().collect();
        assert_eq!(serde_json::to_string(&named).unwrap(), r#"{"b":3,"a":2}"#);
    }
}
