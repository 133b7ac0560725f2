//! The length of a whole training, to which the results of short runs are scaled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Joules, Seconds};

use crate::{DevicePhase, Energies, Energy, PhaseResult, Point, RunEnding, RunResult, Study};

/// The length of a whole training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TrainingLength {
    /// This number of items, at every batch size.
    Items(u64),
    /// This number of epochs with this number of items each.
    Epochs(u64, u64),
    /// The number of iterations at each batch size.
    Iterations(BTreeMap<u64, u64>),
}

/// Why the results cannot be scaled to a whole training.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrainingError {
    /// A run did not report its items.
    #[error(
        "the length of the training is known but not the items of a run: report them (docs/reference/link.md), or give --progress"
    )]
    UnknownItems,
    /// The length of the training is not given for this batch size.
    #[error("the training has no number of iterations for a batch of {0}: add {0}=ITERATIONS")]
    NoIterations(u64),
    /// The batch size of a configuration is unknown.
    #[error(
        "iterations need a batch size: sweep it with --axis batch=..., or give the training as EPOCHSxITEMS"
    )]
    UnknownBatch,
}

impl TrainingLength {
    /// The number of items of a whole training at this batch size.
    fn items(&self, batch: Option<u64>) -> Result<f64, TrainingError> {
        Ok(match self {
            Self::Items(items) => *items as f64,
            Self::Epochs(epochs, items) => *epochs as f64 * *items as f64,
            Self::Iterations(by_batch) => {
                let batch = batch.ok_or(TrainingError::UnknownBatch)?;
                let iterations = by_batch.get(&batch);
                let iterations = iterations.ok_or(TrainingError::NoIterations(batch))?;
                *iterations as f64 * batch as f64
            }
        })
    }
}

impl std::str::FromStr for TrainingLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| {
            let digits = part.trim().replace('_', "");
            let number = digits.parse().ok().filter(|number: &u64| *number > 0);
            number.ok_or_else(|| {
                format!(
                    "`{}` is not a number in the length of a training: write EPOCHSxITEMS such as 90x1281167, ITEMS, or \
                     BATCH=ITERATIONS,...",
                    part.trim()
                )
            })
        };
        if text.contains('=') {
            let pairs = text.split(',').map(|pair| {
                let (batch, iterations) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((number(batch)?, number(iterations)?))
            });
            return pairs.collect::<Result<_, String>>().map(Self::Iterations);
        }
        match text.split_once('x') {
            Some((epochs, items)) => Ok(Self::Epochs(number(epochs)?, number(items)?)),
            None => number(text).map(Self::Items),
        }
    }
}

impl std::fmt::Display for TrainingLength {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Items(items) => write!(f, "{items}"),
            Self::Epochs(epochs, items) => write!(f, "{epochs}x{items}"),
            Self::Iterations(by_batch) => {
                let pairs = by_batch
                    .iter()
                    .map(|(batch, count)| format!("{batch}={count}"));
                f.write_str(&pairs.collect::<Vec<_>>().join(","))
            }
        }
    }
}

impl TryFrom<String> for TrainingLength {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TrainingLength> for String {
    fn from(length: TrainingLength) -> Self {
        length.to_string()
    }
}

impl Study {
    /// Scales every run to a whole training of this length, so that all configurations are compared for the same work.
    pub fn for_training(mut self, length: &TrainingLength) -> Result<Self, TrainingError> {
        let of_workload = self.subject.workload.batch;
        let mut lengths = Vec::new();
        for point in self.points.iter_mut().chain([&mut self.reference]) {
            let batch = point.configuration.batch().or(of_workload);
            lengths.push(length.items(batch)? as u64);
            scale_point(point, batch, length)?;
        }
        lengths.dedup();
        self.subject.workload.items = match lengths.as_slice() {
            [items] => Some(*items),
            _ => None,
        };
        Ok(self)
    }
}

/// Scales the runs of a point to a whole training.
fn scale_point(
    point: &mut Point,
    batch: Option<u64>,
    length: &TrainingLength,
) -> Result<(), TrainingError> {
    for run in &mut point.runs {
        if let RunEnding::Done(result) = &mut run.end {
            let items = length.items(batch)?;
            let done = result.items.filter(|done| *done > 0.0);
            *result = scaled(result, items / done.ok_or(TrainingError::UnknownItems)?);
            result.items = Some(items);
        }
    }
    Ok(())
}

/// A run whose time and energies are multiplied by a factor.
fn scaled(run: &RunResult, factor: f64) -> RunResult {
    let times = |time: Seconds| time * factor;
    let joules = |energy: Joules| energy * factor;
    let energy = |energy: Energy| Energy {
        value: joules(energy.value),
        interval95: energy
            .interval95
            .map(|(low, high)| (joules(low), joules(high))),
    };
    let mut scaled = run.clone();
    scaled.time = times(run.time);
    scaled.energies = Energies {
        job_gpus: run.energies.job_gpus.map(energy),
        all_gpus: run.energies.all_gpus.map(energy),
        node: run.energies.node.map(energy),
    };
    for device in &mut scaled.devices {
        device.energy = device.energy.map(energy);
    }
    for phase in &mut scaled.phases {
        let by_device = phase.by_device.iter().map(|one| DevicePhase {
            time: times(one.time),
            energy: one.energy.map(joules),
        });
        *phase = PhaseResult {
            name: std::mem::take(&mut phase.name),
            time: times(phase.time),
            energy: phase.energy.map(joules),
            by_device: by_device.collect(),
        };
    }
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for text in ["90x1281167", "115200000", "64=72368,128=36184"] {
            let length: TrainingLength = text.parse().unwrap();
            assert_eq!(length.to_string(), text);
        }
        for text in [
            "", "90x", "x", "64=", "=3", "-1", "0x5", "90*128", "64=1;2=3",
        ] {
            assert!(text.parse::<TrainingLength>().is_err(), "{text}");
        }
    }

    #[test]
    fn iterations_belong_to_batches() {
        let length: TrainingLength = "64=100,128=50".parse().unwrap();
        assert_eq!(length.items(Some(64)), Ok(6400.0));
        assert_eq!(length.items(Some(128)), Ok(6400.0));
        assert_eq!(length.items(Some(32)), Err(TrainingError::NoIterations(32)));
        assert_eq!(length.items(None), Err(TrainingError::UnknownBatch));
    }
}
