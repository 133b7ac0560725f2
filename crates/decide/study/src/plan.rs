//! The plan of a study: which runs it has, and in which order.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Ratio;
use sweetspot_stats::{Seed, Summary};

use crate::{Axis, CertaintyTarget, Configuration, EnergyOf, Point, StudySearch};

/// The maximum number of times that a search runs one configuration.
const MAX_SEARCH_REPEATS: u32 = 16;

/// One run of a plan: a configuration and the number of the repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Task {
    /// The index of the configuration in the plan.
    pub configuration: usize,
    /// The number of the repeat of the configuration, counted from 0.
    pub repeat: u32,
}

/// The order in which the runs of a study are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All configurations once, then again in the opposite direction, and so on; slow drift then cancels out.
    #[default]
    Interleaved,
    /// All configurations once in a random order, then again in another.
    Random,
    /// All repeats of the first configuration, then of the second, and so on.
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
            .ok_or_else(|| {
                format!("`{text}` is not an order of runs: use interleaved, random or as-given")
            })
    }
}

/// The precision at which a configuration needs no more runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrecisionTarget {
    /// The maximum half-width of the 95 % intervals of time and energy, relative to their means.
    #[serde(rename = "within")]
    pub half_width: Ratio,
    /// The maximum number of runs of a configuration, even if the precision is not reached.
    #[serde(rename = "most")]
    pub max_runs: u32,
}

/// The configurations of a study and the number of runs of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The axes, in the order in which tables show them.
    pub axes: Vec<Axis>,
    /// The configurations on the axes, in order, and the reference last if it is not among them.
    pub configurations: Vec<Configuration>,
    /// The number of configurations on the axes, without a reference that is not among them.
    pub on_axes: usize,
    /// The index of the reference in `configurations`.
    pub reference: usize,
    /// The smallest number of runs of each configuration.
    pub repeat: u32,
    /// The precision at which a configuration needs no more runs; absent if the user gave none.
    pub until: Option<PrecisionTarget>,
    /// The recommendation that more runs make certain; absent if the user did not ask for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_sure: Option<CertaintyTarget>,
    /// The order in which the runs are made.
    pub order: Order,
    /// The search that chooses the configurations to run; absent if all are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<StudySearch>,
    /// The seed of the study, from which the seeds of the runs are derived.
    pub seed: u64,
    /// The names of the device and the workload; the seeds of the runs depend on them too.
    pub subject: String,
}

impl Plan {
    /// Whether a configuration changes settings of devices.
    pub fn sets_devices(&self) -> bool {
        self.configurations.iter().any(Configuration::sets_devices)
    }

    /// Creates a plan that runs every configuration on the axes, and the reference, equally often.
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
        let position = configurations.iter().position(|c| *c == reference);
        if position.is_none() {
            configurations.push(reference);
        }
        Self {
            axes,
            configurations,
            on_axes: count,
            reference: position.unwrap_or(count),
            repeat,
            until: None,
            until_sure: None,
            order: Order::default(),
            search: None,
            seed,
            subject,
        }
    }

    /// The identifier of a run, which depends neither on the order nor on the number of repeats.
    pub fn id(&self, task: Task) -> u64 {
        u64::from(task.repeat) * self.configurations.len() as u64 + task.configuration as u64
    }

    /// The run with this identifier; `None` if the plan cannot have such a run.
    pub fn task(&self, id: u64) -> Option<Task> {
        let count = self.configurations.len() as u64;
        let repeat = u32::try_from(id.checked_div(count)?).ok()?;
        (repeat < self.max_repeats()).then_some(Task {
            configuration: (id % count) as usize,
            repeat,
        })
    }

    /// The maximum number of times that the plan runs one configuration.
    pub fn max_repeats(&self) -> u32 {
        if self.search.is_some() {
            return self.repeat.max(MAX_SEARCH_REPEATS);
        }
        let precision = self.until.map(|until| until.max_runs);
        let certainty = self.until_sure.as_ref().map(|target| target.max_runs);
        precision
            .or(certainty)
            .map_or(self.repeat, |most| most.max(self.repeat))
    }

    /// Whether the results of runs decide which runs follow.
    pub fn is_adaptive(&self) -> bool {
        self.until.is_some() || self.until_sure.is_some() || self.search.is_some()
    }

    /// The number of runs of the plan, as far as it is known before the first run.
    pub fn len(&self) -> usize {
        if let Some(search) = &self.search {
            return search.max_runs(self);
        }
        self.configurations.len() * self.repeat as usize
    }

    /// Whether the plan has no runs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The seed of a run: a hash of its configuration and repeat. It is therefore the same in any order and in any
    /// study.
    pub fn seed(&self, task: Task) -> Seed {
        let configuration = &self.configurations[task.configuration];
        Seed::new(self.seed)
            .label(&self.subject)
            .label(&configuration.label())
            .number(u64::from(task.repeat))
    }

    /// The runs that are still to be made after those in `points`, in order. A configuration that failed is not run
    /// again. With a [`PrecisionTarget`] or a search, more runs may follow these. `of` is the part of the machine whose
    /// energy is compared.
    pub fn pending(&self, points: &[Point], of: EnergyOf) -> Vec<Task> {
        if let Some(search) = &self.search {
            return search.next(self, points).into_iter().collect();
        }
        let mut tasks = Vec::new();
        let needed = self.repeats_needed(points, of);
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
            let wanted = (0..needed[configuration]).filter(|repeat| !done(repeat));
            tasks.extend(wanted.map(|repeat| Task {
                configuration,
                repeat,
            }));
        }
        tasks.sort_by_key(|task| self.order_key(*task));
        tasks
    }

    /// The next round of [`Plan::pending`], at most one run of each configuration and all of the same repeat; and
    /// the number of runs needed in all, including those in `points`.
    pub fn next_round(&self, points: &[Point], of: EnergyOf) -> (Vec<Task>, usize) {
        if self.search.is_some() {
            let next = self.pending(points, of);
            let done: usize = points.iter().map(|point| point.runs.len()).sum();
            let total = done + next.len();
            return (next, total);
        }
        let (mut next, mut total) = (Vec::new(), 0);
        let needed = self.repeats_needed(points, of);
        for (configuration, point) in points.iter().enumerate() {
            if point.failure().is_some() {
                total += point.runs.len();
                continue;
            }
            let wanted = needed[configuration];
            total += point.runs.len().max(wanted as usize);
            let numbers = point.runs.iter().map(|run| run.task.repeat);
            let has_no_gap = point
                .runs
                .last()
                .is_none_or(|run| run.task.repeat as usize + 1 == point.runs.len());
            let repeat = match has_no_gap {
                true => point.runs.len() as u32,
                false => {
                    let gap = (0..).zip(numbers).find(|(index, repeat)| index != repeat);
                    gap.map_or(0, |(index, _)| index)
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
        next.sort_by_key(|task| self.order_key(*task));
        (next, total)
    }

    /// The maximum number of runs of the whole plan.
    pub fn max_runs(&self) -> usize {
        if let Some(search) = &self.search {
            return search.max_runs(self);
        }
        self.configurations
            .len()
            .saturating_mul(self.max_repeats() as usize)
    }

    /// The number of runs that are expected to follow those in `points`; `None` if only their maximum is known.
    pub fn expected_runs(&self, points: &[Point], of: EnergyOf) -> Option<usize> {
        let pending = self.pending(points, of).len();
        match &self.search {
            Some(search) if pending > 0 => {
                let done: usize = points.iter().map(|point| point.runs.len()).sum();
                let typical = search.typical_runs(self)?;
                Some(typical.saturating_sub(done).max(pending))
            }
            _ => Some(pending),
        }
    }

    /// The number of runs that each configuration needs, given the results of the runs so far.
    fn repeats_needed(&self, points: &[Point], of: EnergyOf) -> Vec<u32> {
        match &self.until_sure {
            Some(target) => target.runs_needed(self, points),
            None => {
                let points = points.iter();
                points.map(|point| self.repeats_for(point, of)).collect()
            }
        }
    }

    /// The number of runs that a configuration needs, given the results of its own runs so far.
    fn repeats_for(&self, point: &Point, of: EnergyOf) -> u32 {
        let Some(until) = self.until else {
            return self.repeat;
        };
        let have = point.runs.len() as u32;
        if have < self.repeat.max(2) {
            return self.repeat.max(2);
        }
        let is_precise = |values: Vec<f64>| {
            let summary = Summary::of(&values);
            summary.is_some_and(|summary| {
                let half = summary
                    .interval95
                    .map(|interval| interval.high - summary.mean);
                half.is_some_and(|half| half <= until.half_width.get() * summary.mean.abs())
            })
        };
        let energies: Vec<f64> = point
            .results()
            .filter_map(|run| Some(run.energy_of(of)?.value.get()))
            .collect();
        let precise = is_precise(point.results().map(|run| run.time.get()).collect())
            && (energies.is_empty() || is_precise(energies));
        match precise {
            true => have,
            false => (have + 1).min(self.max_repeats()),
        }
    }

    /// The key by which runs are sorted into the order of the plan. The reference always begins: without it nothing can
    /// be compared, and its time tells how long the sweep will take.
    fn order_key(&self, task: Task) -> (bool, u64, u64) {
        let repeat = u64::from(task.repeat);
        let index = task.configuration as u64;
        let is_first = task.configuration == self.reference && task.repeat == 0;
        let (major, minor) = match self.order {
            Order::AsGiven => (index, repeat),
            Order::Random => {
                let draw = Seed::new(self.seed).label("order").number(repeat);
                (repeat, draw.number(index).get())
            }
            Order::Interleaved if task.repeat % 2 == 1 => {
                (repeat, self.configurations.len() as u64 - index)
            }
            Order::Interleaved => (repeat, index),
        };
        (!is_first, major, minor)
    }
}
