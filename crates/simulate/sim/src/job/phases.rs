//! The phases of an iteration, computed from the work that the workload profile gives.

use sweetspot_quantity::Seconds;

use super::{Phase, Variation};
use crate::physics::Load;
use crate::profile::{ItemWork, IterationWork, PartWork, StepLine, WorkloadProfile};

impl PartWork {
    /// The part as a phase of a job.
    fn to_phase(&self, variation: Variation) -> Phase {
        Phase {
            name: self.phase + 1,
            load: Load::Kernels {
                launch: self.launch * variation.work,
                core: self.core * variation.work,
                memory: self.memory * variation.work,
                switching: self.switching * variation.switching,
                memory_activity: self.memory_activity,
            },
        }
    }
}

impl IterationWork {
    /// The loads that an iteration puts on the GPU.
    pub fn loads(&self) -> Vec<Load> {
        let phases = self.parts.iter().map(|part| part.to_phase(Variation::NONE));
        phases.map(|phase| phase.load).collect()
    }
}

/// Computes the phases of a workload iteration with this batch size.
pub(super) fn phases(
    workload: &WorkloadProfile,
    on: &ItemWork,
    batch: u64,
    variation: Variation,
) -> Vec<Phase> {
    // The share of the cores that a batch uses.
    let busy_share = |batch: f64| batch / (batch + workload.half_speed_batch);
    let items = batch as f64;
    let busy = busy_share(items) / busy_share(workload.batch as f64);
    let host = Phase {
        name: 0,
        load: Load::Waiting {
            host: (on.host_per_batch + on.host * items) * variation.work,
        },
    };
    if let Some(work) = IterationWork::interpolate(&on.iterations, batch) {
        let parts = work.parts.iter().map(|part| part.to_phase(variation));
        return std::iter::once(host).chain(parts).collect();
    }
    let kernels = workload
        .phases
        .iter()
        .enumerate()
        .map(|(index, share)| Phase {
            name: index + 1,
            load: match on.steps.get(&share.name) {
                Some(line) => line_load(line, on, batch, variation),
                None => Load::Kernels {
                    launch: on.launch * share.core * variation.work,
                    core: on.core * share.core * (items / busy * variation.work),
                    memory: (on.memory * items + on.memory_per_batch)
                        * share.memory
                        * variation.work,
                    switching: on.switching * share.switching * (busy * variation.switching),
                    memory_activity: on.memory_activity,
                },
            },
        });
    std::iter::once(host).chain(kernels).collect()
}

/// The load of a phase whose work is a line.
fn line_load(line: &StepLine, on: &ItemWork, batch: u64, variation: Variation) -> Load {
    let time = line.time(batch) * variation.work;
    Load::Kernels {
        launch: Seconds::ZERO,
        core: time * (1.0 - line.memory.get()),
        memory: time * line.memory.get(),
        switching: line.switching(batch) * variation.switching,
        memory_activity: on.memory_activity,
    }
}
