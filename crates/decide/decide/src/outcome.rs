//! What a run, or the mean of several, came to.

use std::collections::BTreeMap;

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Summary;

use crate::Hour;

/// What a run, or the mean of several, came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From start to end.
    pub time: Seconds,
    /// Of the devices that count, where known.
    pub energy: Option<Joules>,
    /// Done, where known.
    pub items: Option<f64>,
    /// Devices used.
    pub gpus: u64,
    /// When it started, where known and where it matters.
    pub start: Option<Hour>,
    /// What the workload reported, by name, in SI units unless the name ends in another (`latency_ms`).
    /// A study may add its settings (`power_cap` in watts), so that limits can name them.
    pub values: BTreeMap<String, f64>,
}

impl Outcome {
    /// Time and energy on one device, and nothing else known.
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

    /// The mean of some runs; each value is that of the runs that know it. The start is that of the
    /// first, for an hour has no mean.
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

    /// The same run, had it done so many items: time and energy grow with them. As it is where its
    /// items are not known.
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
