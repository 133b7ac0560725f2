//! The results of a study, point by point.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::Recommendation;
use sweetspot_decide::{Candidate, Choice, Comparison, Criteria, NoChoice, Outcome, Tariff};
use sweetspot_device::Descriptor;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_stats::Summary;

use crate::places::places;
use crate::{
    Axis, Configuration, DevicePhase, EnergyOf, Failure, PhaseResult, Plan, ReducedCap, RunEnding,
    RunRecord, RunResult, SearchProgress, Status, Task,
};

/// A configuration of a study, and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The configuration that was run.
    pub configuration: Configuration,
    /// The part of the machine whose energy is compared.
    pub energy_of: EnergyOf,
    /// The runs of the configuration, in the order of their repeats.
    pub runs: Vec<RunRecord>,
}

impl Point {
    /// Creates the point of a configuration that has no runs yet.
    pub fn new(configuration: Configuration, energy_of: EnergyOf) -> Self {
        Self {
            configuration,
            energy_of,
            runs: Vec::new(),
        }
    }

    /// Adds a run, unless there is already a run with the same repeat number.
    pub fn add(&mut self, run: RunRecord) {
        let position = self
            .runs
            .binary_search_by_key(&run.task.repeat, |run| run.task.repeat);
        if let Err(position) = position {
            self.runs.insert(position, run);
        }
    }

    /// Removes the run with this configuration and repeat number.
    pub fn remove(&mut self, task: Task) {
        self.runs.retain(|run| run.task != task);
    }

    /// The results of the successful runs.
    pub fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.iter().filter_map(|run| match &run.end {
            RunEnding::Done(result) => Some(result),
            RunEnding::Failed(_) => None,
        })
    }

    /// The failure of the first run that failed; `None` if none did.
    pub fn failure(&self) -> Option<&Failure> {
        self.runs.iter().find_map(|run| match &run.end {
            RunEnding::Done(_) => None,
            RunEnding::Failed(failure) => Some(failure),
        })
    }

    /// The status of the configuration after its runs.
    pub fn status(&self) -> Status {
        match self.failure() {
            Some(failure) => failure.status,
            None if self.runs.is_empty() => Status::NotRun,
            None => Status::Ok,
        }
    }

    /// The power caps that the devices enforced although a higher one was requested: the lowest of each device.
    pub fn reduced_caps(&self) -> Vec<&ReducedCap> {
        let mut found: Vec<&ReducedCap> = Vec::new();
        for one in self.runs.iter().flat_map(|run| &run.reduced_caps) {
            match found.iter_mut().find(|other| other.device == one.device) {
                Some(other) if one.enforced < other.enforced => *other = one,
                Some(_) => {}
                None => found.push(one),
            }
        }
        found
    }

    /// The summary of a value over the successful runs; `None` if a run lacks it.
    fn summary(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Summary> {
        let values: Option<Vec<f64>> = self.results().map(value).collect();
        Summary::of(&values?)
    }

    /// The mean and spread of the runs' times, in seconds.
    pub fn time(&self) -> Option<Summary> {
        self.summary(|run| Some(run.time.get()))
    }

    /// The mean and spread of the runs' energies, in joules; `None` if the energy of a run is unknown.
    pub fn energy(&self) -> Option<Summary> {
        self.summary(|run| Some(run.energy_of(self.energy_of)?.value.get()))
    }

    /// The average power: mean energy divided by mean time.
    pub fn average_power(&self) -> Option<Watts> {
        let outcome = self.outcome()?;
        Some(outcome.energy? / outcome.time)
    }

    /// The means of the runs' values; `None` if a run failed, because the mean of the others would be biased.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.status() {
            Status::Ok => Outcome::mean(&self.candidate().runs),
            _ => None,
        }
    }

    /// Converts the point to a candidate for a choice. Settings and parameters are among its values, so limits can
    /// refer to them.
    pub fn candidate(&self) -> Candidate {
        let configuration = &self.configuration;
        let knobs = [
            Axis::PowerCap,
            Axis::CoreClock,
            Axis::MemoryClock,
            Axis::CpuPowerCap,
        ];
        let parameters = configuration.parameters.keys().cloned();
        let settings: Vec<(String, f64)> = knobs
            .into_iter()
            .chain(parameters.map(Axis::Parameter))
            .filter_map(|axis| {
                let name = axis.name().replace('-', "_");
                Some((name, axis.number(configuration)?))
            })
            .collect();
        let outcome = |run: &RunResult| {
            let mut values: BTreeMap<String, f64> = settings.iter().cloned().collect();
            values.extend(run.values.clone());
            Outcome {
                items: run.items,
                gpus: configuration.gpus,
                values,
                ..Outcome::new(
                    run.time,
                    run.energy_of(self.energy_of).map(|energy| energy.value),
                )
            }
        };
        Candidate {
            runs: self.results().map(outcome).collect(),
            failed: self.failure().map(|failure| failure.reason.clone()),
        }
    }

    /// The mean and spread of each value that every run reported, by name.
    pub fn values(&self) -> BTreeMap<String, Summary> {
        let names = self.results().flat_map(|run| run.values.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        let of = |name: &String| self.summary(|run| run.values.get(name).copied());
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), of(name)?)))
            .collect()
    }

    /// The mean energy of each device whose energy is known in every run, in the order of the devices.
    pub fn energy_by_device(&self) -> Vec<(String, Joules)> {
        let Some(first) = self.results().next() else {
            return Vec::new();
        };
        let mean = |id: &sweetspot_device::DeviceId| {
            self.summary(|run| {
                let found = run.devices.iter().find(|device| device.device == *id)?;
                Some(found.energy?.value.get())
            })
        };
        first
            .devices
            .iter()
            .filter_map(|device| {
                let mean = mean(&device.device)?.mean;
                Some((device.device.as_str().to_owned(), Joules::new(mean)))
            })
            .collect()
    }

    /// The method by which the energy was measured; `None` if it is unknown.
    pub fn method(&self) -> Option<String> {
        if self.energy_of == EnergyOf::Node {
            return self.energy().map(|_| "meter".to_owned());
        }
        let first = self.results().next()?.devices.first()?;
        Some(first.method.clone())
    }

    /// The mean time and energy of each phase over the runs.
    pub fn phases(&self) -> Vec<PhaseResult> {
        let Some(first) = self.results().next() else {
            return Vec::new();
        };
        let of = |name: &str| -> Vec<&PhaseResult> {
            let all = self.results().flat_map(|run| &run.phases);
            all.filter(|phase| phase.name == name).collect()
        };
        let mean = |phase: &PhaseResult| {
            let all = of(&phase.name);
            let count = all.len() as f64;
            PhaseResult {
                name: phase.name.clone(),
                time: all.iter().map(|phase| phase.time).sum::<Seconds>() / count,
                energy: mean_energy(all.iter().map(|phase| phase.energy)),
                by_device: mean_by_device(&all),
            }
        };
        first.phases.iter().map(mean).collect()
    }
}

/// The mean of the energies that are known; `None` if none is.
fn mean_energy(energies: impl Iterator<Item = Option<Joules>>) -> Option<Joules> {
    let known: Vec<Joules> = energies.flatten().collect();
    let count = known.len() as f64;
    (!known.is_empty()).then(|| known.into_iter().sum::<Joules>() / count)
}

/// The means of a phase on each GPU; empty if a run has it on another number of GPUs.
fn mean_by_device(runs: &[&PhaseResult]) -> Vec<DevicePhase> {
    let gpus = runs.first().map_or(0, |run| run.by_device.len());
    if runs.iter().any(|run| run.by_device.len() != gpus) {
        return Vec::new();
    }
    let count = runs.len() as f64;
    let mean = |gpu: usize| DevicePhase {
        time: runs
            .iter()
            .map(|run| run.by_device[gpu].time)
            .sum::<Seconds>()
            / count,
        energy: mean_energy(runs.iter().map(|run| run.by_device[gpu].energy)),
    };
    (0..gpus).map(mean).collect()
}

/// Information about the workload of a study for reports; what is unknown is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadInfo {
    /// The name of the workload: `NETWORK@STUDY`, the path of a profile, or the command.
    pub name: String,
    /// The name of the simulated network alone; absent for a command.
    pub network: Option<String>,
    /// Whether the workload trains or infers: `training` or `inference`.
    pub mode: Option<String>,
    /// The convolution algorithm, if the workload offers several.
    pub conv_algorithm: Option<String>,
    /// The dataset, if the workload offers several.
    pub dataset: Option<String>,
    /// The batch size, if it is not an axis.
    pub batch: Option<u64>,
    /// The number of items that each run processes.
    pub items: Option<u64>,
    /// The GPU from whose profile the simulated work was scaled; absent if it was not scaled.
    pub scaled_from: Option<String>,
    /// The command of the workload: the program and its arguments, with placeholders; absent for a simulated workload.
    pub command: Option<Vec<String>>,
}

/// The devices and the workload of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The part of the machine whose energy is compared.
    pub energy_of: EnergyOf,
    /// The devices that the study may use, in the order in which jobs use them.
    pub devices: Vec<Descriptor>,
    /// The devices as the user named them: a simulated profile or a list of GPUs.
    pub device_name: String,
    /// The workload that the study runs.
    pub workload: WorkloadInfo,
}

impl Subject {
    /// The workload and its device.
    pub fn name(&self) -> String {
        format!("{} on {}", self.workload.name, self.device_name)
    }
}

/// A study and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// The devices and the workload of the study.
    pub subject: Subject,
    /// The configurations of the study, and how often each is run.
    pub plan: Plan,
    /// The points on the axes, in the order of the plan's configurations.
    pub points: Vec<Point>,
    /// The point that all others are compared with.
    pub reference: Point,
}

impl Study {
    /// Creates a study from a plan and the points of its configurations, one for each.
    pub fn new(subject: Subject, plan: Plan, mut points: Vec<Point>) -> Self {
        let reference = points[plan.reference].clone();
        points.truncate(plan.on_axes);
        Self {
            subject,
            plan,
            points,
            reference,
        }
    }

    /// The progress of the study's search; `None` if the study has no search.
    pub fn search_progress(&self) -> Option<SearchProgress> {
        let mut points = self.points.clone();
        if self.plan.reference >= points.len() {
            points.push(self.reference.clone());
        }
        self.plan.search.as_ref()?.progress(&self.plan, &points)
    }

    /// The recommendation of the study's search; `None` if it searched for other criteria or the recommended point was
    /// not run.
    pub fn search_recommendation(&self, criteria: &Criteria) -> Option<Recommendation> {
        let own = self.plan.search.as_ref()?.criteria();
        if own.objective != criteria.objective || own.limits != criteria.limits {
            return None;
        }
        let recommendation = self.search_progress()?.recommendation?;
        let point = self.points.get(recommendation.point)?;
        point.outcome().map(|_| recommendation)
    }

    /// Chooses the best point by these criteria, or returns why there is none. If the study searched by the same
    /// criteria, its recommendation is chosen; otherwise the point with the best mean.
    pub fn choose(&self, comparison: &Comparison, criteria: &Criteria) -> Result<Choice, NoChoice> {
        let searched = self.search_recommendation(criteria);
        comparison.recommend(criteria, searched.map(|searched| searched.point))
    }

    /// The number of runs of the study so far.
    pub fn run_count(&self) -> usize {
        let on_axes: usize = self.points.iter().map(|point| point.runs.len()).sum();
        match self.plan.reference >= self.points.len() {
            true => on_axes + self.reference.runs.len(),
            false => on_axes,
        }
    }

    /// The first device of the study.
    pub fn device(&self) -> &Descriptor {
        &self.subject.devices[0]
    }

    /// The part of the machine whose energy is compared.
    pub fn energy_of(&self) -> EnergyOf {
        self.reference.energy_of
    }

    /// The name of the study: its workload and its device.
    pub fn name(&self) -> String {
        self.subject.name()
    }

    /// Compares the points with the reference; a candidate of the comparison has the index of its point.
    pub fn comparison(&self, tariff: &Tariff) -> Comparison {
        let candidates: Vec<Candidate> = self.points.iter().map(Point::candidate).collect();
        let reference = Some(self.reference.candidate());
        let reference = reference.filter(|reference| !reference.runs.is_empty());
        Comparison::new(&candidates, reference.as_ref(), tariff.clone())
            .with_places(places(&self.points, &self.plan.axes))
    }

    /// The axes that have several values in the study; the power cap if none has.
    pub fn varied_axes(&self) -> Vec<Axis> {
        let all = || self.points.iter().chain([&self.reference]);
        let differs = |axis: &&Axis| {
            let mut values = all().map(|point| axis.text(&point.configuration));
            let first = values.next();
            values.any(|value| Some(value) != first)
        };
        let varied: Vec<Axis> = self.plan.axes.iter().filter(differs).cloned().collect();
        match varied.is_empty() {
            true => vec![Axis::PowerCap],
            false => varied,
        }
    }
}
