//! The study with one parameter: the host's time for an image follows from the size of its file.
//!
//! The profiles have a host time for each of the two data sets, which are two parameters for three printed values. This
//! form of the study has one.

use serde::{Deserialize, Serialize};
use sweetspot_quantity::Seconds;

use super::deviations::{STUDY, compare, workloads};
use crate::deviations::SimulatorDeviations;
use crate::{PapersError, Profiles};

/// The name of this form of the study.
pub const ONE_HOST_TIME: &str = "batch_sizer_2021_from_sizes";

/// The mean size of an image of ImageNet in bytes: the 6.74 GB of the validation set's archive over its 50,000 images.
const IMAGENET_IMAGE: f64 = 6.745e9 / 50_000.0;
/// The mean size of an image of Caltech 256 in bytes: the 1.18 GB of its archive over its 30,607 images.
const CALTECH_IMAGE: f64 = 1.183e9 / 30_607.0;

/// The host's time for an image of ImageNet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostTime {
    /// The time for an image.
    pub host: Seconds,
}

impl HostTime {
    /// The time that is built into the program.
    pub fn built_in() -> Result<Self, PapersError> {
        toml::from_str(include_str!("constants.toml")).map_err(|error| PapersError::Constants {
            study: STUDY,
            reason: error.to_string(),
        })
    }

    /// The time for an image of a data set.
    fn of(self, dataset: &str) -> Seconds {
        match dataset {
            "caltech" => self.host * (CALTECH_IMAGE / IMAGENET_IMAGE),
            _ => self.host,
        }
    }
}

/// Compares the simulated throughput with the paper, with one host time.
pub fn compare_with_one_host_time(profiles: &Profiles) -> Result<SimulatorDeviations, PapersError> {
    let mut derived = profiles.clone();
    let time = profiles.batch_sizer_2021;
    for profile in workloads(&mut derived.workloads) {
        for dataset in &mut profile.datasets {
            dataset.host = time.of(&dataset.name);
        }
    }
    Ok(SimulatorDeviations {
        study: ONE_HOST_TIME.to_owned(),
        free_parameters: 1,
        by_hand: 1,
        ..compare(&derived)?
    })
}
