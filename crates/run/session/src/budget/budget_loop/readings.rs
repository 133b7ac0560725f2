//! Passes to the control algorithm which programs use the GPUs, what the GPUs draw, and how the programs progress.

use sweetspot_control::MAX_READING_GAP;
use sweetspot_control::budget::{BudgetEvent, Budgeter, GpuReading};
use sweetspot_device::Moment;
use sweetspot_quantity::{Ratio, Watts};

use super::BudgetLoop;
use crate::DevicesError;
use crate::budget::programs::GpuProgram;
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
            let was_lost = self.gpus[number].is_lost;
            let found = self.gpus[number].take_readings(self.now);
            let gpu = &self.gpus[number];
            if gpu.is_lost {
                if !was_lost {
                    let lost = DevicesError::Lost(gpu.gpu.descriptor().name.clone());
                    let text = format!("{}: {lost}; the others share its power", gpu.name());
                    budgeter.step(self.now, BudgetEvent::Lost { gpu: number });
                    self.notify(observer, text);
                }
                continue;
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
            self.note_silence(number, observer);
            let gpu = &mut self.gpus[number];
            let is_busy = gpu.is_busy();
            if is_busy {
                gpu.busy += self.now - self.last;
            }
            let event = match gpu.power.present(self.now) {
                Some(power) => BudgetEvent::Read {
                    gpu: number,
                    reading: GpuReading {
                        power,
                        limited: Some(Ratio::new(f64::from(u8::from(gpu.is_limited)))),
                        is_busy,
                    },
                },
                None => BudgetEvent::Unread {
                    gpu: number,
                    is_busy,
                },
            };
            budgeter.step(self.now, event);
        }
        // Without a reading of each GPU there is no sum.
        let ends = self.gpus.iter().map(|gpu| gpu.power.last_end());
        if let Some(Some(end)) = ends.reduce(|a, b| Some(a?.min(b?))) {
            self.together.record(end, end);
        }
    }

    /// Says when the power readings of a GPU stop, and when they resume.
    fn note_silence(&mut self, number: usize, observer: &mut dyn Observer) {
        let gpu = &mut self.gpus[number];
        let is_silent = gpu.power.is_silent(self.now);
        if is_silent == std::mem::replace(&mut gpu.is_silence_noted, is_silent) {
            return;
        }
        let name = gpu.name();
        let text = match is_silent {
            true => format!(
                "{name}: no new power reading for {MAX_READING_GAP:.0}: what it draws is unknown until readings resume"
            ),
            false => format!("{name}: power readings resumed"),
        };
        self.notify(observer, text);
    }

    /// The power of all GPUs together; `None` if that of one is unknown.
    pub(super) fn sum_of_powers(&self) -> Option<Watts> {
        let powers = self.gpus.iter().map(|gpu| match gpu.is_lost {
            true => None,
            false => gpu.power.present(self.now),
        });
        powers.sum()
    }

    /// Passes the progress of programs to the control algorithm.
    pub(super) fn read_progress(&mut self, budgeter: &mut Budgeter) {
        let programs: Vec<Option<GpuProgram>> =
            self.gpus.iter().map(|gpu| gpu.program.clone()).collect();
        let zero = self.begin - Moment::from_nanos(0);
        for (link, at, items) in self.programs.progress(&programs) {
            let uses = |program: &&GpuProgram| program.link.as_ref() == Some(&link);
            let shared_by = programs.iter().flatten().filter(uses).count();
            for (number, gpu) in self.gpus.iter_mut().enumerate() {
                let own = gpu
                    .program
                    .as_ref()
                    .and_then(|program| program.link.as_ref());
                if own != Some(&link) {
                    continue;
                }
                // Each GPU of a job has its part of the items.
                gpu.items.1 = items / shared_by.max(1) as f64;
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
