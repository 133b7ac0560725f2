//! A job: a workload on a GPU at a batch size, described by the phases of its iterations.

mod limits;
mod phases;

use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_stats::Seed;

pub use self::limits::JobError;
use self::limits::{check_length, check_memory};
use self::phases::phases;
use crate::physics::Load;
use crate::profile::{GpuProfile, ItemWork, WorkloadProfile};

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
