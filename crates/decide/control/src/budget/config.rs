//! The configuration of a budgeter.

use sweetspot_quantity::Watts;

/// The GPUs that share a budget, and the budget at the start.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetConfig {
    /// The power that all GPUs together may draw.
    pub budget: Watts,
    /// The GPUs.
    pub gpus: Vec<BudgetedDevice>,
}

/// A GPU that shares a budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetedDevice {
    /// The lowest power cap that the GPU accepts.
    pub min_cap: Watts,
    /// The highest power cap that the GPU may have: the one that it had before.
    pub max_cap: Watts,
    /// The power cap that the GPU gets at least, while its program runs; `None` for the lowest that the GPU accepts.
    pub floor: Option<Watts>,
    /// How much the GPU's throughput counts, relative to the others.
    pub priority: f64,
    /// Whether the power cap can be set. If not, what the GPU draws is taken from the budget of the others.
    pub is_settable: bool,
}

/// Why GPUs cannot share a budget.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BudgetConfigError {
    /// The budget is not a positive power.
    #[error("the budget must be a power above 0, such as 1200W")]
    NoBudget,
    /// There is no GPU.
    #[error("there is no GPU to share the budget")]
    NoGpu,
    /// A priority is not a positive number.
    #[error("the priority {0} is not a number above 0")]
    Priority(f64),
}

impl BudgetedDevice {
    /// Describes a GPU without floor and with the usual priority.
    pub const fn new(min_cap: Watts, max_cap: Watts) -> Self {
        Self {
            min_cap,
            max_cap,
            floor: None,
            priority: 1.0,
            is_settable: true,
        }
    }

    /// The power cap that the GPU gets at least while its program runs.
    pub(super) fn lowest_cap(&self) -> f64 {
        let (min, max) = (self.min_cap.get(), self.max_cap.get());
        let floor = self.floor.map_or(min, Watts::get);
        floor.max(min).min(max)
    }
}

impl BudgetConfig {
    /// Checks the values.
    pub fn check(&self) -> Result<(), BudgetConfigError> {
        if !(self.budget.is_finite() && self.budget > Watts::ZERO) {
            return Err(BudgetConfigError::NoBudget);
        }
        if self.gpus.is_empty() {
            return Err(BudgetConfigError::NoGpu);
        }
        let is_bad = |priority: &f64| !(priority.is_finite() && *priority > 0.0);
        let mut priorities = self.gpus.iter().map(|gpu| gpu.priority);
        match priorities.find(is_bad) {
            Some(priority) => Err(BudgetConfigError::Priority(priority)),
            None => Ok(()),
        }
    }
}
