//! The time and energy of a kernel for a batch.

use crate::kernel::{Kernel, Product, Work};
use crate::rates::GpuRates;

/// The tiles of a product: rows and columns of the result that a multiprocessor computes together. The first is the
/// largest.
const TILES: [(f64, f64); 4] = [(256.0, 128.0), (128.0, 128.0), (128.0, 64.0), (64.0, 64.0)];
/// A long inner dimension may be split into this many parts, which are added by a second kernel.
const SPLITS: [f64; 2] = [1.0, 4.0];
/// Data of half this size is found in the cache, in bytes.
const CACHED_BYTES: f64 = 30e6;
/// Groups with fewer channels than this do not fill the matrix units.
const FULL_GROUP: f64 = 64.0;
/// The number of channels that products are aligned to.
const ALIGNMENT: f64 = 8.0;
/// The windows of convolutions for which there are fast kernels: 1 x 1 and 3 x 3.
const FAST_WINDOWS: [f64; 2] = [1.0, 9.0];

/// The time of a kernel, and what its energy depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelCost {
    /// The time, in seconds.
    pub time: f64,
    /// The part of the time in which arithmetic units work without matrix units, in seconds.
    pub vector_time: f64,
    /// The part of the time that depends on the core clock, in seconds.
    pub core_time: f64,
    /// The number of floating-point operations of the matrix units.
    pub operations: f64,
    /// The number of bytes from and to the memory.
    pub memory_bytes: f64,
    /// The number of bytes from and to the cache.
    pub cache_bytes: f64,
}

impl std::ops::AddAssign for KernelCost {
    fn add_assign(&mut self, other: Self) {
        self.time += other.time;
        self.vector_time += other.vector_time;
        self.core_time += other.core_time;
        self.operations += other.operations;
        self.memory_bytes += other.memory_bytes;
        self.cache_bytes += other.cache_bytes;
    }
}

impl KernelCost {
    /// The cost of a kernel for a batch.
    pub fn of(kernel: &Kernel, batch: f64, gpu: &GpuRates) -> Self {
        let constants = &gpu.kernels;
        let bytes = gpu.element * (kernel.elements * batch + kernel.weights);
        let cached = 1.0 / (1.0 + (bytes / CACHED_BYTES).powi(2));
        let moving = bytes / (gpu.bandwidth * constants.bandwidth.get());
        let both = |computing: f64| computing.hypot(moving);
        let start = constants.start.get();
        let convolution_start = constants.convolution_start.get();
        let (start, work, is_vector, operations) = match &kernel.work {
            Work::Product(product) => {
                let product = product.for_batch(batch);
                let slowness = product.slowness(gpu);
                let computing = product_time(&product, 1.0, gpu) * slowness;
                let start = match product.channels {
                    Some(_) => convolution_start,
                    None => start,
                };
                (
                    start,
                    both(computing),
                    product.has_other_window(),
                    product.operations(),
                )
            }
            Work::Grouped { product, groups } => {
                let product = product.for_batch(batch);
                let is_odd = product.columns.log2().fract() > 1e-9;
                let slowness = match is_odd {
                    true => 1.0 / constants.misaligned_groups.get(),
                    false => 1.0,
                };
                let filled = (product.columns / FULL_GROUP).min(1.0);
                let operations = product.operations() * groups;
                let rate = gpu.matrix * constants.grouped.get() * filled;
                let start = constants.grouped_start.get() * slowness;
                (start, both(operations / rate * slowness), true, operations)
            }
            Work::Depthwise { outputs, taps } => {
                let rate = gpu.vector * constants.vector.get();
                let computing = 2.0 * outputs * batch * taps / rate;
                (convolution_start, both(computing), true, 0.0)
            }
            Work::Attention { operations } => {
                let operations = operations * batch;
                let computing = operations / (gpu.matrix * constants.attention.get());
                (convolution_start, both(computing), false, operations)
            }
            Work::Batched { product, count } => {
                let computing = product_time(product, count * batch, gpu);
                let operations = product.operations() * count * batch;
                (start, both(computing), true, operations)
            }
            Work::Elements | Work::BatchNormalisation => (start, moving, false, 0.0),
            Work::Pooling => (start, moving / constants.pooling.get(), true, 0.0),
            Work::Normalisation => (start, moving / constants.normalisation.get(), true, 0.0),
        };
        let other = (work - moving).max(0.0);
        let vector_time = match (&kernel.work, is_vector) {
            (_, false) => 0.0,
            // Without fast kernels for its window, a convolution uses the matrix units for a part of the time only.
            (Work::Product(_), true) => other * (1.0 - constants.other_windows.get()),
            (_, true) => other,
        };
        Self {
            time: start + work,
            vector_time,
            core_time: other,
            operations,
            memory_bytes: bytes * (1.0 - cached),
            cache_bytes: bytes * cached,
        }
    }

    /// The energy at the default clock, in joules.
    pub fn energy(&self, gpu: &GpuRates) -> f64 {
        gpu.kernels.base_power.get() * self.time + self.core_energy(gpu) + self.memory_energy(gpu)
    }

    /// The part of the energy that depends on the voltage of the cores, at the default clock, in joules.
    pub fn core_energy(&self, gpu: &GpuRates) -> f64 {
        let constants = &gpu.kernels;
        let picojoules = self.cache_bytes * constants.cache_energy
            + self.operations * constants.operation_energy;
        constants.vector_power.get() * self.vector_time + 1e-12 * picojoules
    }

    /// The energy of the memory, in joules.
    pub fn memory_energy(&self, gpu: &GpuRates) -> f64 {
        1e-12 * self.memory_bytes * gpu.kernels.memory_energy
    }
}

impl Product {
    /// The product for a batch.
    fn for_batch(&self, batch: f64) -> Self {
        Self {
            rows: self.rows * batch,
            ..*self
        }
    }

    /// Whether the product is a convolution with a window for which there is no fast kernel.
    fn has_other_window(&self) -> bool {
        !FAST_WINDOWS.contains(&self.window)
    }

    /// By how much the product is slower than an aligned one.
    fn slowness(&self, gpu: &GpuRates) -> f64 {
        let is_odd = |count: f64| count % ALIGNMENT > 0.0;
        let channels = self.channels.unwrap_or(self.inner);
        let is_misaligned = channels > ALIGNMENT && is_odd(channels) || is_odd(self.columns);
        let is_unaligned = self.columns % 2.0 > 0.0 && self.columns > 1.0;
        let mut slowness = match (is_unaligned, is_misaligned) {
            (true, _) => 1.0 / gpu.kernels.unaligned.get(),
            (false, true) => 1.0 / gpu.kernels.misaligned.get(),
            (false, false) => 1.0,
        };
        if self.has_other_window() {
            slowness /= gpu.kernels.other_windows.get();
        }
        slowness
    }
}

/// The time of `count` products with the best tiles: whole waves of tiles on all multiprocessors, of which the last is
/// half full on average.
fn product_time(product: &Product, count: f64, gpu: &GpuRates) -> f64 {
    let constants = &gpu.kernels;
    let (largest_rows, largest_columns) = TILES[0];
    let mut best = f64::INFINITY;
    for (rows, columns) in TILES {
        let area = rows * columns / (largest_rows * largest_columns);
        let rate = gpu.matrix / gpu.processors
            * constants.matrix.get()
            * area.powf(constants.tile_exponent);
        for split in SPLITS {
            let tiles = (product.rows / rows).ceil() * (product.columns / columns).ceil();
            let waves = tiles * count * split / gpu.processors;
            let waves = match waves < 1.0 {
                true => 1.0,
                false => 0.5 * (waves.ceil() + waves),
            };
            let inner = product.inner / split + constants.tile_overhead;
            let adding = match split > 1.0 {
                true => constants.start.get(),
                false => 0.0,
            };
            best = best.min(waves * 2.0 * rows * columns * inner / rate + adding);
        }
    }
    best
}
