//! The description of a study before its first run.

use sweetspot_decide::Preference;
use sweetspot_decide::search::StrategyName;
use sweetspot_stats::Seed;

use crate::prior::read_prior_studies;
use crate::{
    Definition, DefinitionError, EnergyOf, Plan, Point, PriorStudies, SearchError, Study,
    StudySearch, Subject, Until,
};

/// A study without its results: its definition, its devices and workload, and its plan of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// The definition, as the user wrote it.
    pub definition: Definition,
    /// The devices and the workload of the study.
    pub subject: Subject,
    /// The configurations to run, and how often.
    pub plan: Plan,
    /// A hash of everything that simulated runs depend on besides the plan; real runs have none.
    pub fingerprint: Option<u64>,
    /// The program and version that created the study.
    pub program: String,
    /// The name of the machine on which the study was created.
    pub machine: String,
    /// Whether the study was created by merging other studies.
    pub merged: bool,
    /// The time at which the study was created, in seconds since 1970.
    pub created_unix_s: Option<f64>,
}

/// The progress of a running sweep.
pub struct SweepProgress<'a> {
    /// The study that is running, without its results.
    pub outline: &'a Outline,
    /// The runs so far, one point for each configuration.
    pub points: &'a [Point],
    /// The number of runs that are done.
    pub done: usize,
    /// The expected total number of runs, as far as it is known.
    pub planned: usize,
}

/// The error that the reference of a study failed and nothing else ran, so there is nothing to compare.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the reference of {study} failed: {reason}")]
pub struct ReferenceFailed {
    /// The name of the study whose reference failed.
    pub study: String,
    /// Why the reference failed.
    pub reason: String,
}

/// The runs to add to a study. An absent value stays as the study has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AddedRuns {
    /// The number of runs that each configuration has then; the smallest number if `until` is given.
    pub repeat: Option<u32>,
    /// When the study needs no more runs.
    pub until: Option<Until>,
    /// The maximum number of runs of a configuration if `until` is given.
    pub at_most: Option<u32>,
    /// Which of the settings that may be best is recommended; it counts only if `until` asks for a certain
    /// recommendation.
    pub prefer: Option<Preference>,
}

impl AddedRuns {
    /// Whether nothing is to be added.
    pub const fn is_empty(&self) -> bool {
        self.repeat.is_none() && self.until.is_none() && self.at_most.is_none()
    }
}

/// Why runs cannot be added to a study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepeatsError {
    /// The study has more runs of each configuration than were asked for.
    #[error(
        "the study has {0} runs of each configuration already, finished or planned: give a larger number to add runs"
    )]
    Fewer(u32),
    /// A search decides how often each configuration is run.
    #[error(
        "runs cannot be added to the study, because its {0} search chooses what to run: start a new study that runs every configuration"
    )]
    Search(StrategyName),
    /// The values contradict each other or those of the study.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
}

impl Outline {
    /// Creates the outline of a new study on this machine. Also returns the earlier studies that its search cannot use.
    pub fn new(
        definition: &Definition,
        subject: Subject,
        mut plan: Plan,
        fingerprint: Option<u64>,
    ) -> Result<(Self, PriorStudies), SearchError> {
        plan.until = definition.precision_target();
        plan.until_sure = definition.certainty_target();
        plan.order = definition.order.unwrap_or_default();
        let (search, prior) = search(definition, &subject, &plan)?;
        plan.search = search;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let outline = Self {
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
        Ok((outline, prior))
    }

    /// Identifies the study among others: the results of another study that are in its folder are not its own. It stays
    /// the same when runs are added.
    pub fn identity(&self) -> String {
        let created = self.created_unix_s.unwrap_or(0.0).to_bits();
        let identity = Seed::new(self.plan.seed)
            .number(created)
            .label(&self.machine)
            .label(&self.subject.workload.name);
        format!("{:016x}", identity.get())
    }

    /// Adds runs, as if the study had been started with these values. Every run keeps its number and its seed.
    pub fn add_runs(&mut self, added: &AddedRuns) -> Result<(), RepeatsError> {
        if let Some(search) = &self.plan.search {
            return Err(RepeatsError::Search(search.strategy));
        }
        let present = self.plan.repeat;
        if added.repeat.is_some_and(|repeat| repeat < present) {
            return Err(RepeatsError::Fewer(present));
        }
        let mut definition = self.definition.clone();
        // The definition stays as the user wrote it if the number is the same.
        if added.repeat.is_some_and(|repeat| repeat > present) {
            definition.repeat = added.repeat;
        }
        if added.until.is_some() {
            definition.until = added.until;
            // The definition stays as the user wrote it if the preference is the same.
            if definition.is_until_sure()
                && let Some(prefer) = added.prefer
                && prefer != definition.prefer.unwrap_or_default()
            {
                definition.prefer = Some(prefer);
            }
            // A study that has more runs than the new default keeps them.
            if definition.repeat() < present {
                definition.repeat = Some(present);
            }
        }
        definition.at_most = added.at_most.or(definition.at_most);
        if added.until.is_some() || added.at_most.is_some() {
            definition.check()?;
        }
        self.plan.repeat = definition.repeat();
        self.definition = definition;
        self.plan.until = self.definition.precision_target();
        self.plan.until_sure = self.definition.certainty_target();
        Ok(())
    }

    /// Combines the outline with results into a study, or returns an error if the reference failed and nothing else
    /// ran.
    pub fn into_study(self, points: Vec<Point>) -> Result<Study, ReferenceFailed> {
        let study = Study::new(self.subject, self.plan, points);
        let is_empty = study.points.iter().all(|point| point.outcome().is_none());
        match study.reference.failure().filter(|_| is_empty) {
            Some(failure) => Err(ReferenceFailed {
                study: study.name(),
                reason: failure.reason.clone(),
            }),
            None => Ok(study),
        }
    }

    /// Creates a point without runs for each configuration of the plan.
    pub fn empty_points(&self, energy_of: EnergyOf) -> Vec<Point> {
        let configurations = self.plan.configurations.iter();
        configurations
            .map(|configuration| Point::new(configuration.clone(), energy_of))
            .collect()
    }
}

/// Creates the search of a study; `None` if its definition names no strategy.
fn search(
    definition: &Definition,
    subject: &Subject,
    plan: &Plan,
) -> Result<(Option<StudySearch>, PriorStudies), SearchError> {
    let Some(strategy) = definition.strategy else {
        return Ok((None, PriorStudies::default()));
    };
    let (prior, unused) = read_prior_studies(definition, subject, plan);
    let search = StudySearch {
        strategy,
        objective: definition
            .objective
            .unwrap_or(sweetspot_decide::Objective::Edp),
        limits: definition.limit.clone().unwrap_or_default(),
        run_limit: definition.evaluations,
        prior,
    };
    search.check(plan)?;
    Ok((Some(search), unused))
}

/// Writes the names of GPUs as a list such as `v100:2,quadro_rtx_6000`.
pub fn format_gpu_list(names: &[String]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match kinds.last_mut() {
            Some((last, count)) if *last == name => *count += 1,
            _ => kinds.push((name, 1)),
        }
    }
    let parts = kinds.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        count => format!("{name}:{count}"),
    });
    parts.collect::<Vec<_>>().join(",")
}
