//! `sweep`: every configuration of the chosen axes, repeated, kept.
//!
//! One engine in two times: simulated GPUs in virtual time, a real command in real time, through the same
//! plan and the same store.

mod axes;
mod real;
mod record;
mod runner;
mod simulated;

use std::num::NonZeroUsize;

use sweetspot_device::KnobDescriptor;
use sweetspot_quantity::Seconds;
use sweetspot_study::{
    Definition, EarlierStudy, EnergyOf, Outline, Plan, Point, RunRecord, Search, Status, Store,
    StoreError, Study, Subject, Task,
};

use sweetspot_workload::GuardProgram;

use crate::SessionError;
use crate::observer::Observer;
use real::Real;
use simulated::Simulated;

/// A sweep that is ready to begin.
pub struct Sweep {
    /// What it is.
    pub outline: Outline,
    /// What became of the studies that its search may learn from.
    pub lessons: Lessons,
    stage: Stage,
}

/// Earlier studies that a search was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lessons {
    /// Those that teach nothing here: the folder, and why.
    pub unused: Vec<(String, String)>,
    /// Those that cannot be read: the folder, and why.
    pub damaged: Vec<(String, String)>,
}

/// Where runs are made.
enum Stage {
    Simulated(Simulated),
    Real(Box<Real>),
}

/// How a sweep is gone about; no result depends on it.
#[derive(Clone, Copy)]
pub struct Conduct<'a> {
    /// Simulated runs at a time.
    pub threads: NonZeroUsize,
    /// Makes the program that serves as guard.
    pub guard: GuardProgram<'a>,
    /// Whether what a command prints is shown.
    pub show_output: bool,
}

impl Default for Conduct<'_> {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
            guard: &|| {
                let mut guard = std::process::Command::new("sweetspot");
                guard.arg("guard");
                guard
            },
            show_output: false,
        }
    }
}

/// How long a sweep would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// On simulated GPUs: how much of their time; computing it takes far less.
    Simulated(Seconds),
    /// On real ones: what there is besides the command's own time.
    Besides(Seconds),
}

/// How far a sweep is.
pub struct SweepProgress<'a> {
    /// What it is.
    pub outline: &'a Outline,
    /// The runs so far, by configuration.
    pub points: &'a [Point],
    /// Runs that are done.
    pub done: usize,
    /// Runs in all, as far as that is known.
    pub planned: usize,
}

impl Sweep {
    /// Looks at the definition, the GPUs and the workload; nothing is run or set yet.
    pub fn prepare(definition: &Definition) -> Result<Self, SessionError> {
        definition.check()?;
        let is_simulated = definition.simulate.is_some() || definition.node.is_some();
        match (&definition.command, is_simulated) {
            (Some(_), true) => Err(SessionError::CommandInVirtualTime),
            (Some(_), false) => Real::prepare(definition),
            (None, true) => Simulated::prepare(definition),
            (None, false) => Err(SessionError::NothingToRun),
        }
    }

    /// A sweep that was begun before, with the same plan.
    pub fn again(outline: &Outline) -> Result<Self, SessionError> {
        if outline.merged {
            return Err(SessionError::Merged);
        }
        let now = Self::prepare(&outline.definition)?;
        let changed = |what: &'static str| Err(SessionError::Changed(what));
        // Another node's GPUs will do, if they are of the same kind.
        let kinds = |outline: &Outline| -> Vec<(String, Vec<KnobDescriptor>)> {
            let devices = outline.subject.devices.iter();
            devices
                .map(|device| (device.name.clone(), device.knobs.clone()))
                .collect()
        };
        if kinds(&now.outline) != kinds(outline) {
            return changed("the GPUs are not those of the study");
        }
        if now.outline.fingerprint != outline.fingerprint {
            return changed("the profiles of GPU, node or workload were changed since");
        }
        // What was learnt when it was begun is kept, whatever became of those studies.
        let unlearnt = |plan: &Plan| {
            let mut plan = plan.clone();
            if let Some(search) = &mut plan.search {
                search.earlier.clear();
            }
            plan
        };
        if unlearnt(&now.outline.plan) != unlearnt(&outline.plan) {
            return changed("this version of the program would plan it in another way");
        }
        Ok(Self {
            outline: outline.clone(),
            lessons: Lessons::default(),
            stage: now.stage,
        })
    }

    /// Whether the GPUs here are others than those of the study, of the same kind.
    pub fn is_elsewhere(&self) -> bool {
        let Stage::Real(real) = &self.stage else {
            return false;
        };
        let devices = self.outline.subject.devices.iter();
        !devices.map(|device| &device.id).eq(real.ids())
    }

    /// A short name for the study's folder.
    pub fn name(&self) -> String {
        let subject = &self.outline.subject;
        let workload = match &subject.workload.command {
            Some(command) => command_name(command),
            None => subject
                .workload
                .name
                .split('@')
                .next()
                .unwrap_or_default()
                .to_owned(),
        };
        let definition = &self.outline.definition;
        let devices = definition.simulate.as_ref().or(definition.node.as_ref());
        let devices = devices.unwrap_or(&subject.device_name);
        let name = format!("{}-{}", file_stem(&workload), file_stem(devices));
        let letters = name.chars().map(|letter| match letter {
            letter if letter.is_ascii_alphanumeric() || "._".contains(letter) => letter,
            _ => '-',
        });
        letters
            .collect::<String>()
            .trim_matches(['-', '.'])
            .to_owned()
    }

    /// How long all of it would take.
    pub fn estimate(&self) -> Estimate {
        match &self.stage {
            Stage::Simulated(bench) => bench.estimate(&self.outline),
            Stage::Real(bench) => bench.estimate(&self.outline),
        }
    }

    /// Runs what is not there yet, and keeps it in the store, where there is one.
    pub fn run(
        &self,
        mut store: Option<&mut Store>,
        conduct: &Conduct<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Study, SessionError> {
        let of = self.outline.subject.energy_of;
        let mut points = match &store {
            Some(store) => store.points(&self.outline, of)?,
            None => self.no_points(of),
        };
        match &self.stage {
            Stage::Simulated(bench) => {
                bench.run(&self.outline, &mut points, &mut store, conduct, observer)?;
            }
            Stage::Real(bench) => {
                bench.run(&self.outline, &mut points, &mut store, conduct, observer)?;
            }
        }
        let outline = self.outline.clone();
        let study = Study::new(outline.subject, outline.plan, points);
        let nothing = study.points.iter().all(|point| point.outcome().is_none());
        if nothing && let Some(failure) = study.reference.failure() {
            return Err(SessionError::NothingRan {
                study: study.name(),
                reason: failure.reason.clone(),
            });
        }
        Ok(study)
    }

    /// Makes one run, with its samples in the study's folder; the record is the caller's to keep.
    pub fn task(
        &self,
        task: Task,
        folder: &std::path::Path,
        conduct: &Conduct<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, SessionError> {
        match &self.stage {
            Stage::Simulated(bench) => bench.task(&self.outline, task, Some(folder)),
            Stage::Real(bench) => {
                let mut points = self.no_points(self.outline.subject.energy_of);
                bench.task(&self.outline, &mut points, task, folder, conduct, observer)
            }
        }
    }

    fn no_points(&self, of: EnergyOf) -> Vec<Point> {
        let configurations = self.outline.plan.configurations.iter();
        configurations
            .map(|configuration| Point::new(configuration.clone(), of))
            .collect()
    }
}

/// A simulated study, kept nowhere.
pub fn sweep(definition: &Definition) -> Result<Study, SessionError> {
    Sweep::prepare(definition)?.run(None, &Conduct::default(), &mut ())
}

/// An outline made here and now.
fn outline(
    definition: &Definition,
    subject: Subject,
    mut plan: Plan,
    fingerprint: Option<u64>,
) -> Result<(Outline, Lessons), SessionError> {
    plan.until = definition.until();
    plan.order = definition.order.unwrap_or_default();
    let (search, lessons) = search(definition, &subject, &plan)?;
    plan.search = search;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let outline = Outline {
        definition: definition.clone(),
        subject,
        plan,
        fingerprint,
        program: concat!("sweetspot ", env!("CARGO_PKG_VERSION")).to_owned(),
        machine: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        merged: false,
        created_unix_s: since.ok().map(|since| since.as_secs_f64()),
    };
    Ok((outline, lessons))
}

/// What decides which configurations are run, where a strategy is asked for.
fn search(
    definition: &Definition,
    subject: &Subject,
    plan: &Plan,
) -> Result<(Option<Search>, Lessons), SessionError> {
    let Some(strategy) = &definition.strategy else {
        return Ok((None, Lessons::default()));
    };
    let (earlier, lessons) = earlier(definition, subject, plan);
    let search = Search {
        strategy: strategy.clone(),
        objective: definition.objective.clone().unwrap_or("edp".to_owned()),
        limits: definition.limit.clone().unwrap_or_default(),
        most: definition.evaluations,
        earlier,
    };
    let checked = search.check(plan);
    checked.map_err(|error| SessionError::Definition(error.to_string()))?;
    Ok((Some(search), lessons))
}

/// More earlier studies teach little more.
const MOST_LESSONS: usize = 6;

/// What studies of the same GPU over the same axes found, the newest first; the same study counts once.
fn earlier(
    definition: &Definition,
    subject: &Subject,
    plan: &Plan,
) -> (Vec<EarlierStudy>, Lessons) {
    let mut folders: Vec<&String> = definition.prior.iter().flatten().collect();
    folders.sort();
    folders.dedup();
    let mut studies: Vec<(f64, EarlierStudy)> = Vec::new();
    let mut lessons = Lessons::default();
    for folder in folders {
        let read = || {
            let store = Store::open(std::path::Path::new(folder))?;
            let created = store.outline()?.created_unix_s.unwrap_or(0.0);
            Ok::<_, StoreError>((created, store.study(Some(subject.energy_of))?))
        };
        match read() {
            Err(problem) => lessons.damaged.push((folder.clone(), problem.to_string())),
            Ok((created, study)) => match lesson(&study, subject, plan) {
                Ok(lesson) => studies.push((created, lesson)),
                Err(why) => lessons.unused.push((folder.clone(), why)),
            },
        }
    }
    studies.sort_by(|a, b| b.0.total_cmp(&a.0));
    let newest = studies.into_iter().map(|(_, study)| study);
    (newest.take(MOST_LESSONS).collect(), lessons)
}

/// What a study teaches about a plan, or why nothing.
fn lesson(study: &Study, subject: &Subject, plan: &Plan) -> Result<EarlierStudy, String> {
    let (own, name) = (study.device(), subject.devices.first());
    if name.is_none_or(|device| device.name != own.name) {
        return Err(format!("it is of another GPU, {}", own.name));
    }
    if study.plan.axes != plan.axes {
        let axes: Vec<String> = study
            .plan
            .axes
            .iter()
            .map(|axis| axis.name().to_owned())
            .collect();
        return Err(format!("it varies something else: {}", axes.join(", ")));
    }
    let lesson = EarlierStudy::of(study, &plan.axes);
    lesson.ok_or_else(|| "fewer than two of its configurations have time and energy".to_owned())
}

/// `quadro_rtx_6000:8`, as the user would write it.
fn device_name(names: &[String]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match kinds.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => kinds.push((name, 1)),
        }
    }
    let named = kinds.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{name}:{count}"),
    });
    named.collect::<Vec<_>>().join(",")
}

/// The script that an interpreter runs, else the program.
fn command_name(command: &[String]) -> String {
    let script = command.iter().skip(1).find(|word| {
        let extension = std::path::Path::new(word).extension();
        extension.is_some_and(|extension| extension == "py" || extension == "sh")
    });
    script.or(command.first()).cloned().unwrap_or_default()
}

/// Of a path, its last part without an extension.
fn file_stem(text: &str) -> String {
    let path = std::path::Path::new(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml" | "py" | "sh") => path.file_stem(),
        _ => path.file_name(),
    }
    .map_or_else(
        || text.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Whether everything that was run went well.
pub fn all_went_well(study: &Study) -> bool {
    // What a search did not ask for is no failure.
    let unasked = |point: &&Point| study.plan.search.is_some() && point.runs.is_empty();
    let all = study.points.iter().chain([&study.reference]);
    let mut asked = all.filter(|point| !unasked(point));
    asked.all(|point| point.status() == Status::Ok)
}
