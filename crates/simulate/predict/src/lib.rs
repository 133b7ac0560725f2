//! A network's time, power and energy on a GPU before it runs.
//!
//! [`kernels()`] splits a network into the kernels that a GPU starts. [`KernelCost`] says what each costs, from the GPU's
//! data sheet and the constants of its profile ([`sweetspot_sim::Kernels`]). A [`Predictor`] adds them up to the work of an
//! iteration, lets the simulator's physics say how the GPU runs it, and says how far the result may be off.
//! [`find_workload`] finds the workload of a simulation: a profile, or any network as a prediction.
//!
//! Everything but reading a network is a pure function of network, profile and batch size. Left to others: to fit the
//! constants (`benchmarks`), and presentation.

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
