//! Why a budget cannot be kept.

use sweetspot_control::budget::BudgetConfigError;
use sweetspot_quantity::Watts;

/// Why a budget cannot be kept.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BudgetError {
    /// The meter of the whole machine shows no power.
    #[error("{0}")]
    Meter(String),
    /// The values of the request contradict each other.
    #[error(transparent)]
    Config(#[from] BudgetConfigError),
    /// No budget was given.
    #[error("no budget was given: give a power such as 1200W, or a cap file that contains one")]
    NoBudget,
    /// The cap file contains no valid budget; the text says what is wrong with it.
    #[error(
        "{0}; write a power such as 1200W to the cap file, or give a budget on the command line"
    )]
    CapFile(String),
    /// Another budget divides the power of these GPUs.
    #[error(
        "another budget (pid {pid}) already divides the power of {gpu}: change it with `sweetspot budget set POWER`, end it, or name other GPUs"
    )]
    AlreadyRunning {
        /// The process id of the other budget.
        pid: u32,
        /// The GPU that the other budget controls.
        gpu: String,
    },
    /// No power cap can be set.
    #[error("the power cap of no GPU can be set, so no budget can be kept: {0}")]
    NothingSettable(String),
    /// A floor or priority is for a GPU that does not share the budget.
    #[error("the {option} is for GPU {gpu}, which does not share the budget: the GPUs are {known}")]
    UnknownGpu {
        /// What was given: floor or priority.
        option: &'static str,
        /// The index of the GPU.
        gpu: u32,
        /// The indices of the GPUs that share the budget.
        known: String,
    },
    /// A floor is above the present cap of the GPU.
    #[error(
        "the floor of GPU {gpu} is {floor:.0}, but its present power cap is {max:.0}, which a budget never raises"
    )]
    FloorTooHigh {
        /// The index of the GPU.
        gpu: u32,
        /// The floor that was given.
        floor: Watts,
        /// The present cap of the GPU.
        max: Watts,
    },
}
