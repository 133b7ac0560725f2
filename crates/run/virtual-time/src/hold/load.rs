//! The work of a batch in a simulated run of `hold`.

use sweetspot_sim::Load;

/// Scales the work of a load by `factor`; the device's part of the work is also multiplied by `heavier`.
pub(crate) fn scale_load(load: &Load, factor: f64, heavier: f64) -> Load {
    let device = factor * heavier;
    match *load {
        Load::Waiting { host } => Load::Waiting {
            host: host * factor,
        },
        Load::Kernels {
            launch,
            core,
            memory,
            switching,
            memory_activity,
        } => Load::Kernels {
            launch: launch * factor,
            core: core * device,
            memory: memory * device,
            switching,
            memory_activity,
        },
        other => other,
    }
}
