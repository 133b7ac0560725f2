//! `sweep`: every configuration of the chosen axes, repeated, kept.
//!
//! One engine in two times: simulated GPUs in virtual time, a real command in real time, through the same
//! plan and the same store.

mod axes;
mod simulated;

use std::num::NonZeroUsize;

use sweetspot_quantity::Seconds;
use sweetspot_study::{
    Definition, EnergyOf, Outline, Plan, Point, RunRecord, Status, Store, Study, Subject, Task,
};

use crate::SessionError;
use simulated::Simulated;

/// More runs than this in one study are a slip of the pen.
const MOST_RUNS: usize = 1_000_000;

/// A sweep that is ready to begin.
pub struct Sweep {
    /// What it is.
    pub outline: Outline,
    stage: Stage,
}

/// Where runs are made.
enum Stage {
    Simulated(Simulated),
}

/// How a sweep is gone about; no result depends on it.
#[derive(Clone, Debug)]
pub struct Conduct {
    /// Simulated runs at a time.
    pub threads: NonZeroUsize,
}

impl Default for Conduct {
    fn default() -> Self {
        Self {
            threads: NonZeroUsize::MIN,
        }
    }
}

/// What a sweep tells while it is under way.
pub trait Follow {
    /// A run begins.
    fn begins(&mut self, progress: &Progress<'_>, task: Task);
    /// A run is done and kept.
    fn done(&mut self, progress: &Progress<'_>, run: &RunRecord);
    /// Something to know at once.
    fn tell(&mut self, note: &str);
}

/// Nobody looks.
impl Follow for () {
    fn begins(&mut self, _: &Progress<'_>, _: Task) {}
    fn done(&mut self, _: &Progress<'_>, _: &RunRecord) {}
    fn tell(&mut self, _: &str) {}
}

/// How long a sweep would take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// On simulated GPUs: how much of their time; computing it takes far less.
    pub simulated: Option<Seconds>,
    /// On real ones: what there is besides the command's own time.
    pub besides: Option<Seconds>,
}

/// How far a sweep is.
pub struct Progress<'a> {
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
        let sweep = Simulated::prepare(definition)?;
        let count = sweep.outline.plan.len();
        if count > MOST_RUNS {
            return Err(SessionError::TooManyRuns {
                count,
                limit: MOST_RUNS,
            });
        }
        Ok(sweep)
    }

    /// A sweep that was begun before, with the same plan.
    pub fn again(outline: &Outline) -> Result<Self, SessionError> {
        let now = Self::prepare(&outline.definition)?;
        let changed = |what: &'static str| Err(SessionError::Changed(what));
        if now.outline.subject.devices != outline.subject.devices {
            return changed("the GPUs are not those of the study");
        }
        if now.outline.fingerprint != outline.fingerprint {
            return changed("the profiles of GPU, node or workload were changed since");
        }
        if now.outline.plan != outline.plan {
            return changed("this version of the program would plan it in another way");
        }
        Ok(Self {
            outline: outline.clone(),
            stage: now.stage,
        })
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
        }
    }

    /// Runs what is not there yet, and keeps it in the store, where there is one.
    pub fn run(
        &self,
        mut store: Option<&mut Store>,
        conduct: &Conduct,
        follow: &mut dyn Follow,
    ) -> Result<Study, SessionError> {
        let of = self.outline.subject.energy_of;
        let mut points = match &store {
            Some(store) => store.points(&self.outline, of)?,
            None => self.no_points(of),
        };
        match &self.stage {
            Stage::Simulated(bench) => {
                bench.run(&self.outline, &mut points, &mut store, conduct, follow)?;
            }
        }
        let outline = self.outline.clone();
        let study = Study::new(outline.subject, outline.plan, points);
        if let Some(failure) = study.reference.failure() {
            return Err(SessionError::NothingRan {
                study: study.name(),
                reason: failure.reason.clone(),
            });
        }
        Ok(study)
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
) -> Outline {
    plan.until = definition.until();
    plan.order = definition.order.unwrap_or_default();
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Outline {
        definition: definition.clone(),
        subject,
        plan,
        fingerprint,
        program: concat!("sweetspot ", env!("CARGO_PKG_VERSION")).to_owned(),
        machine: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        created_unix_s: since.ok().map(|since| since.as_secs_f64()),
    }
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
    let mut all = study.points.iter().chain([&study.reference]);
    all.all(|point| point.status() == Status::Ok)
}
