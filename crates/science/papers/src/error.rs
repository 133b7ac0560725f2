//! Why a published study cannot be compared or reproduced.

use sweetspot_network::NetworkError;
use sweetspot_sim::CatalogueError;
use sweetspot_virtual_time::SimulationError;

use crate::tables::PublishedError;

/// Why a published study cannot be compared or reproduced.
#[derive(Debug, thiserror::Error)]
pub enum PapersError {
    /// A published table is missing or damaged.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// A profile is missing or cannot be used.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The description of a network cannot be used.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The constants of a study cannot be read.
    #[error("the constants of {study} cannot be read: {reason}")]
    Constants {
        /// The name of the study.
        study: &'static str,
        /// What is wrong in the file, and where.
        reason: String,
    },
    /// A simulation cannot be run.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The study has no plan for a GPU of the user.
    #[error(transparent)]
    OwnPlan(#[from] crate::OwnPlanError),
    /// A workload of the published study cannot be simulated.
    #[error("{workload}: {reason}")]
    Workload {
        /// The name of the workload.
        workload: String,
        /// Why the workload cannot be simulated.
        reason: String,
    },
}
