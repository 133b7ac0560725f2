//! The result of a run, or the mean of several runs.

use std::collections::BTreeMap;

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Summary;

use crate::Hour;

/// The result of a run, or the mean of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The time from the start to the end of the measured part of the run.
    pub time: Seconds,
    /// The energy of the part of the machine that is compared, such as the GPUs of the job; absent if it is unknown.
    pub energy: Option<Joules>,
    /// The number of items that the run processed; absent if it is unknown.
    pub items: Option<f64>,
    /// The number of GPUs that the run used.
    pub gpus: u64,
    /// The hour of the day at which the run started; only an hourly carbon intensity needs it.
    pub start: Option<Hour>,
    /// The values that the workload reported, by name, in SI units unless the name ends in another unit
    /// (`latency_ms`). A study adds its settings (`power_cap` in watts), which limits can then refer to.
    pub values: BTreeMap<String, f64>,
}

impl Outcome {
    /// Creates an outcome on one GPU with this time and, if known, this energy.
    pub fn new(time: Seconds, energy: impl Into<Option<Joules>>) -> Self {
        Self {
            time,
            energy: energy.into(),
            items: None,
            gpus: 1,
            start: None,
            values: BTreeMap::new(),
        }
    }

    /// The mean of several runs; each value is averaged over the runs that have it. The starting hour is that of the
    /// first run, because hours of the day have no mean.
    pub fn mean(runs: &[Self]) -> Option<Self> {
        let first = runs.first()?;
        let mean = |value: &dyn Fn(&Self) -> Option<f64>| {
            Summary::of(&runs.iter().filter_map(value).collect::<Vec<_>>()).map(|set| set.mean)
        };
        let mut values = BTreeMap::new();
        for name in runs.iter().flat_map(|run| run.values.keys()) {
            if !values.contains_key(name)
                && let Some(mean) = mean(&|run| run.values.get(name).copied())
            {
                values.insert(name.clone(), mean);
            }
        }
        Some(Self {
            time: Seconds::new(mean(&|run| Some(run.time.get()))?),
            energy: mean(&|run| run.energy.map(Joules::get)).map(Joules::new),
            items: mean(&|run| run.items),
            gpus: first.gpus,
            start: first.start,
            values,
        })
    }

    /// Returns the outcome with time and energy scaled in proportion to this number of items; unchanged if the
    /// outcome's own number of items is unknown.
    pub(crate) fn for_items(&self, items: f64) -> Self {
        match self.items {
            Some(done) if done != items => Self {
                time: self.time * (items / done),
                energy: self.energy.map(|energy| energy * (items / done)),
                items: Some(items),
                ..self.clone()
            },
            _ => self.clone(),
        }
    }
}
