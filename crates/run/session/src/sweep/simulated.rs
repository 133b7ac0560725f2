//! The pump of virtual time: every core computes runs, one thread keeps them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sweetspot_quantity::Seconds;
use sweetspot_sim::{Mode, Variant};
use sweetspot_study::{
    BATCH, Configuration, Definition, EnergyOf, Outline, Plan, Point, RunEnd, RunRecord, Store,
    Subject, Task, WorkloadInfo, samples_file, write_samples, write_whole,
};
use sweetspot_workload::SignalSource;

use super::axes::{Offer, tried};
use super::{Conduct, Estimate, Stage, Sweep, SweepProgress, device_name, outline};
use crate::SessionError;
use crate::observer::Observer;
use crate::virtual_time::{Bench, Setup};

/// Simulated GPUs with a workload, in each of the forms that are tried.
pub struct Simulated {
    /// By those parameters that make another form.
    forms: Vec<(BTreeMap<String, String>, Bench)>,
    samples: bool,
}

/// Parameters of a simulated workload that make another form of it.
const FORMS: [&str; 3] = ["conv_algorithm", "dataset", "mode"];

impl Simulated {
    /// Puts the workload on the GPUs.
    pub fn prepare(definition: &Definition) -> Result<Sweep, SessionError> {
        let unknown = |name: &&String| *name != BATCH && !FORMS.contains(&name.as_str());
        if let Some(name) = definition.axis.keys().find(unknown) {
            return Err(SessionError::Parameter {
                name: name.clone(),
                problem: format!(
                    "a simulated workload has the parameters {BATCH}, {}",
                    FORMS.join(", ")
                ),
            });
        }
        let first = |name: &str| {
            let axis = definition.axis.get(name)?;
            axis.0
                .split(',')
                .next()
                .map(|value| (name.to_owned(), value.trim().to_owned()))
        };
        let form: BTreeMap<String, String> = FORMS.iter().filter_map(|name| first(name)).collect();
        let bench = bench(definition, &form)?;
        if definition.energy_of == Some(EnergyOf::Node) && bench.node.is_none() {
            return Err(SessionError::NodeEnergy);
        }
        let batch = definition.batch.unwrap_or(bench.workload.profile.batch);
        let names: Vec<String> = bench.gpus.iter().map(|gpu| gpu.name.clone()).collect();
        let devices = bench.descriptors();
        let mut tried = tried(
            definition,
            &Offer {
                devices: &devices,
                names: &names,
                usual: [(BATCH.to_owned(), batch.to_string())].into(),
            },
        )?;
        for configuration in tried
            .configurations
            .iter_mut()
            .chain([&mut tried.reference])
        {
            if configuration.batch().is_none() {
                if let Some(text) = configuration.parameters.get(BATCH) {
                    return Err(SessionError::Parameter {
                        name: BATCH.to_owned(),
                        problem: format!("`{text}` is no number of items"),
                    });
                }
                *configuration = configuration.clone().with_batch(batch);
            }
        }
        let subject = format!(
            "{} {}",
            bench.gpus[0].profile.name, bench.workload.profile.network
        );
        let workload = workload_info(&bench, definition, batch);
        let mut simulated = Self {
            forms: vec![(form, bench)],
            samples: definition.samples(),
        };
        let plan = Plan::new(
            tried.axes,
            tried.configurations,
            tried.reference,
            definition.repeat(),
            definition.seed(),
            subject,
        );
        simulated.make_forms(definition, &plan)?;
        let fingerprint = simulated.forms.iter().fold(0, |print: u64, (_, bench)| {
            print.rotate_left(1) ^ bench.fingerprint()
        });
        let subject = Subject {
            energy_of: definition.energy_of.unwrap_or_default(),
            devices,
            device_name: device_name(&names),
            workload,
        };
        let (outline, lessons) = outline(definition, subject, plan, Some(fingerprint))?;
        Ok(Sweep {
            outline,
            lessons,
            stage: Stage::Simulated(simulated),
        })
    }

    /// Every form that the plan needs, and whether its work can be done at all; a batch that does not fit
    /// is for the study to tell.
    fn make_forms(&mut self, definition: &Definition, plan: &Plan) -> Result<(), SessionError> {
        for configuration in &plan.configurations {
            let form = form_of(configuration);
            if !self.forms.iter().any(|(known, _)| *known == form) {
                let bench = bench(definition, &form)?;
                self.forms.push((form, bench));
            }
        }
        let reference = &plan.configurations[plan.reference];
        let batch = reference.batch().unwrap_or(1);
        let bench = self.bench_of(reference);
        bench.jobs(batch, reference.gpus as usize, None).map(drop)
    }

    fn bench_of(&self, configuration: &Configuration) -> &Bench {
        let form = form_of(configuration);
        let known = self.forms.iter().find(|(known, _)| *known == form);
        &known.unwrap_or(&self.forms[0]).1
    }

    /// One run, and its samples where they are kept.
    pub fn task(
        &self,
        outline: &Outline,
        task: Task,
        folder: Option<&std::path::Path>,
    ) -> Result<RunRecord, SessionError> {
        let plan = &outline.plan;
        let configuration = &plan.configurations[task.configuration];
        let bench = self.bench_of(configuration);
        let seed = Some(plan.seed(task));
        let Some(folder) = folder.filter(|_| self.samples) else {
            let mut record = RunRecord::new(task, bench.run(configuration, seed)?);
            record.enforced = bench.enforced(configuration);
            return Ok(record);
        };
        let (end, series) = bench.run_sampled(configuration, seed)?;
        let file = samples_file(folder, plan.id(task));
        let bytes = write_samples(&series).map_err(std::io::Error::other);
        let written = bytes.and_then(|bytes| write_whole(&file, &bytes));
        written.map_err(|problem| SessionError::Keep { file, problem })?;
        let mut record = RunRecord::new(task, end);
        record.enforced = bench.enforced(configuration);
        Ok(record)
    }

    /// The GPUs' time, from one run of each configuration.
    pub fn estimate(&self, outline: &Outline) -> Estimate {
        let plan = &outline.plan;
        let runs = plan.configurations.iter().map(|configuration| {
            match self.bench_of(configuration).run(configuration, None) {
                Ok(RunEnd::Done(run)) => run.time,
                _ => Seconds::ZERO,
            }
        });
        let all: Seconds = runs.sum();
        Estimate::Simulated(all * (plan.len() as f64 / plan.configurations.len() as f64))
    }

    /// All that is not there yet.
    pub fn run(
        &self,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        conduct: &Conduct<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(), SessionError> {
        let of = outline.subject.energy_of;
        let folder = store.as_ref().map(|store| store.folder().to_owned());
        // Where nothing is kept there is nothing to say about it.
        let signals = folder
            .as_ref()
            .map(|_| SignalSource::listen())
            .transpose()?;
        let received = || signals.as_ref().and_then(SignalSource::received);
        loop {
            // Round by round, so that what failed is not tried again, however many threads there are.
            let (pending, planned) = outline.plan.round(points, of);
            if pending.is_empty() {
                return Ok(());
            }
            let done = points.iter().map(|point| point.runs.len()).sum();
            let mut count = (done, planned);
            let next = AtomicUsize::new(0);
            let stop = AtomicBool::new(false);
            let work = |sender: SyncSender<Result<RunRecord, SessionError>>| {
                while !stop.load(Ordering::Relaxed) && received().is_none() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = pending.get(index) else {
                        return;
                    };
                    let run = self.task(outline, *task, folder.as_deref());
                    if sender.send(run).is_err() {
                        return;
                    }
                }
            };
            let (sender, runs) = sync_channel(QUEUE);
            std::thread::scope(|scope| {
                // Where no more threads can be had, those there are do the work.
                let started = (0..conduct.threads.get().min(pending.len()))
                    .map_while(|_| {
                        let sender = sender.clone();
                        std::thread::Builder::new()
                            .spawn_scoped(scope, || work(sender))
                            .ok()
                    })
                    .count();
                if started == 0 {
                    return Err(SessionError::NoThread);
                }
                drop(sender);
                // With it goes the queue: whoever waits for room in it is then told to end.
                let runs = runs;
                let kept = keep(&runs, outline, points, store, observer, &mut count);
                stop.store(true, Ordering::Relaxed);
                kept
            })?;
            if let Some(signal) = received() {
                let (done, planned) = count;
                return Err(SessionError::Stopped {
                    signal,
                    done,
                    planned,
                    restored: true,
                });
            }
        }
    }
}

/// Runs that wait to be kept, at most: they hold the computing back, not the memory.
const QUEUE: usize = 64;

/// Commits what has come in the meantime together: one run more costs nothing, one commit more does.
fn keep(
    runs: &Receiver<Result<RunRecord, SessionError>>,
    outline: &Outline,
    points: &mut [Point],
    store: &mut Option<&mut Store>,
    observer: &mut dyn Observer,
    (done, planned): &mut (usize, usize),
) -> Result<(), SessionError> {
    let plan = &outline.plan;
    while let Ok(first) = runs.recv() {
        let mut batch = vec![first?];
        while let Some(more) = runs.try_recv().ok().filter(|_| batch.len() < QUEUE) {
            batch.push(more?);
        }
        let numbered = batch.into_iter().map(|run| (plan.id(run.task), run));
        let numbered: Vec<(u64, RunRecord)> = numbered.collect();
        if let Some(store) = store {
            store.record(&numbered)?;
        }
        for (_, run) in numbered {
            let place = run.task.configuration;
            points[place].add(run.clone());
            *done += 1;
            let progress = SweepProgress {
                outline,
                points,
                done: *done,
                planned: *planned,
            };
            observer.run_done(&progress, &run);
        }
    }
    Ok(())
}

fn form_of(configuration: &Configuration) -> BTreeMap<String, String> {
    let parameters = configuration.parameters.iter();
    parameters
        .filter(|(name, _)| FORMS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn bench(definition: &Definition, form: &BTreeMap<String, String>) -> Result<Bench, SessionError> {
    let network = definition.network.clone().ok_or(SessionError::NoNetwork)?;
    let of = |name: &str, given: &Option<String>| form.get(name).cloned().or(given.clone());
    let mode = match of("mode", &definition.mode).as_deref() {
        None => None,
        Some("train") => Some(Mode::Train),
        Some("infer") => Some(Mode::Infer),
        Some(other) => {
            return Err(SessionError::Parameter {
                name: "mode".to_owned(),
                problem: format!("`{other}` is neither train nor infer"),
            });
        }
    };
    Bench::new(&Setup {
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

fn workload_info(bench: &Bench, definition: &Definition, batch: u64) -> WorkloadInfo {
    let profile = &bench.workload.profile;
    let is_axis = |name: &str| definition.axis.contains_key(name);
    let fixed = |name: &str, form: Option<String>| form.filter(|_| !is_axis(name));
    let algorithm = profile
        .conv_algorithms
        .first()
        .map(|form| form.name.clone());
    let dataset = profile.datasets.first().map(|form| form.name.clone());
    WorkloadInfo {
        name: bench.workload.name.clone(),
        network: Some(profile.network.clone()),
        mode: fixed("mode", Some(profile.mode.to_string())),
        conv_algorithm: fixed("conv_algorithm", algorithm),
        dataset: fixed("dataset", dataset),
        batch: (!is_axis(BATCH)).then_some(batch),
        items: Some(bench.items),
        scaled_from: bench.gpus[0].work.scaled_from.clone(),
        command: None,
    }
}
