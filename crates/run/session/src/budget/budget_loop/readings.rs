//! Passes to the control algorithm which programs use the GPUs, what the GPUs draw, and how the programs progress.

use sweetspot_control::budget::{BudgetEvent, Budgeter, GpuReading};
use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::BudgetLoop;
use crate::DevicesError;
use crate::budget::programs::GpuProgram;
use crate::hold::power_reader::DeviceReading;
use crate::observer::Observer;

/// The ticks between two looks at which programs run.
const PROGRAM_TICKS: u64 = 5;

impl BudgetLoop {
    /// Looks at which programs use the GPUs.
    pub(super) fn find_programs(&mut self, budgeter: &mut Budgeter) {
        if self.tick.is_multiple_of(PROGRAM_TICKS) {
            self.programs.refresh();
            self.holds.retain(self.programs.holds());
        }
        for number in 0..self.gpus.len() {
            let gpu = &mut self.gpus[number];
            let Some(pids) = gpu.processes().filter(|_| !gpu.is_lost) else {
                continue;
            };
            // A program with the same processes is looked at again now and then: its link may be new.
            if pids.is_empty() == gpu.program.is_none() && !self.tick.is_multiple_of(PROGRAM_TICKS)
            {
                continue;
            }
            let program = self.programs.find(&pids);
            let id = program.as_ref().map(|program| program.id);
            if id != gpu.program.as_ref().map(|program| program.id) {
                gpu.items = (gpu.items.0 + gpu.items.1, 0.0);
                let event = BudgetEvent::Program {
                    gpu: number,
                    program: id,
                };
                budgeter.step(self.now, event);
            }
            gpu.program = program;
        }
    }

    /// Reads the power of all GPUs.
    pub(super) fn read_gpus(&mut self, budgeter: &mut Budgeter, observer: &mut dyn Observer) {
        for number in 0..self.gpus.len() {
            let gpu = &mut self.gpus[number];
            let (mut energy, mut time) = (Joules::ZERO, Seconds::ZERO);
            let mut found = None;
            for reading in gpu.reader.take_readings() {
                match reading {
                    DeviceReading::Power { reading, .. } => {
                        let span = reading.to - reading.from;
                        energy += reading.power * span;
                        time += span;
                    }
                    DeviceReading::Limit { limits, throttled } => {
                        gpu.is_limited = throttled;
                        found = Some(limits.requested);
                    }
                    DeviceReading::Lost => gpu.is_lost = true,
                }
            }
            if gpu.is_lost {
                if gpu.power.take().is_some() {
                    let lost = DevicesError::Lost(gpu.gpu.descriptor().name.clone());
                    let text = format!("{}: {lost}; the others share its power", gpu.name());
                    budgeter.step(self.now, BudgetEvent::Lost { gpu: number });
                    self.notify(observer, text);
                }
                continue;
            }
            if time > Seconds::ZERO {
                gpu.power = Some(energy / time);
            }
            // Another program has raised the cap: the control algorithm lowers it again.
            if let (Some(found), Some(asked)) = (found, gpu.asked)
                && found.get() > asked.get() + 0.5
            {
                budgeter.step(
                    self.now,
                    BudgetEvent::Applied {
                        gpu: number,
                        cap: found,
                    },
                );
            }
            let Some(power) = gpu.power else { continue };
            let is_busy = gpu.is_busy();
            let passed = self.now - self.last;
            gpu.energy += power * passed;
            if is_busy {
                gpu.busy += passed;
            }
            let reading = GpuReading {
                power,
                limited: Some(Ratio::new(f64::from(u8::from(gpu.is_limited)))),
                is_busy,
            };
            budgeter.step(
                self.now,
                BudgetEvent::Read {
                    gpu: number,
                    reading,
                },
            );
        }
    }

    /// Passes the progress of programs to the control algorithm.
    pub(super) fn read_progress(&mut self, budgeter: &mut Budgeter) {
        let programs: Vec<Option<GpuProgram>> =
            self.gpus.iter().map(|gpu| gpu.program.clone()).collect();
        let zero = self.begin - Moment::from_nanos(0);
        for (link, at, items) in self.programs.progress(&programs) {
            for (number, gpu) in self.gpus.iter_mut().enumerate() {
                let own = gpu
                    .program
                    .as_ref()
                    .and_then(|program| program.link.as_ref());
                if own != Some(&link) {
                    continue;
                }
                gpu.items.1 = items;
                gpu.has_items = true;
                let event = BudgetEvent::Progress {
                    gpu: number,
                    at: at - zero,
                    items,
                };
                budgeter.step(self.now, event);
            }
        }
    }
}
