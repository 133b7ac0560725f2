//! How fast a GPU executes the kernels of a network, and what they draw: the constants of predictions.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::{Ratio, Seconds, Watts};

/// The constants from which the time and energy of kernels are predicted, at the default clocks. Shares relate to the
/// peak rates of the data sheet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernels {
    /// The time that a kernel takes without any work.
    pub start: Seconds,
    /// The same for a convolution.
    pub convolution_start: Seconds,
    /// The same for a convolution in groups.
    pub grouped_start: Seconds,
    /// The share of the matrix units' peak that the largest tile of a product reaches.
    pub matrix: Ratio,
    /// How much slower smaller tiles are: their rate falls with this power of their area.
    pub tile_exponent: f64,
    /// The begin and end of a tile take as long as this many elements of its inner dimension.
    pub tile_overhead: f64,
    /// The share of the memory's bandwidth that a simple kernel reaches.
    pub bandwidth: Ratio,
    /// The share of the arithmetic units' peak that a depthwise convolution reaches.
    pub vector: Ratio,
    /// The share of the matrix units' peak that a convolution in groups of 64 channels or more reaches.
    pub grouped: Ratio,
    /// The relative speed of a product whose channels are not a multiple of 8.
    pub misaligned: Ratio,
    /// The relative speed of a product with an odd number of columns.
    pub unaligned: Ratio,
    /// The relative speed of a convolution in groups whose size is not a power of two.
    pub misaligned_groups: Ratio,
    /// The relative speed of a convolution with a window other than 1 x 1 and 3 x 3.
    pub other_windows: Ratio,
    /// The share of the memory's bandwidth that pooling reaches, relative to a simple kernel.
    pub pooling: Ratio,
    /// The share of the memory's bandwidth that a normalisation reaches, relative to a simple kernel.
    pub normalisation: Ratio,
    /// The share of the matrix units' peak that attention reaches.
    pub attention: Ratio,
    /// The time of the host for a kernel in training, with its backward pass and the update of its weights.
    pub host_time: Seconds,
    /// The time of a kernel's backward pass, relative to that of its forward pass.
    pub backward: Ratio,
    /// The power while kernels run, without what depends on their work.
    pub base_power: Watts,
    /// The energy of a floating-point operation of the matrix units, in picojoules.
    pub operation_energy: f64,
    /// The energy of a byte from or to the memory, in picojoules.
    pub memory_energy: f64,
    /// The energy of a byte from or to the cache, in picojoules.
    pub cache_energy: f64,
    /// The additional power while arithmetic units work without matrix units.
    pub vector_power: Watts,
    /// How far predictions are off, by networks that were left out of the fit.
    pub errors: KernelErrors,
}

/// The errors that 95 % of predictions stay within, as shares: 0.3 for a prediction between 1/1.3 and 1.3 of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelErrors {
    /// Of the time of an item in inference.
    pub time: Ratio,
    /// Of the power in inference.
    pub power: Ratio,
    /// Of the energy of an item in inference.
    pub energy: Ratio,
    /// Of the time of an item in training.
    pub training_time: Ratio,
    /// Of the power in training.
    pub training_power: Ratio,
    /// Of the energy of an item in training.
    pub training_energy: Ratio,
}
