//! The prediction for a network.

use sweetspot_network::{Network, Precision};
use sweetspot_quantity::{Bytes, Joules, Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, GpuProfile, IterationWork, MemoryNeed, Mode, Steady};

use crate::cost::KernelCost;
use crate::kernel::{Kernel, Work, kernels};
use crate::rates::GpuRates;
use crate::work::iteration_work;

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PredictionError {
    /// The profile of the GPU has no constants of kernels.
    #[error(
        "the profile of {gpu} has no constants for predictions ([kernels]): use {}",
        others.join(", ")
    )]
    NoConstants {
        /// The name of the GPU's profile.
        gpu: String,
        /// The names of built-in profiles that have them.
        others: Vec<String>,
    },
    /// The profile takes the constants of another one, which has none.
    #[error("the profile of {gpu} takes its constants for predictions from {from}, which has none")]
    NoSource {
        /// The name of the GPU's profile.
        gpu: String,
        /// The name of the other profile.
        from: String,
    },
    /// The GPU has no peak for this number format, or predictions were not fitted to it.
    #[error("there are no predictions for {precision} on {gpu}: use bf16 or fp16")]
    Precision {
        /// The name of the GPU's profile.
        gpu: String,
        /// The number format.
        precision: Precision,
    },
    /// No layer of the network could be counted.
    #[error("{0} has no layer whose cost is known")]
    Empty(String),
    /// Not even one item fits into the memory.
    #[error("{network} needs {need:.1} for one item, but {gpu} has {capacity:.1}")]
    OutOfMemory {
        /// The name of the network.
        network: String,
        /// The name of the GPU's profile.
        gpu: String,
        /// The memory that one item needs.
        need: Bytes,
        /// The memory of the GPU.
        capacity: Bytes,
    },
}

/// What a network costs on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The number of items in a batch.
    pub batch: u64,
    /// Whether the network learns or answers.
    pub mode: Mode,
    /// The time of a batch, the power and the clock at the GPU's default settings.
    pub at_default: Steady,
    /// The memory that weights and data need.
    pub memory: Bytes,
    /// The errors that 95 % of predictions stay within, of time, power and energy.
    pub errors: [Ratio; 3],
    /// The error of the memory.
    pub memory_error: Ratio,
    /// The time of each layer that needs any, those with the longest first.
    pub layers: Vec<LayerPrediction>,
    /// The work of an iteration, for other settings and for the simulator.
    pub work: IterationWork,
}

/// The predicted time of a layer, with the layers that are executed together with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerPrediction {
    /// The index of the layer in the network.
    pub layer: usize,
    /// The time for a batch.
    pub time: Seconds,
}

impl Prediction {
    /// The number of items per second.
    pub fn items_per_s(&self) -> f64 {
        self.batch as f64 / self.at_default.time.get()
    }

    /// The energy of a batch.
    pub fn energy(&self) -> Joules {
        self.at_default.power * self.at_default.time
    }

    /// The energy of an item.
    pub fn energy_per_item(&self) -> Joules {
        self.energy() / self.batch as f64
    }
}

/// Weights are stored with this many bytes in training: as they are, their gradient and their momentum.
const BYTES_PER_TRAINED_WEIGHT: f64 = 12.0;

/// By how much the memory of inference exceeds weights, input and output of the largest kernel: the median of 13 networks
/// (data/measured_h200/judge_memory.csv).
const OTHER_TENSORS: f64 = 1.3;
/// The errors of the memory, by the same 13 networks and 14 rows of training.
const MEMORY_ERRORS: [f64; 2] = [0.4, 0.7];

/// Predicts what a network costs on a GPU, for any batch size.
#[derive(Clone, Debug)]
pub struct Predictor {
    kernels: Vec<Kernel>,
    gpu: GpuRates,
    chip: Chip,
    cap: Watts,
    mode: Mode,
    /// The number of weights, also of those that no kernel reads as a whole.
    weights: f64,
    /// The share of the network whose cost is unknown.
    unknown_share: f64,
}

impl Predictor {
    /// Prepares the predictions for a network on a GPU, which is given by the name and the content of its profile.
    pub fn new(
        network: &Network,
        (name, profile): (&str, &GpuProfile),
        precision: Precision,
        mode: Mode,
    ) -> Result<Self, PredictionError> {
        let gpu = GpuRates::new(name, profile, precision)?;
        let kernels = kernels(network);
        if kernels.is_empty() {
            return Err(PredictionError::Empty(network.name.clone()));
        }
        Ok(Self {
            kernels,
            gpu,
            chip: Chip::new(profile),
            cap: profile.cap.default,
            mode,
            weights: network.parameters() as f64,
            unknown_share: network.unknown_share(),
        })
    }

    /// Whether the constants of the GPU were taken from another one, so that nothing was measured on this GPU.
    pub fn is_transferred(&self) -> bool {
        self.gpu.is_transferred
    }

    /// The prediction for a batch size.
    pub fn predict(&self, batch: u64) -> Prediction {
        let costs = self.costs(batch);
        let mut layers: Vec<LayerPrediction> = Vec::new();
        for (kernel, cost) in self.kernels.iter().zip(&costs) {
            let time = Seconds::new(match self.mode {
                Mode::Infer => cost.time,
                Mode::Train => cost.time * (1.0 + self.gpu.kernels.backward.get()),
            });
            match layers.last_mut() {
                Some(last) if last.layer == kernel.layer => last.time += time,
                _ => layers.push(LayerPrediction {
                    layer: kernel.layer,
                    time,
                }),
            }
        }
        layers.sort_by(|a, b| b.time.get().total_cmp(&a.time.get()));
        let work = self.work(&costs, batch);
        let memory = self.memory_need();
        Prediction {
            batch,
            mode: self.mode,
            at_default: self.steady(&work, None, None),
            memory: memory.fixed + memory.per_item * batch as f64,
            errors: self.errors(),
            memory_error: Ratio::new(match self.mode {
                Mode::Infer => MEMORY_ERRORS[0],
                Mode::Train => MEMORY_ERRORS[1],
            }),
            layers,
            work,
        }
    }

    /// The work of an iteration with this batch size.
    pub fn work_at(&self, batch: u64) -> IterationWork {
        self.work(&self.costs(batch), batch)
    }

    /// How the GPU runs a work for long with a power cap and a core clock; without them at the default ones.
    pub fn steady(
        &self,
        work: &IterationWork,
        cap: Option<Watts>,
        clock: Option<Megahertz>,
    ) -> Steady {
        let limits = self.chip.limits(cap.unwrap_or(self.cap), clock, None);
        self.chip.steady(&limits, &work.loads())
    }

    /// The power of the GPU while it runs no kernel, at the temperature that a power leads to.
    pub fn waiting_power(&self, at: Watts) -> Watts {
        self.chip.waiting_power(at)
    }

    /// The memory that a batch needs, without what PyTorch and the driver need for themselves.
    pub fn memory_need(&self) -> MemoryNeed {
        let weights = self.weights;
        let elements = self.kernels.iter().map(|kernel| kernel.elements);
        let (fixed, per_item) = match self.mode {
            // The input and output of the largest kernel, and what waits for later kernels.
            Mode::Infer => (
                self.gpu.element * weights,
                self.gpu.element * elements.fold(0.0, f64::max) * OTHER_TENSORS,
            ),
            // Everything is kept for the backward pass.
            Mode::Train => (
                BYTES_PER_TRAINED_WEIGHT * weights,
                self.gpu.element * elements.sum::<f64>() / 2.0,
            ),
        };
        MemoryNeed {
            fixed: Bytes::new(fixed),
            per_item: Bytes::new(per_item),
        }
    }

    /// The errors that 95 % of predictions stay within. If a share of the network is unknown, the whole costs as much more
    /// if that share is like the rest, and the error allows for twice that.
    fn errors(&self) -> [Ratio; 3] {
        let errors = self.gpu.kernels.errors;
        let errors = match self.mode {
            Mode::Infer => [errors.time, errors.power, errors.energy],
            Mode::Train => [
                errors.training_time,
                errors.training_power,
                errors.training_energy,
            ],
        };
        let whole = 1.0 / (1.0 - self.unknown_share).max(1e-3);
        errors.map(|error| Ratio::new((1.0 + error.get()) * whole * whole - 1.0))
    }

    /// The costs of the kernels' forward pass.
    fn costs(&self, batch: u64) -> Vec<KernelCost> {
        let kernels = self.kernels.iter();
        kernels
            .map(|kernel| KernelCost::of(kernel, batch as f64, &self.gpu))
            .collect()
    }

    /// The work of an iteration with these costs.
    fn work(&self, costs: &[KernelCost], batch: u64) -> IterationWork {
        let host = Seconds::new(match self.mode {
            Mode::Infer => 0.0,
            // In the trainings that were measured, batch normalisations took no time of the host.
            Mode::Train => {
                let kernels = self.kernels.iter();
                let prepared = kernels.filter(|kernel| kernel.work != Work::BatchNormalisation);
                prepared.count() as f64 * self.gpu.kernels.host_time.get()
            }
        });
        IterationWork {
            batch,
            parts: iteration_work(costs, host, self.mode, &self.gpu, &self.chip),
        }
    }
}
