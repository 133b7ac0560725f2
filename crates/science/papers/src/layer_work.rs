//! The work of a network on a board, computed from its layers, the board and a framework's constants.
//!
//! The time of a kernel follows from its operations, the data that it moves and the board's data sheet. Studies whose
//! profiles have no number for a network on a board are made of it.

use serde::{Deserialize, Serialize};
use sweetspot_network::Network;
use sweetspot_predict::{Kernel, Product, Work, kernels};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{GpuProfile, ItemWork, Mode};

/// What a framework makes of a board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrameworkConstants {
    /// The share of the board's peak of 32-bit arithmetic that products and convolutions reach.
    pub efficiency: Ratio,
    /// The data that a kernel moves at the board's bandwidth, relative to its tensors and weights.
    pub traffic: Ratio,
    /// The time of the host to launch a kernel.
    pub launch: Seconds,
    /// The power of cores that wait for data, relative to cores that compute.
    pub waiting: Ratio,
}

/// The size of a 32-bit number in bytes.
pub const ELEMENT: f64 = 4.0;
/// A backward pass computes the gradients of inputs and of weights: training is three times the forward pass.
const PASSES_IN_TRAINING: f64 = 3.0;
/// The passes over the weights in an iteration of training: they are read twice, their gradients are written, and the
/// update reads gradients, momenta and weights and writes the last two.
const WEIGHT_PASSES_IN_TRAINING: f64 = 8.0;
/// A tile of a product's result that a multiprocessor computes: rows and columns.
const TILE: f64 = 128.0;

/// The kernels of a network in one mode.
pub struct NetworkWork {
    kernels: Vec<Kernel>,
    /// Training or inference.
    pub mode: Mode,
    /// The number of the network's weights.
    pub weights: f64,
    /// The elements of one item that the layers write.
    pub written: f64,
}

impl NetworkWork {
    /// The kernels of a network; in inference without those that the framework executes together with others.
    pub fn new(network: &Network, mode: Mode) -> Self {
        let items = network.batch.max(1) as f64;
        let mut all = kernels(network);
        if mode == Mode::Infer {
            all = without_fused(all);
        }
        let written = network.layers.iter().filter(|layer| {
            // Caffe executes activations, normalisations and dropout in place.
            matches!(
                layer.kind.name(),
                "convolution" | "fully connected" | "pooling" | "concat" | "add"
            )
        });
        Self {
            written: written
                .map(|layer| layer.output_elements() as f64 / items)
                .sum(),
            weights: network.parameters() as f64,
            kernels: all,
            mode,
        }
    }

    /// The passes over the layers in an iteration.
    fn passes(&self) -> f64 {
        match self.mode {
            Mode::Train => PASSES_IN_TRAINING,
            Mode::Infer => 1.0,
        }
    }

    /// The kernels that the host starts in an iteration.
    pub fn launches(&self) -> f64 {
        self.passes() * self.kernels.len() as f64
    }

    /// The products and convolutions of the network.
    pub fn products(&self) -> impl Iterator<Item = (&Kernel, Product, f64)> {
        self.kernels.iter().filter_map(|kernel| match kernel.work {
            Work::Product(product) => Some((kernel, product, 1.0)),
            Work::Grouped { product, groups } => Some((kernel, product, groups)),
            _ => None,
        })
    }

    /// The batch size at which the multiprocessors are half busy: their number over the tiles that a product has for one
    /// item, weighted by operations.
    pub fn half_speed_batch(&self, multiprocessors: f64) -> f64 {
        let (mut weighted, mut operations) = (0.0, 0.0);
        for (_, product, groups) in self.products() {
            let tiles = (product.rows / TILE).ceil() * (product.columns / TILE).ceil() * groups;
            let own = product.operations() * groups;
            operations += own;
            weighted += own * multiprocessors / tiles;
        }
        // With half of the last wave empty on average, half as many items are enough.
        weighted / operations / 2.0
    }

    /// Sets the work of an item on a board. `cost` is the work of a product relative to its operations.
    pub fn set_work(
        &self,
        on: &mut ItemWork,
        gpu: &GpuProfile,
        framework: &FrameworkConstants,
        batch: f64,
        half_speed_batch: f64,
        cost: impl Fn(&Product) -> f64,
    ) {
        let rate = gpu.peak_fp32().get() * framework.efficiency.get();
        let bandwidth = gpu.memory.bandwidth.get() / framework.traffic.get();
        let (mut core, mut memory) = (0.0, 0.0);
        for kernel in &self.kernels {
            let operations = match kernel.work {
                Work::Product(product) => product.operations() * cost(&product),
                Work::Grouped { product, groups } => product.operations() * groups * cost(&product),
                _ => 0.0,
            };
            let moving = ELEMENT * kernel.elements / bandwidth;
            let computing = operations / rate;
            memory += moving;
            core += computing.hypot(moving) - moving;
        }
        let passes = self.passes();
        let weight_passes = match self.mode {
            Mode::Train => WEIGHT_PASSES_IN_TRAINING,
            Mode::Infer => 1.0,
        };
        // The profile has the work at its own batch size, at which a part of the cores is idle.
        let busy = batch / (batch + half_speed_batch);
        core /= busy;
        on.fitted = Vec::new();
        on.host = Seconds::ZERO;
        on.host_per_batch = Seconds::ZERO;
        on.launch = framework.launch * self.launches();
        on.core = Seconds::new(passes * core);
        on.memory = Seconds::new(passes * memory);
        on.memory_per_batch = Seconds::new(ELEMENT * self.weights * weight_passes / bandwidth);
        let computing = busy * core / (core + memory);
        let waiting = framework.waiting.get();
        on.switching = Ratio::new(waiting + (1.0 - waiting) * computing);
        on.memory_activity = Ratio::new(memory / (core + memory));
    }
}

/// The kernels without those that TensorRT executes together with the product before them: functions of single elements
/// and normalisations.
fn without_fused(all: Vec<Kernel>) -> Vec<Kernel> {
    let mut kept: Vec<Kernel> = Vec::new();
    for kernel in all {
        let is_fusible = matches!(kernel.work, Work::Elements | Work::BatchNormalisation);
        let follows_product = kept
            .last()
            .is_some_and(|before| matches!(before.work, Work::Product(_) | Work::Grouped { .. }));
        if !(is_fusible && follows_product) {
            kept.push(kernel);
        }
    }
    kept
}
