//! Variants of a workload: training or inference, convolution algorithm and data set.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds};

use super::workload::{Mode, WorkloadProfile, one};

/// A convolution algorithm, with factors by which the profile's work, memory and power are multiplied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvAlgorithm {
    /// The name of the algorithm, such as `gemm`, `fft` or `winograd`.
    pub name: String,
    /// The factor by which all work of the GPU is multiplied.
    #[serde(default = "one")]
    pub work: Ratio,
    /// The factor by which the device memory per item is multiplied.
    #[serde(default = "one")]
    pub memory: Ratio,
    /// The factor by which the cores' switching power is multiplied.
    #[serde(default = "one")]
    pub switching: Ratio,
}

/// A data set, with the host's time for each of its items.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// The name of the data set, such as `imagenet` or `caltech`.
    pub name: String,
    /// The host's time per item, which replaces `host` in the work on each GPU.
    pub host: Seconds,
}

/// The requested variant of a workload; `None` means the workload's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Training or inference; the workload's default if `None`.
    pub mode: Option<Mode>,
    /// The name of the convolution algorithm; the workload's default if `None`.
    pub conv_algorithm: Option<String>,
    /// The name of the data set; the workload's default if `None`.
    pub dataset: Option<String>,
}

/// Why a workload does not have the requested variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    /// The workload's profile has no choice of this kind (convolution algorithm or data set).
    #[error("has no choice of {0}: remove the option")]
    NoChoice(&'static str),
    /// The workload has other convolution algorithms or data sets than the requested one.
    #[error("has no {what} `{name}`: use {}", known.join(", "))]
    Unknown {
        /// The kind of choice: `convolution algorithm` or `data set`.
        what: &'static str,
        /// The name that was requested.
        name: String,
        /// The names of the workload's convolution algorithms or data sets.
        known: Vec<String>,
    },
}

impl WorkloadProfile {
    /// Returns the profile of one variant of the workload, without the other variants.
    pub fn with_variant(&self, variant: &Variant) -> Result<Self, VariantError> {
        let mut workload = self.clone();
        let algorithm = choose(
            "convolution algorithm",
            variant.conv_algorithm.as_deref(),
            &self.conv_algorithms,
            |algorithm| &algorithm.name,
        )?;
        let dataset = choose(
            "data set",
            variant.dataset.as_deref(),
            &self.datasets,
            |dataset| &dataset.name,
        )?;
        if let Some(algorithm) = algorithm {
            workload.memory.per_item = workload.memory.per_item * algorithm.memory;
            for on in &mut workload.on {
                on.core = on.core * algorithm.work;
                on.memory = on.memory * algorithm.work;
                on.switching = on.switching * algorithm.switching.get();
            }
        }
        if let Some(dataset) = dataset {
            for on in &mut workload.on {
                on.host = dataset.host;
            }
        }
        workload.conv_algorithms = algorithm.into_iter().cloned().collect();
        workload.datasets = dataset.into_iter().cloned().collect();
        // The factors of the chosen algorithm are applied above.
        for algorithm in &mut workload.conv_algorithms {
            (algorithm.work, algorithm.memory, algorithm.switching) = (one(), one(), one());
        }
        Ok(workload)
    }
}

/// Finds a convolution algorithm or a data set by its name; if none is requested, returns the first one.
fn choose<'a, T>(
    what: &'static str,
    requested: Option<&str>,
    all: &'a [T],
    name: impl Fn(&T) -> &String,
) -> Result<Option<&'a T>, VariantError> {
    let Some(requested) = requested else {
        return Ok(all.first());
    };
    if all.is_empty() {
        return Err(VariantError::NoChoice(what));
    }
    match all.iter().find(|one| name(one) == requested) {
        Some(found) => Ok(Some(found)),
        None => Err(VariantError::Unknown {
            what,
            name: requested.to_owned(),
            known: all.iter().map(|one| name(one).clone()).collect(),
        }),
    }
}
