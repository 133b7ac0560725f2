//! What a user asks of `budget`.

use std::path::PathBuf;

use sweetspot_control::budget::BudgetedDevice;
use sweetspot_quantity::{Seconds, Watts};

use super::error::BudgetError;

/// A request to keep GPUs together under a budget.
#[derive(Clone, Debug, Default)]
pub struct BudgetRequest {
    /// The GPUs, by index or UUID; all visible GPUs if `None`.
    pub device: Option<String>,
    /// The power that all GPUs together may draw; `None` if the cap file says it.
    pub budget: Option<Watts>,
    /// A file that another program writes the budget to.
    pub cap_file: Option<PathBuf>,
    /// The least power of single GPUs while a program runs there.
    pub floors: Vec<GpuOption<Watts>>,
    /// How much the throughput of single GPUs counts; 1 if it is not given.
    pub priorities: Vec<GpuOption<f64>>,
    /// How long the budget is kept; until a signal if `None`.
    pub time: Option<Seconds>,
    /// The meters at which the budget of the whole machine is kept; empty for a budget of the GPUs.
    pub meters: Vec<String>,
    /// Whether writes to the devices are forbidden.
    pub read_only: bool,
}

/// A value for the GPU with this index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuOption<T> {
    /// The index of the GPU.
    pub gpu: u32,
    /// The value for the GPU.
    pub value: T,
}

impl BudgetRequest {
    /// The budget at the start, from the cap file or the command line.
    pub(super) fn first_budget(
        &self,
        from_file: Option<&Result<Watts, String>>,
    ) -> Result<Watts, BudgetError> {
        match (from_file, self.budget) {
            (Some(Ok(budget)), _) => Ok(*budget),
            (_, Some(budget)) => Ok(budget),
            (Some(Err(problem)), None) => Err(BudgetError::CapFile(problem.clone())),
            (None, None) => Err(BudgetError::NoBudget),
        }
    }

    /// Adds floors and priorities to the GPUs, which are given with their indices. Returns what the user should know about
    /// them.
    pub(super) fn add_options(
        &self,
        devices: &mut [(u32, BudgetedDevice)],
    ) -> Result<Vec<String>, BudgetError> {
        let mut notes = Vec::new();
        let known = devices.iter().map(|(index, _)| index.to_string());
        let known = known.collect::<Vec<_>>().join(", ");
        let unknown = |option, gpu| BudgetError::UnknownGpu {
            option,
            gpu,
            known: known.clone(),
        };
        for floor in &self.floors {
            let found = devices.iter_mut().find(|(index, _)| *index == floor.gpu);
            let (_, device) = found.ok_or_else(|| unknown("floor", floor.gpu))?;
            if floor.value > device.max_cap {
                return Err(BudgetError::FloorTooHigh {
                    gpu: floor.gpu,
                    floor: floor.value,
                    max: device.max_cap,
                });
            }
            if floor.value < device.min_cap {
                notes.push(format!(
                    "GPU {}: its lowest power cap is {:.0}, so that its floor of {:.0} has no effect",
                    floor.gpu, device.min_cap, floor.value
                ));
            }
            device.floor = Some(floor.value);
        }
        for priority in &self.priorities {
            let found = devices.iter_mut().find(|(index, _)| *index == priority.gpu);
            let (_, device) = found.ok_or_else(|| unknown("priority", priority.gpu))?;
            device.priority = priority.value;
        }
        Ok(notes)
    }
}
