//! What the runs of a study came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_decide::search::Recommendation;
use sweetspot_decide::{Candidate, Choice, Comparison, Criteria, NoChoice, Outcome, Tariff};
use sweetspot_device::Descriptor;
use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_stats::Summary;

use crate::{
    Axis, Configuration, EnergyOf, Enforced, Failure, PhaseResult, Plan, RunEnd, RunRecord,
    RunResult, Searched, Status, Task,
};

/// A configuration and its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// What was set.
    pub configuration: Configuration,
    /// Whose energy counts.
    pub energy_of: EnergyOf,
    /// In the order of their repeats.
    pub runs: Vec<RunRecord>,
}

impl Point {
    /// A configuration that has not run yet.
    pub fn new(configuration: Configuration, energy_of: EnergyOf) -> Self {
        Self {
            configuration,
            energy_of,
            runs: Vec::new(),
        }
    }

    /// Takes in a run; one that is there already stays.
    pub fn add(&mut self, run: RunRecord) {
        let place = self
            .runs
            .binary_search_by_key(&run.task.repeat, |run| run.task.repeat);
        if let Err(place) = place {
            self.runs.insert(place, run);
        }
    }

    /// Takes out a run.
    pub fn remove(&mut self, task: Task) {
        self.runs.retain(|run| run.task != task);
    }

    /// The runs that ended well.
    pub fn results(&self) -> impl Iterator<Item = &RunResult> {
        self.runs.iter().filter_map(|run| match &run.end {
            RunEnd::Done(result) => Some(result),
            RunEnd::Failed(_) => None,
        })
    }

    /// The first run that did not.
    pub fn failure(&self) -> Option<&Failure> {
        self.runs.iter().find_map(|run| match &run.end {
            RunEnd::Done(_) => None,
            RunEnd::Failed(failure) => Some(failure),
        })
    }

    /// How it fares.
    pub fn status(&self) -> Status {
        match self.failure() {
            Some(failure) => failure.status,
            None if self.runs.is_empty() => Status::NotRun,
            None => Status::Ok,
        }
    }

    /// Caps that were in force only in part, one for each device.
    pub fn enforced(&self) -> Vec<&Enforced> {
        let mut found: Vec<&Enforced> = Vec::new();
        for one in self.runs.iter().flat_map(|run| &run.enforced) {
            match found.iter_mut().find(|other| other.device == one.device) {
                Some(other) if one.enforced < other.enforced => *other = one,
                Some(_) => {}
                None => found.push(one),
            }
        }
        found
    }

    fn summary(&self, value: impl Fn(&RunResult) -> Option<f64>) -> Option<Summary> {
        let values: Option<Vec<f64>> = self.results().map(value).collect();
        Summary::of(&values?)
    }

    /// Of the time in seconds.
    pub fn time(&self) -> Option<Summary> {
        self.summary(|run| Some(run.time.get()))
    }

    /// Of the energy in joules; nothing where that of a run is not known.
    pub fn energy(&self) -> Option<Summary> {
        self.summary(|run| Some(run.energy_of(self.energy_of)?.value.get()))
    }

    /// Mean energy over mean time.
    pub fn average_power(&self) -> Option<Watts> {
        let outcome = self.outcome()?;
        Some(outcome.energy? / outcome.time)
    }

    /// The means, for choosing; nothing where a run failed: those that did not would be a choice of
    /// the lucky ones.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.status() {
            Status::Ok => Outcome::mean(&self.candidate().runs),
            _ => None,
        }
    }

    /// Its runs as `decide` sees them. What is set can be limited like what is measured.
    pub fn candidate(&self) -> Candidate {
        let configuration = &self.configuration;
        let knobs = [Axis::PowerCap, Axis::CoreClock, Axis::MemoryClock];
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

    /// The mean of each value that every run reported.
    pub fn values(&self) -> BTreeMap<String, Summary> {
        let names = self.results().flat_map(|run| run.values.keys());
        let names: std::collections::BTreeSet<&String> = names.collect();
        let of = |name: &String| self.summary(|run| run.values.get(name).copied());
        names
            .into_iter()
            .filter_map(|name| Some((name.clone(), of(name)?)))
            .collect()
    }

    /// The mean energy of each device that is known in every run, in their order.
    pub fn by_device(&self) -> Vec<(String, Joules)> {
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

    /// How the energy was come to.
    pub fn method(&self) -> Option<String> {
        if self.energy_of == EnergyOf::Node {
            return self.energy().map(|_| "meter".to_owned());
        }
        let first = self.results().next()?.devices.first()?;
        Some(first.method.clone())
    }

    /// Mean time and energy of each phase.
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
                energy: all.iter().map(|phase| phase.energy).sum::<Joules>() / count,
            }
        };
        first.phases.iter().map(mean).collect()
    }
}

/// The workload of a study, in words; what is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadInfo {
    /// `NETWORK@STUDY`, a path, or the command.
    pub name: String,
    /// The network alone.
    pub network: Option<String>,
    /// `training` or `inference`.
    pub mode: Option<String>,
    /// How convolutions are done, where there is a choice.
    pub conv_algorithm: Option<String>,
    /// What it is fed with, where there is a choice.
    pub dataset: Option<String>,
    /// Items in a batch, where it is no axis.
    pub batch: Option<u64>,
    /// Items in a run.
    pub items: Option<u64>,
    /// The GPU from which the work was scaled, where it was.
    pub scaled_from: Option<String>,
    /// Program and arguments, with placeholders.
    pub command: Option<Vec<String>>,
}

/// What a study is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Whose energy was asked for.
    pub energy_of: EnergyOf,
    /// The devices that may be used, in order.
    pub devices: Vec<Descriptor>,
    /// The devices' profile or selector, as the user named it.
    pub device_name: String,
    /// The workload.
    pub workload: WorkloadInfo,
}

/// A study and everything that came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// What it is about.
    pub subject: Subject,
    /// What was planned.
    pub plan: Plan,
    /// The configurations on the axes, in order.
    pub points: Vec<Point>,
    /// What all are compared with.
    pub reference: Point,
}

impl Study {
    /// From a plan and what was run of it; `points` are as many as the plan has configurations.
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

    /// How far a search has come, where one decided what was run.
    pub fn searched(&self) -> Option<Searched> {
        let mut points = self.points.clone();
        if self.plan.reference >= points.len() {
            points.push(self.reference.clone());
        }
        self.plan.search.as_ref()?.standing(&self.plan, &points)
    }

    /// What a search for this very question holds for the best, where its setting was run.
    pub fn searched_for(&self, question: &Criteria) -> Option<Recommendation> {
        let own = self.plan.search.as_ref()?.question();
        if own.objective != question.objective || own.limits != question.limits {
            return None;
        }
        let answer = self.searched()?.answer?;
        let point = self.points.get(answer.point)?;
        point.outcome().map(|_| answer)
    }

    /// The best point for a question, or why there is none: what a search for it answers, else what the means
    /// of the runs say.
    pub fn choose(&self, comparison: &Comparison, question: &Criteria) -> Result<Choice, NoChoice> {
        let preferred = self.searched_for(question).map(|answer| answer.point);
        comparison.choose_preferring(question.objective, &question.limits, preferred)
    }

    /// Runs that were made.
    pub fn runs(&self) -> usize {
        let on_axes: usize = self.points.iter().map(|point| point.runs.len()).sum();
        match self.plan.reference >= self.points.len() {
            true => on_axes + self.reference.runs.len(),
            false => on_axes,
        }
    }

    /// The device, or the first of several.
    pub fn device(&self) -> &Descriptor {
        &self.subject.devices[0]
    }

    /// Whose energy counts.
    pub fn energy_of(&self) -> EnergyOf {
        self.reference.energy_of
    }

    /// A title for people.
    pub fn name(&self) -> String {
        let subject = &self.subject;
        format!("{} on {}", subject.workload.name, subject.device_name)
    }

    /// Its points against its reference; a point's index is its candidate's.
    pub fn comparison(&self, tariff: &Tariff) -> Comparison {
        let candidates: Vec<Candidate> = self.points.iter().map(Point::candidate).collect();
        let reference = Some(self.reference.candidate());
        let reference = reference.filter(|reference| !reference.runs.is_empty());
        Comparison::new(&candidates, reference.as_ref(), tariff.clone())
    }

    /// The knobs that have several values in the study; the power cap where there are none.
    pub fn varied(&self) -> Vec<Axis> {
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
