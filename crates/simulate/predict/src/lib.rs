//! A network's time, power and energy on a GPU before it runs.
//!
//! [`kernels()`] splits a network into the kernels that a GPU starts. [`KernelCost`] says what each costs, from the GPU's
//! data sheet and the constants of its profile ([`sweetspot_sim::Kernels`]), and [`predict`] adds them up and
//! says how far the result may be off.
//!
//! Everything is a pure function of network, profile and batch size. Left to others: to fit the constants
//! (`benchmarks`), and presentation.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod cost;
mod kernel;
mod prediction;
mod rates;
mod work;
mod workload;

pub use cost::KernelCost;
pub use kernel::{Kernel, Product, Work, kernels};
pub use prediction::{LayerPrediction, Prediction, PredictionError, Predictor};
pub use rates::{GpuRates, has_predictions};
pub use work::iteration_work;
pub use workload::{WorkloadError, find_workload, largest_batch, predicted_precision};
