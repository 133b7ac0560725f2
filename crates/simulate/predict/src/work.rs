//! The work of an iteration as the simulator knows it, from the costs of its kernels.

use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Chip, Mode, PartWork};

use crate::cost::KernelCost;
use crate::rates::GpuRates;

/// The parts of an iteration: one for each phase.
pub fn iteration_work(
    costs: &[KernelCost],
    host: Seconds,
    mode: Mode,
    gpu: &GpuRates,
    chip: &Chip,
) -> Vec<PartWork> {
    let mut forward = KernelCost::default();
    for cost in costs {
        forward += *cost;
    }
    let passes = match mode {
        Mode::Infer => vec![forward],
        // Two products of the same size give the gradients of inputs and weights.
        Mode::Train => vec![forward, forward.repeated(gpu.kernels.backward.get(), 2.0)],
    };
    let time: f64 = passes.iter().map(|pass| pass.time).sum();
    let energy: f64 = passes.iter().map(|pass| pass.energy(gpu)).sum();
    let waiting = chip.waiting_power(Watts::new(energy / time));
    let parts = passes.iter().enumerate().map(|(phase, pass)| {
        let launch = host * (pass.time / time);
        pass.to_part(phase, launch, waiting, gpu, chip)
    });
    parts.collect()
}

impl KernelCost {
    /// The cost of work that takes `time` times as long and has `operations` times as many operations.
    fn repeated(&self, time: f64, operations: f64) -> Self {
        Self {
            time: self.time * time,
            vector_time: self.vector_time * time,
            core_time: self.core_time * time,
            operations: self.operations * operations,
            memory_bytes: self.memory_bytes * time,
            cache_bytes: self.cache_bytes * time,
        }
    }

    /// The cost as a part of an iteration on a GPU that draws `waiting` while it runs no kernel.
    fn to_part(
        self,
        phase: usize,
        launch: Seconds,
        waiting: Watts,
        gpu: &GpuRates,
        chip: &Chip,
    ) -> PartWork {
        let share = |power: f64, of: Watts| Ratio::new((power / of.get()).max(0.0));
        // The simulator draws it only while kernels run, but it does not depend on them.
        let waits = (launch.get() / self.time).max(1.0);
        let fixed = (gpu.kernels.base_power.get() - waiting.get()) * waits;
        PartWork {
            phase,
            launch,
            core: Seconds::new(self.core_time),
            memory: Seconds::new(self.time - self.core_time),
            switching: share(self.core_energy(gpu) / self.time, chip.core_power()),
            memory_activity: share(
                fixed + self.memory_energy(gpu) / self.time,
                chip.memory_power(),
            ),
        }
    }
}
