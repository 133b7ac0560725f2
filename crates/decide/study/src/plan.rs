//! Which runs a study is made of, and in which order.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Ratio;
use sweetspot_stats::{Seed, Summary};

use crate::{Axis, Configuration, EnergyOf, Point, Search};

/// Runs of a configuration that a search may ask for.
const MOST_SEARCHED: u32 = 16;

/// One run: a configuration and which of its repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Index of its configuration.
    pub configuration: usize,
    /// From 0.
    pub repeat: u32,
}

/// In which order runs are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All configurations once, then again in the opposite direction: what drifts slowly cancels.
    #[default]
    Interleaved,
    /// All configurations once in a random order, then again in another.
    Random,
    /// All repeats of the first configuration, then of the second.
    AsGiven,
}

impl std::fmt::Display for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Interleaved => "interleaved",
            Self::Random => "random",
            Self::AsGiven => "as-given",
        })
    }
}

impl std::str::FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Interleaved, Self::Random, Self::AsGiven]
            .into_iter()
            .find(|order| order.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not one of interleaved, random, as-given"))
    }
}

/// Repeat until the mean is known so well.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Half the 95 % interval of time and of energy, against the mean.
    pub within: Ratio,
    /// Runs of a configuration at most.
    pub most: u32,
}

/// The configurations of a study and how often each is run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What is varied, in the order in which people read it.
    pub axes: Vec<Axis>,
    /// Those on the axes, in order, and the reference last where it is not among them.
    pub configurations: Vec<Configuration>,
    /// How many of them are on the axes.
    pub on_axes: usize,
    /// Index of the reference.
    pub reference: usize,
    /// Runs of each configuration, at least.
    pub repeat: u32,
    /// Where more may be needed.
    pub until: Option<Until>,
    /// In which order.
    pub order: Order,
    /// What decides which of them are run, where not all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The seed the user gave.
    pub seed: u64,
    /// The device and the workload, so that their draws are their own.
    pub subject: String,
}

impl Plan {
    /// Every configuration on the axes and the reference, each run equally often.
    pub fn new(
        axes: Vec<Axis>,
        on_axes: Vec<Configuration>,
        reference: Configuration,
        repeat: u32,
        seed: u64,
        subject: String,
    ) -> Self {
        let mut configurations = on_axes;
        let count = configurations.len();
        let place = configurations.iter().position(|c| *c == reference);
        if place.is_none() {
            configurations.push(reference);
        }
        Self {
            axes,
            configurations,
            on_axes: count,
            reference: place.unwrap_or(count),
            repeat,
            until: None,
            order: Order::default(),
            search: None,
            seed,
            subject,
        }
    }

    /// A run's number: the same for every order, and for more repeats than planned.
    pub fn id(&self, task: Task) -> u64 {
        u64::from(task.repeat) * self.configurations.len() as u64 + task.configuration as u64
    }

    /// The run with this number; none that could never be needed.
    pub fn task(&self, id: u64) -> Option<Task> {
        let count = self.configurations.len() as u64;
        let repeat = u32::try_from(id.checked_div(count)?).ok()?;
        (repeat < self.most()).then_some(Task {
            configuration: (id % count) as usize,
            repeat,
        })
    }

    /// Runs of a configuration at most.
    pub fn most(&self) -> u32 {
        if self.search.is_some() {
            return self.repeat.max(MOST_SEARCHED);
        }
        self.until
            .map_or(self.repeat, |until| until.most.max(self.repeat))
    }

    /// Runs, as far as that is known beforehand.
    pub fn len(&self) -> usize {
        if let Some(search) = &self.search {
            return search.at_most(self);
        }
        self.configurations.len() * self.repeat as usize
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is random in a run: a hash of what it is, so that it is the same in any order and study.
    pub fn seed(&self, task: Task) -> Seed {
        let configuration = &self.configurations[task.configuration];
        Seed::new(self.seed)
            .label(&self.subject)
            .label(&configuration.label())
            .number(u64::from(task.repeat))
    }

    /// What is to be run next, in order, after what was run already; nothing where all is done. A
    /// configuration that failed is not tried again. With [`Until`] there may be more after these.
    pub fn pending(&self, points: &[Point], of: EnergyOf) -> Vec<Task> {
        if let Some(search) = &self.search {
            return search.next(self, points).into_iter().collect();
        }
        let mut tasks = Vec::new();
        for (configuration, point) in points.iter().enumerate() {
            if point.failure().is_some() {
                continue;
            }
            let done = |repeat: &u32| {
                let found = point
                    .runs
                    .binary_search_by_key(repeat, |run| run.task.repeat);
                found.is_ok()
            };
            let wanted = (0..self.wanted(point, of)).filter(|repeat| !done(repeat));
            tasks.extend(wanted.map(|repeat| Task {
                configuration,
                repeat,
            }));
        }
        tasks.sort_by_key(|task| self.place(*task));
        tasks
    }

    /// The next round of [`Plan::pending`]: of each configuration at most one, all of the same repeat; and how
    /// many runs are called for in all, those that are there included.
    pub fn round(&self, points: &[Point], of: EnergyOf) -> (Vec<Task>, usize) {
        if self.search.is_some() {
            let next = self.pending(points, of);
            let done: usize = points.iter().map(|point| point.runs.len()).sum();
            let total = done + next.len();
            return (next, total);
        }
        let (mut next, mut total) = (Vec::new(), 0);
        for (configuration, point) in points.iter().enumerate() {
            if point.failure().is_some() {
                total += point.runs.len();
                continue;
            }
            let wanted = self.wanted(point, of);
            total += point.runs.len().max(wanted as usize);
            let numbers = point.runs.iter().map(|run| run.task.repeat);
            let is_whole = point
                .runs
                .last()
                .is_none_or(|run| run.task.repeat as usize + 1 == point.runs.len());
            let repeat = match is_whole {
                true => point.runs.len() as u32,
                false => {
                    let gap = (0..).zip(numbers).find(|(place, repeat)| place != repeat);
                    gap.map_or(0, |(place, _)| place)
                }
            };
            if repeat < wanted {
                next.push(Task {
                    configuration,
                    repeat,
                });
            }
        }
        let round = next.iter().map(|task| task.repeat).min();
        next.retain(|task| Some(task.repeat) == round);
        next.sort_by_key(|task| self.place(*task));
        (next, total)
    }

    /// Runs, at most.
    pub fn at_most(&self) -> usize {
        if let Some(search) = &self.search {
            return search.at_most(self);
        }
        self.configurations
            .len()
            .saturating_mul(self.most() as usize)
    }

    /// How many runs of a configuration are called for by what is known of it.
    fn wanted(&self, point: &Point, of: EnergyOf) -> u32 {
        let Some(until) = self.until else {
            return self.repeat;
        };
        let have = point.runs.len() as u32;
        if have < self.repeat.max(2) {
            return self.repeat.max(2);
        }
        let is_tight = |values: Vec<f64>| {
            let summary = Summary::of(&values);
            summary.is_some_and(|summary| {
                let half = summary
                    .interval95
                    .map(|interval| interval.high - summary.mean);
                half.is_some_and(|half| half <= until.within.get() * summary.mean.abs())
            })
        };
        let energies: Vec<f64> = point
            .results()
            .filter_map(|run| Some(run.energy_of(of)?.value.get()))
            .collect();
        let tight = is_tight(point.results().map(|run| run.time.get()).collect())
            && (energies.is_empty() || is_tight(energies));
        match tight {
            true => have,
            false => (have + 1).min(self.most()),
        }
    }

    fn place(&self, task: Task) -> (u64, u64) {
        let repeat = u64::from(task.repeat);
        let index = task.configuration as u64;
        match self.order {
            Order::AsGiven => (index, repeat),
            Order::Random => {
                let draw = Seed::new(self.seed).label("order").number(repeat);
                (repeat, draw.number(index).get())
            }
            Order::Interleaved if task.repeat % 2 == 1 => {
                (repeat, self.configurations.len() as u64 - index)
            }
            Order::Interleaved => (repeat, index),
        }
    }
}
