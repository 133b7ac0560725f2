//! A GPU of a budget: what was read from it, and what was asked of it.

use sweetspot_control::budget::BudgetedDevice;
use sweetspot_device::{Amount, SensorKind};
use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

use super::power::GpuPower;
use crate::budget::programs::GpuProgram;
use crate::budget::result::lacks_readings;
use crate::hold::power_reader::{DeviceReading, PowerReader};
use crate::host::Gpu;

/// Limits that were read so soon after a cap was set may be from before it.
const LIMIT_DELAY: Seconds = Seconds::new(0.5);

/// Who may set the power cap of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// This budget.
    Own,
    /// Another process, until it ends; meanwhile only a `hold` that runs there can limit the GPU.
    Other,
    /// Nobody: the cap cannot be set.
    Refused,
}

/// A GPU of the budget.
pub struct BudgetedGpu {
    pub(super) gpu: Gpu,
    pub(super) device: BudgetedDevice,
    pub(super) reader: PowerReader,
    pub(super) power: GpuPower,
    pub(super) is_limited: bool,
    pub(super) is_lost: bool,
    /// Whether the user knows that there are no power readings.
    pub(super) is_silence_noted: bool,
    pub(super) reservation: Reservation,
    pub(super) program: Option<GpuProgram>,
    /// Whether the user knows that the `hold` on this GPU does not accept limits.
    pub(super) is_hold_silent: bool,
    /// The cap that this budget asked for last, and when it was set.
    pub(super) asked: Option<Watts>,
    pub(super) set_at: Option<Seconds>,
    pub(super) busy: Seconds,
    /// The items of earlier programs and of the present one.
    pub(super) items: (f64, f64),
    pub(super) has_items: bool,
}

impl BudgetedGpu {
    /// Creates the state of a GPU about which nothing is known yet.
    pub fn new(
        gpu: Gpu,
        device: BudgetedDevice,
        reservation: Reservation,
        reader: PowerReader,
    ) -> Self {
        Self {
            gpu,
            device,
            reader,
            power: GpuPower::new(),
            is_limited: false,
            is_lost: false,
            is_silence_noted: false,
            reservation,
            program: None,
            is_hold_silent: false,
            asked: None,
            set_at: None,
            busy: Seconds::ZERO,
            items: (0.0, 0.0),
            has_items: false,
        }
    }

    /// The name of the GPU in messages, which contains its index.
    pub(super) fn name(&self) -> String {
        format!("GPU {}", self.gpu.index())
    }

    /// Takes the readings since the last call. Returns the power cap that the GPU has, unless it was read before this
    /// budget's last change can be seen.
    pub(super) fn take_readings(&mut self, now: Seconds) -> Option<Watts> {
        if self.power.is_unchanged(now) && self.runs_kernels().unwrap_or(self.program.is_some()) {
            self.power.note_work(now);
        }
        let (mut readings, mut found) = (Vec::new(), None);
        for reading in self.reader.take_readings() {
            match reading {
                DeviceReading::Power { reading, is_new } => readings.push((reading, is_new)),
                DeviceReading::Limit { limits, throttled } => {
                    self.is_limited = throttled;
                    found = Some(limits.requested);
                }
                DeviceReading::Lost => self.is_lost = true,
            }
        }
        self.power.take(now, &readings);
        let is_just_set = self.set_at.is_some_and(|at| now - at < LIMIT_DELAY);
        found.filter(|_| !is_just_set)
    }

    /// The energy in a time; `None` if too much of it is unknown. A short time without readings counts with the mean power
    /// of the rest.
    pub(super) fn energy(&self, time: Seconds) -> Option<Joules> {
        let (energy, covered) = self.power.energy();
        let is_known = covered > Seconds::ZERO && !lacks_readings(self.power.unread(time), time);
        is_known.then(|| energy / covered * time)
    }

    /// The process id of the `hold` that runs on the GPU.
    pub(super) fn hold(&self) -> Option<u32> {
        self.program.as_ref().and_then(|program| program.hold)
    }

    /// The ids of the processes that use the GPU; `None` if they are unknown.
    pub(super) fn processes(&mut self) -> Option<Vec<u32>> {
        self.gpu.processes().ok()
    }

    /// Whether a program uses the GPU: it has processes, or its units work.
    pub(super) fn is_busy(&mut self) -> bool {
        self.program.is_some() || self.runs_kernels() == Some(true)
    }

    /// Whether the units of the GPU work; `None` if it does not tell.
    pub(super) fn runs_kernels(&mut self) -> Option<bool> {
        match self.gpu.read(SensorKind::Utilisation).ok()?.amount {
            Amount::Share(share) => Some(share > Ratio::ZERO),
            _ => None,
        }
    }
}
