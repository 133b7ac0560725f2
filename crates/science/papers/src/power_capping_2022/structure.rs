//! The study with the work of its networks computed from their layers, the boards and a few constants.
//!
//! The profiles of power_capping_2022 have four numbers for each network on each GPU, without which they would not be
//! within 2 % of the printed values. This form of the study has none: the shares of core and memory work follow from the
//! layers and the board. It shows how much of the 2 % is physics, and how far a network that no constant was fitted to is
//! off.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sweetspot_network::built_in;
use sweetspot_predict::Product;
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};
use sweetspot_sim::GpuProfile;

use super::deviations::STUDY;
use crate::layer_work::{FrameworkConstants, NetworkWork};
use crate::{PapersError, Profiles};

/// The name of this form of the study.
pub const FROM_LAYERS: &str = "power_capping_2022_from_layers";

/// The constants from which the work of every network on every board follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerConstants {
    /// The keys of the constants that were fitted to the study's results.
    pub fitted: Vec<String>,
    /// The constants of the framework, which are the same on both machines.
    pub framework: Framework,
    /// The constants of each board and of the machine that it is in.
    pub boards: BTreeMap<String, BoardConstants>,
}

/// What the framework makes of every board.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framework {
    /// The data that a kernel moves at the board's bandwidth, relative to its tensors and weights.
    pub traffic: Ratio,
    /// The power of cores that wait for data, relative to cores that compute.
    pub waiting: Ratio,
    /// The work of a 3x3 convolution by Winograd's algorithm, relative to a matrix product.
    pub winograd: Ratio,
    /// The time between two kernels, in which the GPU waits.
    pub gap: Seconds,
}

/// The constants of a board and of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoardConstants {
    /// The share of the board's peak of 32-bit arithmetic that products and convolutions reach.
    pub efficiency: Ratio,
    /// The clock below which the voltage no longer falls.
    pub voltage_knee: Megahertz,
    /// The voltage below the knee, relative to that at the default clock.
    pub voltage_floor: Ratio,
    /// The power that is added while a program holds the GPU.
    pub context: Watts,
    /// The power of the memory at its full bandwidth: 5 pJ for a bit of HBM2, 7.5 pJ for one of GDDR6.
    pub memory: Watts,
    /// The power of cores that compute at the default clock.
    pub core: Watts,
    /// The time of the machine's processor for an item, in which the GPU waits.
    pub host: Seconds,
}

/// The mean number of multiprocessors of the two boards (72 and 80).
const MULTIPROCESSORS: f64 = 76.0;
/// The output channels that a multiprocessor computes together; a last group that is not full takes as long.
const TILE_COLUMNS: f64 = 64.0;
/// The window of a 3x3 convolution, for which cuDNN has Winograd's algorithm.
const WINOGRAD_WINDOW: f64 = 9.0;

impl LayerConstants {
    /// The constants that are built into the program.
    pub fn built_in() -> Result<Self, PapersError> {
        toml::from_str(include_str!("constants.toml")).map_err(|error| PapersError::Constants {
            study: STUDY,
            reason: error.to_string(),
        })
    }
}

impl Framework {
    /// The work of a product relative to its operations.
    fn cost(&self, product: &Product) -> f64 {
        let tiled = (product.columns / TILE_COLUMNS).ceil() * TILE_COLUMNS;
        let algorithm = match product.window == WINOGRAD_WINDOW {
            true => self.winograd.get(),
            false => 1.0,
        };
        algorithm * tiled / product.columns
    }
}

impl BoardConstants {
    /// Puts the constants into the profile of the board.
    fn apply_to(&self, gpu: &mut GpuProfile) {
        gpu.core.voltage_knee = self.voltage_knee;
        gpu.core.voltage_floor = self.voltage_floor;
        gpu.power.context = self.context;
        gpu.power.memory = self.memory;
        gpu.power.core = self.core;
    }
}

/// The profiles with the boards and the work of the study's networks as these constants give them.
pub fn from_layers(profiles: &Profiles) -> Result<Profiles, PapersError> {
    let constants = &profiles.power_capping_2022;
    let mut derived = profiles.clone();
    for (name, board) in &constants.boards {
        if let Some(gpu) = derived.gpus.get_mut(name) {
            board.apply_to(gpu);
        }
    }
    let of_study = format!("@{STUDY}");
    let own = derived.workloads.iter_mut();
    for workload in own.filter(|workload| workload.name.ends_with(&of_study)) {
        let profile = &mut workload.profile;
        let network = NetworkWork::new(&built_in(&profile.network)?, profile.mode);
        let half_speed_batch = network.half_speed_batch(MULTIPROCESSORS);
        profile.half_speed_batch = half_speed_batch;
        for on in &mut profile.on {
            let board = constants.boards.get(&on.gpu);
            if let Some((board, gpu)) = board.zip(derived.gpus.get(&on.gpu)) {
                let framework = FrameworkConstants {
                    efficiency: board.efficiency,
                    traffic: constants.framework.traffic,
                    launch: Seconds::ZERO,
                    waiting: constants.framework.waiting,
                };
                let batch = profile.batch as f64;
                network.set_work(on, gpu, &framework, batch, half_speed_batch, |product| {
                    constants.framework.cost(product)
                });
                on.host = board.host;
                on.host_per_batch = constants.framework.gap * network.launches();
            }
        }
    }
    Ok(derived)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every fitted constant is one of the framework or of a board, and none of a network; the work of each network on
    /// each board is another one nevertheless.
    #[test]
    fn no_constant_is_of_a_network() {
        let profiles = Profiles::built_in().unwrap();
        let derived = from_layers(&profiles).unwrap();
        let own = derived.workloads.iter();
        let own = own.filter(|workload| workload.name.ends_with("@power_capping_2022"));
        let mut shares = Vec::new();
        for workload in own {
            let profile = &workload.profile;
            for key in &profiles.power_capping_2022.fitted {
                assert!(!key.contains(&profile.network), "{key}");
            }
            for on in &profile.on {
                assert!(on.fitted.is_empty(), "{}: {:?}", workload.name, on.fitted);
                shares.push((on.memory / (on.core + on.memory)).get());
            }
        }
        assert_eq!(shares.len(), 12);
        shares.sort_by(f64::total_cmp);
        assert!(shares.is_sorted_by(|less, more| less < more), "{shares:?}");
    }
}
