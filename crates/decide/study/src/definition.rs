//! A study as its user defines it, on the command line or in a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Limit, Objective, Preference};
use sweetspot_measure::{MethodChoice, RunWindow};
use sweetspot_quantity::{Celsius, Seconds};

use crate::until_sure::MIN_RUNS;
use crate::{AxisText, EnergyOf, Order, TrainingLength, Until, text_field};

/// The definition of a study: its workload, the values to try and how to run it; absent fields have defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Definition {
    /// The command to run: the program and its arguments, with placeholders such as `{batch}`; absent for a simulated
    /// workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The folder in which the command runs; absent for the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The real GPUs to use, by index or UUID, separated by commas; absent for all visible GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,

    /// The simulated GPUs to use in place of real ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulate: Option<String>,
    /// The profile of the simulated host that contains the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The neural network that the simulated GPUs run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether the network is trained or used for inference: `train` or `infer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The convolution algorithm of the simulated network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conv_algorithm: Option<String>,
    /// The dataset that the simulated network reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The batch size of the simulated network, if it is not an axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// The number of items that each run processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
    /// The length of a whole training, to which the results are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<TrainingLength>,

    /// The power caps to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_cap: Option<AxisText>,
    /// The core clocks to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_clock: Option<AxisText>,
    /// The memory clocks to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_clock: Option<AxisText>,
    /// The power caps of processor packages to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_power_cap: Option<AxisText>,
    /// The numbers of GPUs to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<AxisText>,
    /// The configuration that all others are compared with, if it is not the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,

    /// The part of the machine whose energy is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_of: Option<EnergyOf>,
    /// The power meters of the whole machine, by name or spec; their energies are added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meter: Option<Vec<String>>,
    /// Whether the processors and their memory are measured too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<bool>,
    /// The names of calibrations that are applied to the energies of devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Vec<String>>,
    /// What the study reproduces on the user's own GPU: `PAPER:NETWORK:GPU`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reproduces: Option<String>,
    /// The number of runs of each configuration; the smallest number if `until` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// When a configuration needs no more runs: the half-width of the 95 % interval as a share of the mean, or `sure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    /// The maximum number of runs of a configuration if `until` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<u32>,
    /// The order in which the runs are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The strategy that chooses the configurations to run; without one, all are run.
    #[serde(skip_serializing_if = "Option::is_none", with = "text_field::optional")]
    pub strategy: Option<StrategyName>,
    /// The objective of the strategy and of the recommendation.
    #[serde(skip_serializing_if = "Option::is_none", with = "text_field::optional")]
    pub objective: Option<Objective>,
    /// Which of the settings that may be best is recommended.
    #[serde(skip_serializing_if = "Option::is_none", with = "text_field::optional")]
    pub prefer: Option<Preference>,
    /// The limits that the recommendation must meet.
    #[serde(
        skip_serializing_if = "Option::is_none",
        with = "text_field::optional_list"
    )]
    pub limit: Option<Vec<Limit>>,
    /// The maximum number of runs if a strategy is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evaluations: Option<u32>,
    /// The folders of earlier studies that the strategy may learn from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<Vec<String>>,
    /// The seed from which all random numbers of the study are derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// The number of warm-up runs before the first run of each configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<u32>,
    /// The settling time between a change of device settings and the start of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle: Option<Seconds>,
    /// The temperature to which every GPU of the job cools down before a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cool_to: Option<Celsius>,
    /// The longest time that a run may take; a longer one counts as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Seconds>,
    /// The part of a run that is measured; absent for the whole run.
    #[serde(skip_serializing_if = "Option::is_none", with = "text_field::optional")]
    pub window: Option<RunWindow>,
    /// Where progress is found in the command's output: the name of a format, or a regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// The address of the metrics page on which a server counts tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
    /// The method by which energy is measured; absent for the best available one.
    #[serde(skip_serializing_if = "Option::is_none", with = "text_field::optional")]
    pub method: Option<MethodChoice>,
    /// Whether the power samples of each run are stored in files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<bool>,
    /// Whether changes of device settings are forbidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,

    /// For each parameter of the workload that is an axis, by name: the values to try.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub axis: BTreeMap<String, AxisText>,
}

/// The longest settling time and timeout that a definition may have, in seconds: one day.
const MAX_DURATION_S: f64 = 86_400.0;

/// Why a study's definition cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DefinitionError(String);

impl Definition {
    /// Creates the study of the papers on a simulated GPU: every power cap, five runs each.
    pub fn simulated(gpu: &str, network: &str) -> Self {
        Self {
            simulate: Some(gpu.to_owned()),
            network: Some(network.to_owned()),
            ..Self::default()
        }
    }

    /// Parses a definition from the text of a TOML file.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let line = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or_default();
                1 + before.matches('\n').count()
            });
            let message = error.message().trim().replace('\n', " ");
            DefinitionError(match line {
                Some(line) => format!("line {line}: {message}"),
                None => message,
            })
        })
    }

    /// Writes the definition as the text of a TOML file.
    pub fn to_toml(&self) -> Result<String, DefinitionError> {
        toml::to_string(self).map_err(|error| DefinitionError(error.to_string()))
    }

    /// Returns this definition with its absent fields taken from `other`.
    pub fn or(self, other: Self) -> Self {
        let mut axis = other.axis;
        axis.extend(self.axis);
        Self {
            command: self.command.or(other.command),
            folder: self.folder.or(other.folder),
            device: self.device.or(other.device),
            simulate: self.simulate.or(other.simulate),
            node: self.node.or(other.node),
            network: self.network.or(other.network),
            mode: self.mode.or(other.mode),
            conv_algorithm: self.conv_algorithm.or(other.conv_algorithm),
            dataset: self.dataset.or(other.dataset),
            batch: self.batch.or(other.batch),
            items: self.items.or(other.items),
            training: self.training.or(other.training),
            power_cap: self.power_cap.or(other.power_cap),
            core_clock: self.core_clock.or(other.core_clock),
            memory_clock: self.memory_clock.or(other.memory_clock),
            cpu_power_cap: self.cpu_power_cap.or(other.cpu_power_cap),
            gpus: self.gpus.or(other.gpus),
            reference: self.reference.or(other.reference),
            energy_of: self.energy_of.or(other.energy_of),
            meter: self.meter.or(other.meter),
            host: self.host.or(other.host),
            calibration: self.calibration.or(other.calibration),
            reproduces: self.reproduces.or(other.reproduces),
            repeat: self.repeat.or(other.repeat),
            until: self.until.or(other.until),
            at_most: self.at_most.or(other.at_most),
            order: self.order.or(other.order),
            strategy: self.strategy.or(other.strategy),
            objective: self.objective.or(other.objective),
            prefer: self.prefer.or(other.prefer),
            limit: self.limit.or(other.limit),
            evaluations: self.evaluations.or(other.evaluations),
            prior: self.prior.or(other.prior),
            seed: self.seed.or(other.seed),
            warmup: self.warmup.or(other.warmup),
            settle: self.settle.or(other.settle),
            cool_to: self.cool_to.or(other.cool_to),
            timeout: self.timeout.or(other.timeout),
            window: self.window.or(other.window),
            progress: self.progress.or(other.progress),
            metrics: self.metrics.or(other.metrics),
            method: self.method.or(other.method),
            samples: self.samples.or(other.samples),
            read_only: self.read_only.or(other.read_only),
            axis,
        }
    }

    /// Checks that every value is within its range and that no two contradict each other.
    pub fn check(&self) -> Result<(), DefinitionError> {
        let bad = |text: &str| Err(DefinitionError(text.to_owned()));
        let is_outside = |time: Option<Seconds>, least: f64| {
            time.is_some_and(|time| !(least..=MAX_DURATION_S).contains(&time.get()))
        };
        if self
            .command
            .as_ref()
            .is_some_and(|words| words.first().is_none_or(String::is_empty))
        {
            return bad("the command is empty: give a program and its arguments");
        }
        if self
            .repeat
            .is_some_and(|repeat| !(1..=10_000).contains(&repeat))
        {
            return bad("repeat must be 1 to 10000 runs of each configuration");
        }
        if self
            .at_most
            .is_some_and(|most| !(2..=10_000).contains(&most))
        {
            return bad("at-most must be 2 to 10000 runs of each configuration");
        }
        if let Some(Until::Precision(share)) = self.until
            && !(share.get() > 0.0 && share.get() < 1.0)
        {
            return bad("until must be more than 0 % and less than 100 %");
        }
        if self.until.is_none() && self.at_most.is_some() {
            return bad("at-most needs until: it is the maximum number of runs that until adds to");
        }
        if self.at_most.is_some_and(|most| most < self.repeat()) {
            return bad("at-most must not be less than the number of runs of each configuration");
        }
        if self.is_until_sure()
            && matches!(self.objective, Some(Objective::Cost | Objective::Carbon))
        {
            return bad(
                "until sure cannot be used for cost or carbon, whose prices may change later: use the objective energy or eds:K",
            );
        }
        if self.evaluations.is_some_and(|most| most < 2) {
            return bad("evaluations must be at least 2: the reference and one more run");
        }
        if self.cpu_power_cap.is_some() && self.command.is_none() {
            return bad(
                "cpu-power-cap needs a command: simulated studies have no processors to cap",
            );
        }
        if self.cpu_power_cap.is_some() && self.energy_of != Some(EnergyOf::Node) {
            return bad(
                "cpu-power-cap changes the energy of the processors, which the energy of the GPUs does not include: use energy-of node",
            );
        }
        if self.strategy.is_some() && self.until.is_some() {
            return bad(
                "until cannot be used with a strategy, which chooses itself what to repeat: remove one of them",
            );
        }
        if self.strategy.is_none() && (self.evaluations.is_some() || self.prior.is_some()) {
            return bad("evaluations and prior need a strategy: add one, or remove them");
        }
        if self.warmup.is_some_and(|warmup| warmup > 1_000) {
            return bad("warmup must be at most 1000 runs");
        }
        if is_outside(self.settle, 0.0) {
            return bad("settle must be from 0 to one day");
        }
        if is_outside(self.timeout, 1e-3) {
            return bad("timeout must be more than 0 and at most one day");
        }
        if self
            .cool_to
            .is_some_and(|cool| !(0.0..=120.0).contains(&cool.get()))
        {
            return bad("cool-to must be from 0 to 120 degrees Celsius");
        }
        if self.batch == Some(0) || self.items == Some(0) {
            return bad("batch and items must be at least 1");
        }
        Ok(())
    }

    /// Whether the objective, which is EDP if absent, decides which runs are made.
    pub fn objective_chooses_runs(&self) -> bool {
        self.strategy.is_some() || self.is_until_sure()
    }

    /// Whether runs are added until the recommendation is certain.
    pub fn is_until_sure(&self) -> bool {
        matches!(self.until, Some(Until::Certainty(_)))
    }

    /// The number of runs of each configuration.
    pub fn repeat(&self) -> u32 {
        match self.until {
            Some(Until::Certainty(_)) => self.repeat.unwrap_or(MIN_RUNS).max(MIN_RUNS),
            _ => self.repeat.unwrap_or(5),
        }
    }

    /// The seed from which all random numbers of the study are derived.
    pub fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The settling time between a change of device settings and the run; the default is enough for a GPU to change its
    /// clock, which takes 0.2 s.
    pub fn settle(&self) -> Seconds {
        self.settle.unwrap_or(Seconds::new(0.5))
    }

    /// Whether changes of device settings are forbidden.
    pub fn read_only(&self) -> bool {
        self.read_only.unwrap_or(false)
    }

    /// Whether the power samples of each run are stored in files.
    pub fn samples(&self) -> bool {
        self.samples.unwrap_or(true)
    }
}
