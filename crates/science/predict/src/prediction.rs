//! The prediction for a network.

use sweetspot_network::{Network, Precision};
use sweetspot_quantity::{Bytes, Joules, Ratio, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Kernels};

use crate::cost::KernelCost;
use crate::kernel::{Work, kernels};
use crate::rates::GpuRates;

/// Whether a network answers or learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Inference, started as one graph of kernels.
    Inference,
    /// Training: forward and backward pass and the update of the weights, each kernel started by the host.
    Training,
}

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PredictionError {
    /// The profile of the GPU has no constants of kernels.
    #[error("the profile of {0} has no constants for predictions: nvidia_h200 has them")]
    NoConstants(String),
    /// The GPU has no peak for this number format, or predictions were not fitted to it.
    #[error("there are no predictions for {precision} on {gpu}: use bf16 or fp16")]
    Precision {
        /// The name of the GPU's profile.
        gpu: String,
        /// The number format.
        precision: Precision,
    },
    /// No layer of the network could be counted.
    #[error("the network has no layer whose cost is known")]
    Empty,
}

/// What a network costs on a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The number of items in a batch.
    pub batch: u64,
    /// Whether the network answers or learns.
    pub pass: Pass,
    /// The time of a batch.
    pub time: Seconds,
    /// The average power.
    pub power: Watts,
    /// The energy of a batch.
    pub energy: Joules,
    /// The memory that weights and data need.
    pub memory: Bytes,
    /// The core clock, relative to the default one; below 1 where the power cap lowers it.
    pub clock: Ratio,
    /// The errors that 95 % of predictions stay within, of time, power and energy.
    pub errors: [Ratio; 3],
    /// The time of each layer that needs any, those with the longest first.
    pub layers: Vec<LayerPrediction>,
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
        self.batch as f64 / self.time.get()
    }

    /// The energy of an item.
    pub fn energy_per_item(&self) -> Joules {
        self.energy / self.batch as f64
    }
}

/// The lowest clock that the power cap can lead to, relative to the default one.
const LOWEST_CLOCK: f64 = 0.2;
/// Weights are stored with this many bytes in training: as they are, their gradient and their momentum.
const BYTES_PER_TRAINED_WEIGHT: f64 = 12.0;

/// Predicts what a network costs on a GPU.
pub fn predict(
    network: &Network,
    (name, profile): (&str, &GpuProfile),
    precision: Precision,
    batch: u64,
    pass: Pass,
) -> Result<Prediction, PredictionError> {
    let gpu = GpuRates::new(name, profile, precision)?;
    let kernels = kernels(network);
    if kernels.is_empty() {
        return Err(PredictionError::Empty);
    }
    let mut total = KernelCost::default();
    let mut layers: Vec<LayerPrediction> = Vec::new();
    let (mut elements, mut weights) = (0.0, 0.0);
    for kernel in &kernels {
        let mut cost = KernelCost::of(kernel, batch as f64, &gpu);
        if pass == Pass::Training {
            cost = with_backward(cost, &gpu.kernels);
        }
        total += cost;
        elements += kernel.elements;
        weights += kernel.weights;
        match layers.last_mut() {
            Some(last) if last.layer == kernel.layer => last.time += Seconds::new(cost.time),
            _ => layers.push(LayerPrediction {
                layer: kernel.layer,
                time: Seconds::new(cost.time),
            }),
        }
    }
    layers.sort_by(|a, b| b.time.get().total_cmp(&a.time.get()));
    let host = match pass {
        Pass::Inference => 0.0,
        // In the trainings that were measured, batch normalisations took no time of the host.
        Pass::Training => {
            let prepared = kernels
                .iter()
                .filter(|kernel| kernel.work != Work::BatchNormalisation);
            prepared.count() as f64 * gpu.kernels.host_time.get()
        }
    };
    let (clock, time, energy) = below_cap(&total, host, &gpu, profile);
    let memory = match pass {
        // The input and output of the largest kernel.
        Pass::Inference => {
            let largest = kernels.iter().map(|kernel| kernel.elements);
            gpu.element * (largest.fold(0.0, f64::max) * batch as f64 + weights)
        }
        // Everything is kept for the backward pass.
        Pass::Training => {
            gpu.element * elements * batch as f64 / 2.0 + BYTES_PER_TRAINED_WEIGHT * weights
        }
    };
    let errors = gpu.kernels.errors;
    Ok(Prediction {
        batch,
        pass,
        time: Seconds::new(time),
        power: Watts::new(energy / time),
        energy: Joules::new(energy),
        memory: Bytes::new(memory),
        clock: Ratio::new(clock),
        errors: match pass {
            Pass::Inference => [errors.time, errors.power, errors.energy],
            Pass::Training => [errors.training; 3],
        },
        layers,
    })
}

/// The cost of a kernel with its backward pass.
fn with_backward(forward: KernelCost, constants: &Kernels) -> KernelCost {
    let factor = 1.0 + constants.backward.get();
    KernelCost {
        time: forward.time * factor,
        vector_time: forward.vector_time * factor,
        core_time: forward.core_time * factor,
        operations: forward.operations * 3.0,
        memory_bytes: forward.memory_bytes * factor,
        cache_bytes: forward.cache_bytes * factor,
    }
}

/// The highest clock at which the power stays below the cap, and the time and energy at it. The host needs at least
/// `host` seconds.
fn below_cap(
    cost: &KernelCost,
    host: f64,
    gpu: &GpuRates,
    profile: &GpuProfile,
) -> (f64, f64, f64) {
    let knee = (profile.core.voltage_knee / profile.core.default).get();
    let floor = profile.core.voltage_floor.get();
    let at = |clock: f64| {
        let voltage = match clock <= knee {
            true => floor,
            false => floor + (1.0 - floor) * (clock - knee) / (1.0 - knee).max(1e-9),
        };
        let busy = cost.time + cost.core_time * (1.0 / clock - 1.0);
        let time = busy.max(host);
        let waiting = KernelCost {
            time: time - busy,
            ..KernelCost::default()
        };
        let energy = KernelCost {
            time: busy,
            ..*cost
        }
        .energy(voltage * voltage, gpu)
            + waiting.energy(1.0, gpu);
        (clock, time, energy)
    };
    let cap = profile.cap.default.get();
    let fits = |(_, time, energy): &(f64, f64, f64)| energy / time <= cap;
    let highest = at(1.0);
    if fits(&highest) {
        return highest;
    }
    let (mut low, mut high) = (LOWEST_CLOCK, 1.0);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        match fits(&at(middle)) {
            true => low = middle,
            false => high = middle,
        }
    }
    at(low)
}
