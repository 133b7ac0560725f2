//! The forms of a workload: by mode, convolution algorithm and data set.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds};

use super::workload::{Mode, WorkloadProfile, whole};

/// A way of doing convolutions, against the work that is given for the GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvAlgorithm {
    /// `gemm`, `fft`, `winograd`.
    pub name: String,
    /// Of all device work.
    #[serde(default = "whole")]
    pub work: Ratio,
    /// Of the device memory that an item takes.
    #[serde(default = "whole")]
    pub memory: Ratio,
    /// Of the switching power.
    #[serde(default = "whole")]
    pub switching: Ratio,
}

/// A data set: what the host has to do for each item of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dataset {
    /// `imagenet`, `caltech`.
    pub name: String,
    /// In place of the `host` given for the GPUs.
    pub host: Seconds,
}

/// Which form of a workload is meant, where there are several and the user says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Training or inference.
    pub mode: Option<Mode>,
    /// How convolutions are done.
    pub conv_algorithm: Option<String>,
    /// What it is fed with.
    pub dataset: Option<String>,
}

/// A form that the workload does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariantError {
    /// It has no forms of this kind.
    #[error("has no choice of {0}: leave it out")]
    NoChoice(&'static str),
    /// It has others.
    #[error("knows no {what} `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// `convolution algorithm` or `data set`.
        what: &'static str,
        /// As asked for.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
}

impl WorkloadProfile {
    /// The workload in one of its forms, the usual one where nothing is said: only that one is left in it.
    pub fn in_form(&self, variant: &Variant) -> Result<Self, VariantError> {
        let mut form = self.clone();
        let algorithm = chosen(
            "convolution algorithm",
            variant.conv_algorithm.as_deref(),
            &self.conv_algorithms,
            |algorithm| &algorithm.name,
        )?;
        let dataset = chosen(
            "data set",
            variant.dataset.as_deref(),
            &self.datasets,
            |dataset| &dataset.name,
        )?;
        if let Some(algorithm) = algorithm {
            form.memory.per_item = form.memory.per_item * algorithm.memory;
            for on in &mut form.on {
                on.core = on.core * algorithm.work;
                on.memory = on.memory * algorithm.work;
                on.switching = on.switching * algorithm.switching.get();
            }
        }
        if let Some(dataset) = dataset {
            for on in &mut form.on {
                on.host = dataset.host;
            }
        }
        form.conv_algorithms = algorithm.into_iter().cloned().collect();
        form.datasets = dataset.into_iter().cloned().collect();
        // What is left is in force already.
        for algorithm in &mut form.conv_algorithms {
            (algorithm.work, algorithm.memory, algorithm.switching) = (whole(), whole(), whole());
        }
        Ok(form)
    }
}

fn chosen<'a, T>(
    what: &'static str,
    asked: Option<&str>,
    all: &'a [T],
    name: impl Fn(&T) -> &String,
) -> Result<Option<&'a T>, VariantError> {
    let Some(asked) = asked else {
        return Ok(all.first());
    };
    if all.is_empty() {
        return Err(VariantError::NoChoice(what));
    }
    match all.iter().find(|one| name(one) == asked) {
        Some(found) => Ok(Some(found)),
        None => Err(VariantError::Unknown {
            what,
            name: asked.to_owned(),
            known: all.iter().map(|one| name(one).clone()).collect(),
        }),
    }
}
