//! A workload on a certain GPU with a certain batch size: the phases of its iterations.

use sweetspot_quantity::{Bytes, Ratio, Seconds};
use sweetspot_stats::Seed;

use crate::physics::Load;
use crate::profile::{GpuProfile, On, WorkloadProfile};

/// What the user asks of a workload; what is not said is as in the study.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Items in a batch.
    pub batch: Option<u64>,
    /// Items in all.
    pub items: Option<u64>,
}

impl Order {
    /// The part of one of so many GPUs that do the workload together.
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

/// How one run differs from the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    work: f64,
    switching: f64,
}

impl Variation {
    /// A run without noise.
    pub const NONE: Self = Self {
        work: 1.0,
        switching: 1.0,
    };

    /// Drawn for a run: two independent factors, on all work and on switching power.
    pub fn draw(noise: Ratio, seed: Seed) -> Self {
        let factor = |label| libm::exp(noise.get() * seed.label(label).normal());
        Self {
            work: factor("work"),
            switching: factor("switching"),
        }
    }
}

/// A named part of an iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Index into [`Job::phase_names`].
    pub name: usize,
    /// What it does to the GPU.
    pub load: Load,
}

/// Why a workload cannot run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// The batch does not fit.
    #[error(
        "a batch of {batch} needs {need:.1} of device memory and {gpu} has {capacity:.1}; {}",
        match largest { 0 => "not even one item fits".to_owned(), n => format!("the largest that fits is {n}") }
    )]
    OutOfMemory {
        /// The GPU's name.
        gpu: String,
        /// Items asked for.
        batch: u64,
        /// What they take.
        need: Bytes,
        /// What there is.
        capacity: Bytes,
        /// The largest batch that fits; 0 where none does.
        largest: u64,
    },
    /// It would take months.
    #[error("a run would take {:.0} hours, more than {:.0}: take fewer items", time.get() / 3600.0, limit.get() / 3600.0)]
    TooLong {
        /// At the default clocks.
        time: Seconds,
        /// The longest.
        limit: Seconds,
    },
    /// The work is known for a GPU that is not: it cannot be scaled.
    #[error("the work is given for the GPU `{0}`, of which there is no profile to scale it from")]
    UnknownBase(String),
}

/// A workload ready to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Items in a batch.
    pub batch: u64,
    /// Items in all.
    pub items: u64,
    phase_names: Vec<String>,
    startup: Option<Phase>,
    iteration: Vec<Phase>,
    iterations: u64,
    last: Vec<Phase>,
    switching: Ratio,
    memory_activity: Ratio,
}

/// What the GPUs of a job do after each iteration to agree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exchange {
    /// How long it takes once all are there.
    pub time: Seconds,
    /// Power of a GPU that waits for it, against its power at work.
    pub activity: Ratio,
}

/// The work of one item on a certain GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    on: On,
    /// The GPU for which the work is known, where it was scaled from another than this.
    pub scaled_from: Option<String>,
}

impl Work {
    /// Items in a run, where the user does not say.
    pub fn items(&self) -> u64 {
        self.on.items
    }

    /// As known for this GPU, by whatever name or path it goes, or scaled from the first GPU it is known
    /// for. `find` finds a GPU's own name and profile.
    pub fn on(
        workload: &WorkloadProfile,
        gpu_name: &str,
        gpu: &GpuProfile,
        find: impl Fn(&str) -> Option<(String, GpuProfile)>,
    ) -> Result<Self, JobError> {
        let by_name = workload.on.iter().find(|on| on.gpu == gpu_name);
        let is_this = |on: &&On| {
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
    /// Puts a workload on the GPU that `work` is for.
    pub fn new(
        workload: &WorkloadProfile,
        work: &Work,
        gpu: &GpuProfile,
        order: Order,
        variation: Variation,
    ) -> Result<Self, JobError> {
        let on = &work.on;
        let batch = order.batch.unwrap_or(workload.batch);
        let items = order.items.unwrap_or(on.items);
        fits(workload, gpu, batch.min(items))?;
        too_long(on, batch, items)?;
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

    /// The same job from its first iteration on: a part of a longer one that has begun before.
    pub fn without_startup(mut self) -> Self {
        self.startup = None;
        self
    }

    /// What waiting for the other GPUs does to this one.
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

    /// The names of all phases, `host` first.
    pub fn phase_names(&self) -> &[String] {
        &self.phase_names
    }

    /// What comes before the first iteration.
    pub fn startup(&self) -> &[Phase] {
        self.startup.as_slice()
    }

    /// The phases of an iteration and how many such iterations there are.
    pub fn iterations(&self) -> (&[Phase], u64) {
        (&self.iteration, self.iterations)
    }

    /// The last iteration, where a smaller batch is left for it.
    pub fn last(&self) -> &[Phase] {
        &self.last
    }
}

fn fits(workload: &WorkloadProfile, gpu: &GpuProfile, batch: u64) -> Result<(), JobError> {
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

/// A run of months is a slip of the pen.
const LONGEST: Seconds = Seconds::new(1e7);

fn too_long(on: &On, batch: u64, items: u64) -> Result<(), JobError> {
    let items = items as f64;
    let device = (on.core + on.memory + on.host) * items;
    let each = on.host_per_batch + on.launch + on.memory_per_batch;
    let time = on.startup + device + each * (items / batch as f64).ceil();
    if time <= LONGEST {
        Ok(())
    } else {
        Err(JobError::TooLong {
            time,
            limit: LONGEST,
        })
    }
}

fn phases(workload: &WorkloadProfile, on: &On, batch: u64, variation: Variation) -> Vec<Phase> {
    // The share of the cores that a batch keeps busy, against the batch size of the study.
    let busy = |batch: f64| batch / (batch + workload.half_speed_batch);
    let items = batch as f64;
    let busy = busy(items) / busy(workload.batch as f64);
    let host = Phase {
        name: 0,
        load: Load::Waiting {
            host: (on.host_per_batch + on.host * items) * variation.work,
        },
    };
    let kernels = workload
        .phases
        .iter()
        .enumerate()
        .map(|(index, share)| Phase {
            name: index + 1,
            load: Load::Kernels {
                launch: on.launch * share.core * variation.work,
                core: on.core * share.core * (items / busy * variation.work),
                memory: (on.memory * items + on.memory_per_batch) * share.memory * variation.work,
                switching: on.switching * share.switching * (busy * variation.switching),
                memory_activity: on.memory_activity,
            },
        });
    std::iter::once(host).chain(kernels).collect()
}
