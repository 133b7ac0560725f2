//! Constants and curves that several benchmarks use.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod curves;
pub mod mixes;

use sweetspot_decide::Objective;

/// The GPUs of power_capping_2022.
pub const GPUS: [&str; 2] = ["quadro_rtx_6000", "tesla_v100_sxm2_16gb"];
/// The networks of power_capping_2022.
pub const NETWORKS: [&str; 6] = [
    "alexnet",
    "vgg19",
    "inception_v3",
    "inception_v4",
    "resnet50",
    "resnet152",
];
/// The objectives of the searches.
pub const OBJECTIVES: [Objective; 4] = [
    Objective::Energy,
    Objective::Edp,
    Objective::Eds(1.5),
    Objective::Eds(2.0),
];

/// A share as a percentage.
pub fn percentage(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
