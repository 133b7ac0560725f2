//! A job: a workload on a GPU at a batch size, described by the phases of its iterations.

use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_stats::Seed;

use crate::physics::Load;
use crate::profile::{GpuProfile, ItemWork, IterationWork, PartWork, StepLine, WorkloadProfile};

/// The batch size and the number of items that the user asks for; if `None`, those of the study that the
/// profile was fitted to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// The number of items in a batch.
    pub batch: Option<u64>,
    /// The total number of items in the run.
    pub items: Option<u64>,
}

impl JobRequest {
    /// The part of the request that each of `gpus` GPUs does.
    pub fn share(self, workload: &WorkloadProfile, gpus: usize) -> Self {
        let gpus = gpus as u64;
        let batch = self.batch.unwrap_or(workload.batch);
        Self {
            batch: Some(if workload.split_batch {
                batch.div_ceil(gpus)
            } else {
                batch
            }),
            items: self.items.map(|items| items.div_ceil(gpus)),
        }
    }
}

/// The random differences of one run: factors on its work and its switching power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    work: f64,
    switching: f64,
}

impl Variation {
    /// No random differences: both factors are 1.
    pub const NONE: Self = Self {
        work: 1.0,
        switching: 1.0,
    };

    /// Draws the random differences of a run: two independent factors around 1 with standard deviation
    /// `noise`.
    pub fn draw(noise: Ratio, seed: Seed) -> Self {
        let factor = |label| libm::exp(noise.get() * seed.label(label).normal());
        Self {
            work: factor("work"),
            switching: factor("switching"),
        }
    }
}

/// The name of the phase in which gradients become ready.
const BACKWARD: &str = "backward";

/// A named part of an iteration, such as `forward`.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The index of the phase's name in [`Job::phase_names`].
    pub name: usize,
    /// The load that the program puts on the GPU during the phase.
    pub load: Load,
}

/// Why a workload cannot run on a GPU.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// The batch does not fit into the device memory.
    #[error(
        "a batch of {batch} needs {need:.1} of device memory, but {gpu} has {capacity:.1}; {}",
        match largest { 0 => "not even one item fits".to_owned(), n => format!("the largest that fits is {n}") }
    )]
    OutOfMemory {
        /// The product name of the GPU.
        gpu: String,
        /// The requested batch size.
        batch: u64,
        /// The memory that the batch needs.
        need: Bytes,
        /// The memory that the GPU has.
        capacity: Bytes,
        /// The largest batch size that fits; 0 if none does.
        largest: u64,
    },
    /// The run would take longer than is allowed, which is about four months.
    #[error("a run would take {:.0} hours, more than the limit of {:.0}: use fewer items", time.get() / 3600.0, limit.get() / 3600.0)]
    TooLong {
        /// The time of the run at the default clocks.
        time: Seconds,
        /// The longest run that is allowed.
        limit: Seconds,
    },
    /// The workload profile gives the work only for this GPU, which has no GPU profile. Therefore the work
    /// cannot be scaled to other GPUs.
    #[error(
        "the workload profile is for the GPU `{0}`, which has no GPU profile: the work cannot be scaled to other GPUs"
    )]
    UnknownBase(String),
}

/// A workload on one GPU at a batch size, ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// The number of items in a batch.
    pub batch: u64,
    /// The total number of items in the run.
    pub items: u64,
    phase_names: Vec<String>,
    startup: Option<Phase>,
    iteration: Vec<Phase>,
    iterations: u64,
    last: Vec<Phase>,
    switching: Ratio,
    memory_activity: Ratio,
}

/// The exchange of gradients between the GPUs of a job in each iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GradientExchange {
    /// The time that the whole exchange takes.
    pub time: Seconds,
    /// The largest share of the exchange that can run during the backward pass. The rest belongs to the last gradients
    /// of the pass.
    pub overlap: Ratio,
    /// The switching and memory power of a GPU that waits for others, relative to its power while it
    /// computes.
    pub activity: Ratio,
}

impl GradientExchange {
    /// The time for which GPUs wait for the exchange after a backward pass of this length. Gradients are sent while the
    /// pass computes the others, so that `overlap` of the exchange is hidden, but not more than the pass takes.
    pub fn exposed_after(&self, backward: Seconds) -> Seconds {
        let of_last_gradients = self.time * (1.0 - self.overlap.get());
        of_last_gradients.max(self.time - backward)
    }
}

/// The work that one item causes on one GPU, as the profile gives it or scaled from another GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledWork {
    on: ItemWork,
    /// The name of the GPU whose work was scaled; `None` if the profile gives the work for this GPU.
    pub scaled_from: Option<String>,
}

impl ScaledWork {
    /// The default number of items in a run.
    pub fn items(&self) -> u64 {
        self.on.items
    }

    /// The work of an item on a GPU: as the profile gives it, or scaled from the first GPU that the profile
    /// lists. `find` returns a GPU's own name and profile for a name or path.
    pub fn on(
        workload: &WorkloadProfile,
        gpu_name: &str,
        gpu: &GpuProfile,
        find: impl Fn(&str) -> Option<(String, GpuProfile)>,
    ) -> Result<Self, JobError> {
        let by_name = workload.on.iter().find(|on| on.gpu == gpu_name);
        let is_this = |on: &&ItemWork| {
            find(&on.gpu).is_some_and(|(name, profile)| name == gpu_name || profile == *gpu)
        };
        if let Some(on) = by_name.or_else(|| workload.on.iter().find(is_this)) {
            return Ok(Self {
                on: on.clone(),
                scaled_from: None,
            });
        }
        let mut on = workload.on[0].clone();
        let (name, from) = find(&on.gpu).ok_or_else(|| JobError::UnknownBase(on.gpu.clone()))?;
        let arithmetic = |gpu: &GpuProfile| gpu.core.units as f64 * gpu.core.default.get();
        on.core = on.core * (arithmetic(&from) / arithmetic(gpu));
        on.memory = on.memory * (from.memory.bandwidth / gpu.memory.bandwidth);
        Ok(Self {
            on,
            scaled_from: Some(name),
        })
    }
}

impl Job {
    /// Creates the job of a workload on the GPU that `work` is for.
    pub fn new(
        workload: &WorkloadProfile,
        work: &ScaledWork,
        gpu: &GpuProfile,
        request: JobRequest,
        variation: Variation,
    ) -> Result<Self, JobError> {
        let on = &work.on;
        let batch = request.batch.unwrap_or(workload.batch);
        let items = request.items.unwrap_or(on.items);
        check_memory(workload, gpu, batch.min(items))?;
        check_length(on, batch, items)?;
        let iteration = |batch| phases(workload, on, batch, variation);
        let mut phase_names = vec!["host".to_owned()];
        phase_names.extend(workload.phases.iter().map(|phase| phase.name.clone()));
        let startup = (on.startup > Seconds::ZERO).then(|| {
            phase_names.push("startup".to_owned());
            Phase {
                name: phase_names.len() - 1,
                load: Load::Waiting {
                    host: on.startup * variation.work,
                },
            }
        });
        let last = match items % batch {
            0 => Vec::new(),
            rest => iteration(rest),
        };
        Ok(Self {
            batch,
            items,
            phase_names,
            startup,
            iteration: iteration(batch),
            iterations: items / batch,
            last,
            switching: on.switching * variation.switching,
            memory_activity: on.memory_activity,
        })
    }

    /// The job without its startup phases, for use as a later part of a longer job.
    pub fn without_startup(mut self) -> Self {
        self.startup = None;
        self
    }

    /// The load of a GPU that waits `time` for the other GPUs. `activity` is its power relative to computing.
    pub fn exchange(&self, time: Seconds, activity: Ratio) -> Load {
        if activity <= Ratio::ZERO {
            return Load::Waiting { host: time };
        }
        Load::Exchange {
            time,
            switching: self.switching * activity.get(),
            memory_activity: self.memory_activity * activity.get(),
        }
    }

    /// Whether gradients become ready during the phase with this index: it is the backward pass or, in a workload
    /// without a phase of that name, any phase of its kernels.
    pub(crate) fn is_backward(&self, phase: usize) -> bool {
        match self.phase_names.iter().position(|name| name == BACKWARD) {
            Some(backward) => phase == backward,
            None => phase > 0 && self.startup.as_ref().is_none_or(|own| own.name != phase),
        }
    }

    /// The length of the backward pass among these phases, at the default clocks.
    pub fn backward_time(&self, phases: &[Phase]) -> Seconds {
        let backward = phases.iter().filter(|phase| self.is_backward(phase.name));
        let times = backward.map(|phase| match phase.load {
            Load::Kernels {
                launch,
                core,
                memory,
                ..
            } => launch.max(core + memory),
            _ => Seconds::ZERO,
        });
        times.sum()
    }

    /// The names of all phases; the first is `host`.
    pub fn phase_names(&self) -> &[String] {
        &self.phase_names
    }

    /// The phases before the first iteration.
    pub fn startup(&self) -> &[Phase] {
        self.startup.as_slice()
    }

    /// The phases of an iteration, and the number of iterations.
    pub fn iterations(&self) -> (&[Phase], u64) {
        (&self.iteration, self.iterations)
    }

    /// The phases of the last iteration, if its batch is smaller than the others; empty otherwise.
    pub fn last(&self) -> &[Phase] {
        &self.last
    }
}

/// Checks that a batch fits into the device memory.
fn check_memory(workload: &WorkloadProfile, gpu: &GpuProfile, batch: u64) -> Result<(), JobError> {
    let memory = &workload.memory;
    let need = memory.fixed + memory.per_item * batch as f64;
    let capacity = gpu.memory.capacity;
    if need <= capacity {
        return Ok(());
    }
    let room = ((capacity - memory.fixed) / memory.per_item).get();
    Err(JobError::OutOfMemory {
        gpu: gpu.name.clone(),
        batch,
        need,
        capacity,
        largest: if room >= 1.0 { room as u64 } else { 0 },
    })
}

/// The longest run that is simulated: a longer one is probably a typing error.
const MAX_RUN_TIME: Seconds = Seconds::new(1e7);

/// Checks that a run takes at most [`MAX_RUN_TIME`].
fn check_length(on: &ItemWork, batch: u64, items: u64) -> Result<(), JobError> {
    let items = items as f64;
    let device = (on.core + on.memory + on.host) * items;
    let each = on.host_per_batch + on.launch + on.memory_per_batch;
    let time = on.startup + device + each * (items / batch as f64).ceil();
    if time <= MAX_RUN_TIME {
        Ok(())
    } else {
        Err(JobError::TooLong {
            time,
            limit: MAX_RUN_TIME,
        })
    }
}

impl PartWork {
    /// The part as a phase of a job.
    fn to_phase(&self, variation: Variation) -> Phase {
        Phase {
            name: self.phase + 1,
            load: Load::Kernels {
                launch: self.launch * variation.work,
                core: self.core * variation.work,
                memory: self.memory * variation.work,
                switching: self.switching * variation.switching,
                memory_activity: self.memory_activity,
            },
        }
    }
}

impl IterationWork {
    /// The loads that an iteration puts on the GPU.
    pub fn loads(&self) -> Vec<Load> {
        let phases = self.parts.iter().map(|part| part.to_phase(Variation::NONE));
        phases.map(|phase| phase.load).collect()
    }
}

/// Computes the phases of a workload iteration with this batch size.
fn phases(
    workload: &WorkloadProfile,
    on: &ItemWork,
    batch: u64,
    variation: Variation,
) -> Vec<Phase> {
    // The share of the cores that a batch uses.
    let busy_share = |batch: f64| batch / (batch + workload.half_speed_batch);
    let items = batch as f64;
    let busy = busy_share(items) / busy_share(workload.batch as f64);
    let host = Phase {
        name: 0,
        load: Load::Waiting {
            host: (on.host_per_batch + on.host * items) * variation.work,
        },
    };
    if let Some(work) = IterationWork::interpolate(&on.iterations, batch) {
        let parts = work.parts.iter().map(|part| part.to_phase(variation));
        return std::iter::once(host).chain(parts).collect();
    }
    let kernels = workload
        .phases
        .iter()
        .enumerate()
        .map(|(index, share)| Phase {
            name: index + 1,
            load: match on.steps.get(&share.name) {
                Some(line) => line_load(line, on, batch, variation),
                None => Load::Kernels {
                    launch: on.launch * share.core * variation.work,
                    core: on.core * share.core * (items / busy * variation.work),
                    memory: (on.memory * items + on.memory_per_batch)
                        * share.memory
                        * variation.work,
                    switching: on.switching * share.switching * (busy * variation.switching),
                    memory_activity: on.memory_activity,
                },
            },
        });
    std::iter::once(host).chain(kernels).collect()
}

/// The load of a phase whose work is a line.
fn line_load(line: &StepLine, on: &ItemWork, batch: u64, variation: Variation) -> Load {
    let time = line.time(batch) * variation.work;
    Load::Kernels {
        launch: Seconds::ZERO,
        core: time * (1.0 - line.memory.get()),
        memory: time * line.memory.get(),
        switching: line.switching(batch) * variation.switching,
        memory_activity: on.memory_activity,
    }
}
