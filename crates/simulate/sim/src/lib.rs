//! Simulated GPUs and workloads: physics, not tables.
//!
//! A GPU profile holds physical parameters of a board, a workload profile the work of one item; time
//! and energy follow from both. `docs/simulator.md` has the model, what its parameters were fitted to
//! and how far off it is.
//!
//! Promises: the same profile, settings and seed give the same bits, in virtual time as fast as it can
//! be computed, in real time whenever it is asked. No profile lists an outcome for a setting.
//! Left to others: NVML's own quirks, storing and judging results.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod catalogue;
mod device;
mod job;
mod physics;
mod placement;
mod profile;
mod requests;
mod run;
mod sensors;

pub use catalogue::{
    CatalogueError, Workload, find_gpu, find_node, find_workload, gpu_text, gpus, has_workloads,
    node_text, nodes, workloads,
};
pub use device::{SimulatedGpu, uuid};
pub use job::{Exchange, Job, JobError, Order, Phase, Variation, Work};
pub use physics::{Chip, Cycle, Limits, Load, State, Step};
pub use placement::{GpuListError, PlacementError, parse_gpu_list};
pub use profile::{
    AllReduce, Cap, ConvAlgorithm, Core, Dataset, Fault, GpuProfile, HostPower, Memory, MemoryNeed,
    Meter, Mode, NodeProfile, On, Peak, PhaseShare, PowerDraw, ProfileError, Supply, Thermal,
    Variant, VariantError, WorkloadProfile, parse_gpu, parse_node, parse_workload,
};
pub use requests::{ArrivalError, Arrivals, QueueStatus, RequestQueue};
pub use run::{Outcome, PhaseTotal, Rank, Sink, Span, Stretch, Together, Trace, run, run_together};
pub use sensors::Generation;
pub use sweetspot_device::{Knob, SensorKind};
