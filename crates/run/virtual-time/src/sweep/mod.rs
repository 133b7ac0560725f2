//! `sweep` in virtual time, on simulated GPUs.

mod run;

pub use run::RunCounts;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use sweetspot_quantity::Seconds;
use sweetspot_sim::{Mode, Variant};
use sweetspot_study::{
    AxesError, BATCH_PARAMETER, Configuration, Definition, EnergyOf, Outline, Plan, PriorStudies,
    RunEnding, RunRecord, Study, StudyError, Subject, SupportedKnobs, Task, WorkloadInfo,
    format_gpu_list, resolve_axes, samples_file, write_atomically, write_samples,
};

use crate::{JobSpec, SimulatedJob, SimulationError};

/// A sweep on simulated GPUs.
pub struct SimulatedSweep {
    /// The job of each variant of the workload; the parameters that select the variant are the key.
    variants: Vec<(BTreeMap<String, String>, SimulatedJob)>,
    samples: bool,
}

/// A sweep on simulated GPUs that is ready to run.
pub struct PreparedSweep {
    /// The study's plan, devices and workload.
    pub outline: Outline,
    /// The earlier studies that the search cannot learn from, with the reasons.
    pub prior: PriorStudies,
    /// What the user should know about the values of the axes.
    pub notes: Vec<String>,
    /// The simulation that makes the runs.
    pub sweep: SimulatedSweep,
}

/// The parameters that select a variant of a simulated workload.
const VARIANT_PARAMETERS: [&str; 3] = ["conv_algorithm", "dataset", "mode"];

impl SimulatedSweep {
    /// Checks a definition and prepares its runs; nothing is run yet.
    pub fn prepare(definition: &Definition) -> Result<PreparedSweep, SimulationError> {
        definition.check()?;
        let unknown = |name: &&String| {
            *name != BATCH_PARAMETER && !VARIANT_PARAMETERS.contains(&name.as_str())
        };
        if let Some(name) = definition.axis.keys().find(unknown) {
            return Err(AxesError::Parameter {
                name: name.clone(),
                problem: format!(
                    "a simulated workload has only the parameters {BATCH_PARAMETER}, {}",
                    VARIANT_PARAMETERS.join(", ")
                ),
            }
            .into());
        }
        let first = |name: &str| {
            let axis = definition.axis.get(name)?;
            axis.0
                .split(',')
                .next()
                .map(|value| (name.to_owned(), value.trim().to_owned()))
        };
        let selected: BTreeMap<String, String> = VARIANT_PARAMETERS
            .iter()
            .filter_map(|name| first(name))
            .collect();
        let job = job(definition, &selected)?;
        if definition.energy_of == Some(EnergyOf::Node) && job.node.is_none() {
            return Err(SimulationError::NoNode);
        }
        let batch = definition.batch.unwrap_or(job.workload.profile.batch);
        let names: Vec<String> = job.gpus.iter().map(|gpu| gpu.name.clone()).collect();
        let devices = job.descriptors();
        let mut resolved = resolve_axes(
            definition,
            &SupportedKnobs {
                packages: &[],
                devices: &devices,
                names: &names,
                usual_parameters: [(BATCH_PARAMETER.to_owned(), batch.to_string())].into(),
            },
        )?;
        let configurations = resolved.configurations.iter_mut();
        for configuration in configurations.chain([&mut resolved.reference]) {
            set_missing_batch(configuration, batch)?;
        }
        let subject = format!(
            "{} {}",
            job.gpus[0].profile.name, job.workload.profile.network
        );
        let workload = workload_info(&job, definition, batch);
        let mut sweep = Self {
            variants: vec![(selected, job)],
            samples: definition.samples(),
        };
        let plan = Plan::new(
            resolved.axes,
            resolved.configurations,
            resolved.reference,
            definition.repeat(),
            definition.seed(),
            subject,
        );
        sweep.add_variants(definition, &plan)?;
        let fingerprint = sweep.variants.iter().fold(0, |print: u64, (_, job)| {
            print.rotate_left(1) ^ job.fingerprint()
        });
        let subject = Subject {
            energy_of: definition.energy_of.unwrap_or_default(),
            devices,
            device_name: format_gpu_list(&names),
            workload,
        };
        let (outline, prior) = Outline::new(definition, subject, plan, Some(fingerprint))?;
        Ok(PreparedSweep {
            outline,
            prior,
            notes: resolved.notes,
            sweep,
        })
    }

    /// Adds a job for every variant that the plan needs, and checks that the reference configuration can run.
    /// A batch that does not fit into memory is a result of the study, not an error.
    fn add_variants(
        &mut self,
        definition: &Definition,
        plan: &Plan,
    ) -> Result<(), SimulationError> {
        for configuration in &plan.configurations {
            let selected = variant_of(configuration);
            if !self.variants.iter().any(|(known, _)| *known == selected) {
                let job = job(definition, &selected)?;
                self.variants.push((selected, job));
            }
        }
        let reference = &plan.configurations[plan.reference];
        let batch = reference.batch().unwrap_or(1);
        let job = self.job_of(reference);
        job.jobs(batch, reference.gpus as usize, None).map(drop)
    }

    /// The job of the variant that a configuration selects.
    fn job_of(&self, configuration: &Configuration) -> &SimulatedJob {
        let selected = variant_of(configuration);
        let known = self.variants.iter().find(|(known, _)| *known == selected);
        &known.unwrap_or(&self.variants[0]).1
    }

    /// Makes one run; its samples are written to `folder`, if they are stored.
    pub fn run_task(
        &self,
        outline: &Outline,
        task: Task,
        folder: Option<&std::path::Path>,
    ) -> Result<RunRecord, SimulationError> {
        let plan = &outline.plan;
        let configuration = &plan.configurations[task.configuration];
        let job = self.job_of(configuration);
        let seed = Some(plan.seed(task));
        let Some(folder) = folder.filter(|_| self.samples) else {
            let mut record = RunRecord::new(task, job.run(configuration, seed)?);
            record.reduced_caps = job.reduced_caps(configuration);
            return Ok(record);
        };
        let (end, series) = job.run_sampled(configuration, seed)?;
        let file = samples_file(folder, plan.id(task));
        let bytes = write_samples(&series).map_err(std::io::Error::other);
        let written = bytes.and_then(|bytes| write_atomically(&file, &bytes));
        written.map_err(|problem| StudyError::Samples { file, problem })?;
        let mut record = RunRecord::new(task, end);
        record.reduced_caps = job.reduced_caps(configuration);
        Ok(record)
    }

    /// The time that the runs take on the GPUs, estimated from one run of each configuration.
    pub fn estimate(&self, outline: &Outline) -> Seconds {
        let plan = &outline.plan;
        let times = plan.configurations.iter().map(|configuration| {
            match self.job_of(configuration).run(configuration, None) {
                Ok(RunEnding::Done(run)) => run.time,
                _ => Seconds::ZERO,
            }
        });
        let all: Seconds = times.sum();
        all * (plan.len() as f64 / plan.configurations.len() as f64)
    }
}

/// Sets the batch size of a configuration that has none.
fn set_missing_batch(configuration: &mut Configuration, batch: u64) -> Result<(), AxesError> {
    if configuration.batch().is_some() {
        return Ok(());
    }
    if let Some(text) = configuration.parameters.get(BATCH_PARAMETER) {
        return Err(AxesError::Parameter {
            name: BATCH_PARAMETER.to_owned(),
            problem: format!("`{text}` is not a number of items"),
        });
    }
    *configuration = configuration.clone().with_batch(batch);
    Ok(())
}

/// Runs a simulated study without storing it.
pub fn sweep(definition: &Definition, threads: NonZeroUsize) -> Result<Study, SimulationError> {
    let PreparedSweep { outline, sweep, .. } = SimulatedSweep::prepare(definition)?;
    let mut points = outline.empty_points(outline.subject.energy_of);
    sweep.run(
        &outline,
        &mut points,
        &mut None,
        threads,
        &|| false,
        &mut |_, _| {},
    )?;
    Ok(outline.into_study(points)?)
}

/// The parameters of a configuration that select a variant of the workload.
fn variant_of(configuration: &Configuration) -> BTreeMap<String, String> {
    let parameters = configuration.parameters.iter();
    parameters
        .filter(|(name, _)| VARIANT_PARAMETERS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Creates the job of a variant of the workload.
fn job(
    definition: &Definition,
    selected: &BTreeMap<String, String>,
) -> Result<SimulatedJob, SimulationError> {
    let network = definition
        .network
        .clone()
        .ok_or(SimulationError::NoNetwork)?;
    let of = |name: &str, given: &Option<String>| selected.get(name).cloned().or(given.clone());
    let mode = match of("mode", &definition.mode).as_deref() {
        None => None,
        Some("train") => Some(Mode::Train),
        Some("infer") => Some(Mode::Infer),
        Some(other) => {
            return Err(AxesError::Parameter {
                name: "mode".to_owned(),
                problem: format!("`{other}` is neither train nor infer"),
            }
            .into());
        }
    };
    SimulatedJob::new(&JobSpec {
        gpus: definition.simulate.clone(),
        node: definition.node.clone(),
        network,
        variant: Variant {
            mode,
            conv_algorithm: of("conv_algorithm", &definition.conv_algorithm),
            dataset: of("dataset", &definition.dataset),
        },
        items: definition.items,
    })
}

/// Describes the workload for the study.
fn workload_info(job: &SimulatedJob, definition: &Definition, batch: u64) -> WorkloadInfo {
    let profile = &job.workload.profile;
    let is_axis = |name: &str| definition.axis.contains_key(name);
    let fixed = |name: &str, variant: Option<String>| variant.filter(|_| !is_axis(name));
    let algorithm = profile
        .conv_algorithms
        .first()
        .map(|algorithm| algorithm.name.clone());
    let dataset = profile.datasets.first().map(|dataset| dataset.name.clone());
    WorkloadInfo {
        name: job.workload.name.clone(),
        network: Some(profile.network.clone()),
        mode: fixed("mode", Some(profile.mode.to_string())),
        conv_algorithm: fixed("conv_algorithm", algorithm),
        dataset: fixed("dataset", dataset),
        batch: (!is_axis(BATCH_PARAMETER)).then_some(batch),
        items: Some(job.items),
        scaled_from: job.gpus[0].work.scaled_from.clone(),
        command: None,
    }
}
