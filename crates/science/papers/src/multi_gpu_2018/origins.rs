//! What the profiles of multi_gpu_2018 were fitted to.

use super::jobs::PASCAL;
use super::tables::StepCell;
use crate::origin::ValueOrigin;

/// The network whose cells on several GPUs the links were fitted to.
const NETWORK_OF_LINKS: &str = "CaffeNet";

/// A quantity of a cell in tables 4, 5, 7 and 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The seconds of a batch.
    Time,
    /// The joules of a batch.
    Energy,
    /// The watts during a step.
    Power,
}

/// Whether a value of a consistent cell on several GPUs was used: CaffeNet's for the links. Joules and watts of ResNet's
/// backward step on two GPUs were in view when its power was chosen; no parameter follows from its seconds.
pub fn is_fitted_on_several(printed_network: &str, step: &str, gpus: u64, is_time: bool) -> bool {
    let power_of_resnet =
        printed_network == "ResNet" && step == "backward" && gpus == 2 && !is_time;
    gpus > 1 && (printed_network == NETWORK_OF_LINKS || power_of_resnet)
}

/// Whether a cell is the only one with the algorithm that cuDNN chooses for large batches, so that a profile contains its time.
fn is_of_other_algorithm(cell: &StepCell) -> bool {
    let is_network = cell.printed_network == "ResNet" && cell.step == "backward";
    is_network && cell.gpu == PASCAL && cell.gpus == 1 && cell.batch == 256
}

/// The origin of a value of a cell.
pub fn origin_of(cell: &StepCell, quantity: Quantity) -> ValueOrigin {
    let is_time = quantity == Quantity::Time;
    let several = is_fitted_on_several(&cell.printed_network, &cell.step, cell.gpus, is_time);
    match (cell.is_consistent(), quantity) {
        _ if is_time && is_of_other_algorithm(cell) => ValueOrigin::Input,
        // Watts are joules over seconds.
        (true, Quantity::Power) => ValueOrigin::Derived,
        (true, _) if cell.gpus == 1 || several => ValueOrigin::Fitted,
        // Of one GPU's cells that contradict themselves, the seconds and the watts were used.
        (false, Quantity::Time | Quantity::Power) if cell.gpus == 1 => ValueOrigin::Fitted,
        _ => ValueOrigin::Predicted,
    }
}
