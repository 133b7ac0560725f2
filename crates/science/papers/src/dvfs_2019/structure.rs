//! The work of the study's networks, computed from their layers, the boards and a few constants.
//!
//! The profiles of dvfs_2019 contain no number that was fitted for a network on a board. The time of a kernel follows
//! from its operations, the data that it moves and the board's data sheet; what is fitted are the constants of the study
//! and of the boards. The example `fit` writes the results into the profiles, and a test compares them.

use serde::{Deserialize, Serialize};
use sweetspot_network::built_in;
use sweetspot_predict::Product;
use sweetspot_quantity::{Bytes, Ratio};
use sweetspot_sim::{ConvAlgorithm, MemoryNeed, Mode};

use super::deviations::STUDY;
use crate::layer_work::{ELEMENT, FrameworkConstants, NetworkWork};
use crate::{PapersError, Profiles};

/// The constants that hold for all boards and networks of the study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConstants {
    /// The keys of the constants that were fitted to the study's results.
    pub fitted: Vec<String>,
    /// The constants of training under Caffe.
    pub training: FrameworkConstants,
    /// The constants of inference under TensorRT.
    pub inference: FrameworkConstants,
    /// The convolution by Winograd's algorithm, relative to the implicit matrix product.
    pub winograd: AlgorithmConstants,
    /// The convolution by Fourier transforms, relative to the implicit matrix product.
    pub fft: AlgorithmConstants,
}

/// A convolution algorithm relative to the implicit matrix product.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmConstants {
    /// The time of all work.
    pub work: Ratio,
}

impl StudyConstants {
    /// The constants of the framework that the study uses in a mode.
    const fn framework(&self, mode: Mode) -> &FrameworkConstants {
        match mode {
            Mode::Train => &self.training,
            Mode::Infer => &self.inference,
        }
    }

    /// The constants that are built into the program.
    pub fn built_in() -> Result<Self, PapersError> {
        toml::from_str(include_str!("constants.toml")).map_err(|error| PapersError::Constants {
            study: STUDY,
            reason: error.to_string(),
        })
    }
}

/// The mean number of multiprocessors of the three boards (56, 80 and 68).
const MULTIPROCESSORS: f64 = 68.0;
/// Caffe keeps this many workspaces for each convolution, one for each of its streams.
const WORKSPACES: f64 = 3.0;
/// Winograd's F(4x4, 3x3) transforms 4 x 4 elements to 6 x 6.
const WINOGRAD_GROWTH: f64 = 36.0 / 16.0;
/// The side of a tile that is transformed by Fourier.
const FFT_TILE: f64 = 32.0;
/// The numbers of a transformed tile: half of its spectrum, each with two parts.
const FFT_TILE_NUMBERS: f64 = 32.0 * 17.0 * 2.0;

/// The boards whose default clock is their highest, at which they draw their default cap if all cores compute.
const BOARDS_AT_FULL_CLOCK: [&str; 2] = ["tesla_p100", "tesla_v100_pcie_16gb"];

/// Computes the work of every workload of the study from the constants in the profiles, and the power of the cores from the
/// boards' caps.
pub fn derive_workloads(profiles: &mut Profiles) -> Result<(), PapersError> {
    let constants = profiles.dvfs_2019.clone();
    for board in BOARDS_AT_FULL_CLOCK {
        if let Some(gpu) = profiles.gpus.get_mut(board) {
            gpu.power.core = gpu.cap.default - gpu.power.idle - gpu.power.context;
        }
    }
    let of_study = format!("@{STUDY}");
    for workload in &mut profiles.workloads {
        if !workload.name.ends_with(&of_study) {
            continue;
        }
        let profile = &mut workload.profile;
        let network = NetworkWork::new(&built_in(&profile.network)?, profile.mode);
        profile.half_speed_batch = network.half_speed_batch(MULTIPROCESSORS);
        profile.memory = memory_need(&network);
        for algorithm in &mut profile.conv_algorithms {
            set_algorithm(&network, algorithm, &constants);
        }
        let batch = profile.batch as f64;
        let half = profile.half_speed_batch;
        for on in &mut profile.on {
            if let Some(gpu) = profiles.gpus.get(&on.gpu) {
                network.set_work(
                    on,
                    gpu,
                    constants.framework(profile.mode),
                    batch,
                    half,
                    |_| 1.0,
                );
            }
        }
    }
    Ok(())
}

/// The device memory of a batch: weights, gradients and momenta, and the outputs of layers, in training with gradients.
fn memory_need(network: &NetworkWork) -> MemoryNeed {
    let copies = match network.mode {
        Mode::Train => 2.0,
        Mode::Infer => 1.0,
    };
    MemoryNeed {
        fixed: Bytes::new(0.5e9 + ELEMENT * network.weights * (2.0 * copies - 1.0)),
        per_item: Bytes::new(ELEMENT * network.written * copies),
    }
}

/// Sets the factors of a convolution algorithm: its work is a constant of the study, its memory follows from the
/// transformed tensors.
fn set_algorithm(network: &NetworkWork, algorithm: &mut ConvAlgorithm, constants: &StudyConstants) {
    let transformed = |product: &Product, numbers: &dyn Fn(f64, f64) -> f64| {
        let inputs = product.channels.unwrap_or(0.0);
        numbers(product.rows, inputs + product.columns)
    };
    let workspace: f64 = network
        .products()
        .filter(|(_, product, _)| product.window > 1.0)
        .map(|(_, product, _)| match algorithm.name.as_str() {
            "winograd" => transformed(&product, &|rows, channels| {
                WINOGRAD_GROWTH * rows * channels
            }),
            "fft" => transformed(&product, &|rows, channels| {
                let tiles = (rows.sqrt() / FFT_TILE).ceil().powi(2);
                FFT_TILE_NUMBERS * tiles * channels
            }),
            _ => 0.0,
        })
        .sum();
    let own = network.written * 2.0;
    algorithm.memory = Ratio::new(1.0 + WORKSPACES * workspace / own);
    algorithm.work = match algorithm.name.as_str() {
        "winograd" => constants.winograd.work,
        "fft" => constants.fft.work,
        _ => Ratio::new(1.0),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stored profiles are those that the constants give, up to rounding.
    #[test]
    fn stored_profiles_follow_from_the_constants() {
        let stored = Profiles::built_in().unwrap();
        let mut derived = stored.clone();
        derive_workloads(&mut derived).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-4 * a.abs().max(b.abs()) + 1e-9;
        let mut compared = 0;
        for (own, other) in stored.workloads.iter().zip(&derived.workloads) {
            let (own, other) = (&own.profile, &other.profile);
            let shared = [
                (own.half_speed_batch, other.half_speed_batch),
                (own.memory.per_item.get(), other.memory.per_item.get()),
                (own.memory.fixed.get(), other.memory.fixed.get()),
            ];
            let algorithms = own.conv_algorithms.iter().zip(&other.conv_algorithms);
            let algorithms = algorithms.flat_map(|(own, other)| {
                [
                    (own.work.get(), other.work.get()),
                    (own.memory.get(), other.memory.get()),
                ]
            });
            let on = own.on.iter().zip(&other.on).flat_map(|(own, other)| {
                [
                    (own.core.get(), other.core.get()),
                    (own.memory.get(), other.memory.get()),
                    (own.memory_per_batch.get(), other.memory_per_batch.get()),
                    (own.launch.get(), other.launch.get()),
                    (own.switching.get(), other.switching.get()),
                    (own.memory_activity.get(), other.memory_activity.get()),
                ]
            });
            for (stored, derived) in shared.into_iter().chain(algorithms).chain(on) {
                assert!(near(stored, derived), "{}: {stored} {derived}", own.network);
                compared += 1;
            }
        }
        assert!(compared > 8 * 3 * 6);
        for board in BOARDS_AT_FULL_CLOCK {
            let (own, other) = (&stored.gpus[board], &derived.gpus[board]);
            assert!(
                near(own.power.core.get(), other.power.core.get()),
                "{board}"
            );
        }
    }
}
