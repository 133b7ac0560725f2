//! A GPU of a budget: what was read from it, and what was asked of it.

use sweetspot_control::budget::BudgetedDevice;
use sweetspot_device::{Amount, SensorKind};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use crate::budget::programs::GpuProgram;
use crate::hold::power_reader::PowerReader;
use crate::host::Gpu;

/// A GPU of the budget.
pub struct BudgetedGpu {
    pub(super) gpu: Gpu,
    pub(super) device: BudgetedDevice,
    pub(super) reader: PowerReader,
    pub(super) power: Option<Watts>,
    pub(super) is_limited: bool,
    pub(super) is_lost: bool,
    /// Whether this budget has leased the GPU. If not, only a `hold` that runs there can limit it.
    pub(super) is_leased: bool,
    pub(super) program: Option<GpuProgram>,
    /// Whether the user knows that the `hold` on this GPU does not accept limits.
    pub(super) is_hold_silent: bool,
    /// The cap that this budget asked for last.
    pub(super) asked: Option<Watts>,
    pub(super) energy: Joules,
    pub(super) busy: Seconds,
    /// The items of earlier programs and of the present one.
    pub(super) items: (f64, f64),
    pub(super) has_items: bool,
}

impl BudgetedGpu {
    /// Creates the state of a GPU about which nothing is known yet.
    pub fn new(gpu: Gpu, device: BudgetedDevice, is_leased: bool, reader: PowerReader) -> Self {
        Self {
            gpu,
            device,
            reader,
            power: None,
            is_limited: false,
            is_lost: false,
            is_leased,
            program: None,
            is_hold_silent: false,
            asked: None,
            energy: Joules::ZERO,
            busy: Seconds::ZERO,
            items: (0.0, 0.0),
            has_items: false,
        }
    }

    /// The name of the GPU in messages, which contains its index.
    pub(super) fn name(&self) -> String {
        format!("GPU {}", self.gpu.index())
    }

    /// The ids of the processes that use the GPU; `None` if they are unknown.
    pub(super) fn processes(&mut self) -> Option<Vec<u32>> {
        self.gpu.processes().ok()
    }

    /// Whether a program uses the GPU: it has processes, or its units work.
    pub(super) fn is_busy(&mut self) -> bool {
        if self.program.is_some() {
            return true;
        }
        let used = self.gpu.read(SensorKind::Utilisation);
        used.is_ok_and(
            |reading| matches!(reading.amount, Amount::Share(share) if share > Ratio::ZERO),
        )
    }
}
