//! Whether a workload can run on a GPU: the device memory, and the time of the run.

use sweetspot_quantity::{Bytes, Seconds};

use crate::profile::{GpuProfile, ItemWork, WorkloadProfile};

/// Why a workload cannot run on a GPU.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum JobError {
    /// The batch does not fit into the device memory.
    #[error(
        "a batch of {batch} needs {need:.1} of device memory, but {gpu} has {capacity:.1}; {}",
        match largest { 0 => "not even one item fits".to_owned(), n => format!("the largest that fits is {n}") }
    )]
    OutOfMemory {
        /// The product name of the GPU.
        gpu: String,
        /// The requested batch size.
        batch: u64,
        /// The memory that the batch needs.
        need: Bytes,
        /// The memory that the GPU has.
        capacity: Bytes,
        /// The largest batch size that fits; 0 if none does.
        largest: u64,
    },
    /// The run would take longer than is allowed, which is about four months.
    #[error("a run would take {:.0} hours, more than the limit of {:.0}: use fewer items", time.get() / 3600.0, limit.get() / 3600.0)]
    TooLong {
        /// The time of the run at the default clocks.
        time: Seconds,
        /// The longest run that is allowed.
        limit: Seconds,
    },
    /// The workload profile gives the work only for this GPU, which has no GPU profile. Therefore the work
    /// cannot be scaled to other GPUs.
    #[error(
        "the workload profile is for the GPU `{0}`, which has no GPU profile: the work cannot be scaled to other GPUs"
    )]
    UnknownBase(String),
}

/// Checks that a batch fits into the device memory.
pub(super) fn check_memory(
    workload: &WorkloadProfile,
    gpu: &GpuProfile,
    batch: u64,
) -> Result<(), JobError> {
    let memory = &workload.memory;
    let need = memory.fixed + memory.per_item * batch as f64;
    let capacity = gpu.memory.capacity;
    if need <= capacity {
        return Ok(());
    }
    let room = ((capacity - memory.fixed) / memory.per_item).get();
    Err(JobError::OutOfMemory {
        gpu: gpu.name.clone(),
        batch,
        need,
        capacity,
        largest: if room >= 1.0 { room as u64 } else { 0 },
    })
}

/// The longest run that is simulated: a longer one is probably a typing error.
const MAX_RUN_TIME: Seconds = Seconds::new(1e7);

/// Checks that a run takes at most [`MAX_RUN_TIME`].
pub(super) fn check_length(on: &ItemWork, batch: u64, items: u64) -> Result<(), JobError> {
    let items = items as f64;
    let device = (on.core + on.memory + on.host) * items;
    let each = on.host_per_batch + on.launch + on.memory_per_batch;
    let time = on.startup + device + each * (items / batch as f64).ceil();
    if time <= MAX_RUN_TIME {
        Ok(())
    } else {
        Err(JobError::TooLong {
            time,
            limit: MAX_RUN_TIME,
        })
    }
}
