//! What the runs of a study came to.

use sweetspot_decide::{Objective, Outcome, best};
use sweetspot_device::Descriptor;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_stats::{Summary, differ};

use crate::{Configuration, Varied};

/// Whose energy counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergyOf {
    /// The devices that the job uses.
    #[default]
    JobGpus,
    /// All devices of the node, those that idle too.
    AllGpus,
    /// The whole node at the wall.
    Node,
}

impl std::fmt::Display for EnergyOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::JobGpus => "job-gpus",
            Self::AllGpus => "all-gpus",
            Self::Node => "node",
        })
    }
}

impl std::str::FromStr for EnergyOf {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::JobGpus, Self::AllGpus, Self::Node]
            .into_iter()
            .find(|of| of.to_string() == text)
            .ok_or_else(|| format!("`{text}` is not one of job-gpus, all-gpus, node"))
    }
}

/// How the runs of a configuration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// As they should.
    Ok,
    /// With an error.
    Failed(String),
}

/// Time and energy of one phase in one run.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseResult {
    /// Its name.
    pub name: String,
    /// Spent in it.
    pub time: Seconds,
    /// Drawn in it.
    pub energy: Joules,
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// From start to end.
    pub time: Seconds,
    /// Of the devices that count.
    pub energy: Joules,
    /// Items done.
    pub items: u64,
    /// By phase, where the workload has phases.
    pub phases: Vec<PhaseResult>,
}

/// How one run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// Well.
    Done(RunResult),
    /// With an error, in words.
    Failed(String),
}

/// A configuration and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What was set.
    pub configuration: Configuration,
    /// How it went.
    pub status: Status,
    /// The runs that ended well.
    pub runs: Vec<RunResult>,
}

impl Point {
    /// A configuration that has not run yet.
    pub fn new(configuration: Configuration) -> Self {
        Self {
            configuration,
            status: Status::Ok,
            runs: Vec::new(),
        }
    }

    /// Takes in a run.
    pub fn add(&mut self, end: RunEnd) {
        match end {
            RunEnd::Done(run) => self.runs.push(run),
            RunEnd::Failed(reason) => self.status = Status::Failed(reason),
        }
    }

    fn summary(&self, value: impl Fn(&RunResult) -> f64) -> Option<Summary> {
        Summary::of(&self.runs.iter().map(value).collect::<Vec<_>>())
    }

    /// Of the time in seconds.
    pub fn time(&self) -> Option<Summary> {
        self.summary(|run| run.time.get())
    }

    /// Of the energy in joules.
    pub fn energy(&self) -> Option<Summary> {
        self.summary(|run| run.energy.get())
    }

    /// Mean energy over mean time.
    pub fn average_power(&self) -> Option<Watts> {
        let outcome = self.outcome()?;
        Some(outcome.energy? / outcome.time)
    }

    /// The means, for choosing; nothing where a run failed: those that did not would be a choice of
    /// the lucky ones.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.status != Status::Ok {
            return None;
        }
        let time = Seconds::new(self.time()?.mean);
        let energy = Joules::new(self.energy()?.mean);
        Some(Outcome {
            items: Some(self.summary(|run| run.items as f64)?.mean),
            gpus: self.configuration.gpus,
            ..Outcome::new(time, energy)
        })
    }

    /// An objective's value in each run.
    fn values(&self, objective: Objective, reference: &Outcome) -> Vec<f64> {
        let outcome = |run: &RunResult| Outcome {
            items: Some(run.items as f64),
            gpus: self.configuration.gpus,
            ..Outcome::new(run.time, run.energy)
        };
        let values = self
            .runs
            .iter()
            .map(|run| objective.value(&outcome(run), reference));
        values.flatten().collect()
    }

    /// Mean time and energy of each phase.
    pub fn phases(&self) -> Vec<PhaseResult> {
        let Some(first) = self.runs.first() else {
            return Vec::new();
        };
        let count = self.runs.len() as f64;
        let of = |index: usize| {
            self.runs
                .iter()
                .filter_map(move |run| run.phases.get(index))
        };
        first
            .phases
            .iter()
            .enumerate()
            .map(|(index, phase)| PhaseResult {
                name: phase.name.clone(),
                time: of(index).map(|phase| phase.time).sum::<Seconds>() / count,
                energy: of(index).map(|phase| phase.energy).sum::<Joules>() / count,
            })
            .collect()
    }
}

/// A choice and what cannot be told from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// Index of the best point.
    pub point: usize,
    /// Points whose runs do not differ significantly from its runs.
    pub tied_with: Vec<usize>,
    /// Whether the reference is no worse, or not significantly so.
    pub reference_is_as_good: bool,
}

/// The workload of a study, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadInfo {
    /// `NETWORK@STUDY` or a path.
    pub name: String,
    /// The network alone.
    pub network: String,
    /// `training` or `inference`.
    pub mode: String,
    /// How convolutions are done, where there is a choice.
    pub conv_algorithm: Option<String>,
    /// What it is fed with, where there is a choice.
    pub dataset: Option<String>,
    /// Items in a batch.
    pub batch: u64,
    /// Items in a run.
    pub items: u64,
    /// The GPU from which the work was scaled, where it was.
    pub scaled_from: Option<String>,
}

/// A study and everything that came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Whose energy is given.
    pub energy_of: EnergyOf,
    /// What produced the joules.
    pub method: String,
    /// The device.
    pub device: Descriptor,
    /// The device's profile or selector, as the user named it.
    pub device_name: String,
    /// The workload.
    pub workload: WorkloadInfo,
    /// The seed the user gave.
    pub seed: u64,
    /// Runs of each configuration.
    pub repeat: u32,
    /// The configurations on the axes, in order.
    pub points: Vec<Point>,
    /// What all are compared with.
    pub reference: Point,
}

impl Study {
    /// A title for people.
    pub fn name(&self) -> String {
        format!("{} on {}", self.workload.name, self.device_name)
    }

    /// The best point by an objective, and which others do as well.
    pub fn best(&self, objective: Objective) -> Option<Best> {
        let reference = self.reference.outcome()?;
        let (indices, outcomes) = self.outcomes();
        let chosen = best(&outcomes, &reference, objective)?;
        let point = indices[chosen];
        let values = |point: &Point| point.values(objective, &reference);
        let of_best = values(&self.points[point]);
        let ties = |other: &Point| differ(&of_best, &values(other)) == Some(false);
        let value = |outcome: &Outcome| objective.value(outcome, &reference).ok();
        let better = objective.is_better(value(&outcomes[chosen])?, value(&reference)?);
        Some(Best {
            tied_with: indices
                .iter()
                .copied()
                .filter(|other| *other != point && ties(&self.points[*other]))
                .collect(),
            reference_is_as_good: !better || ties(&self.reference),
            point,
        })
    }

    /// The knobs that have several values in the study; the power cap where there are none.
    pub fn varied(&self) -> Vec<Varied> {
        let all = || self.points.iter().chain([&self.reference]);
        let differs = |varied: &Varied| {
            let mut values = all().map(|point| varied.value(&point.configuration));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let varied: Vec<Varied> = Varied::ALL.into_iter().filter(differs).collect();
        if varied.is_empty() {
            vec![Varied::PowerCap]
        } else {
            varied
        }
    }

    /// Indices and outcomes of the points that have one.
    pub fn outcomes(&self) -> (Vec<usize>, Vec<Outcome>) {
        self.points
            .iter()
            .enumerate()
            .filter_map(|(index, point)| Some((index, point.outcome()?)))
            .unzip()
    }
}
