//! The physics of simulated GPUs and workloads.
//!
//! A GPU profile contains the physical parameters of a board, and a workload profile the work of one item; time and
//! energy are computed from both. `docs/explanation/simulator.md` describes the model, what its parameters were fitted
//! to and how accurate it is.
//!
//! The same profile, settings and seed give the same bits, in virtual time or in real time. No profile lists a result
//! for a setting. The peculiarities of NVML, and the storage and evaluation of results, are in other crates.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod catalogue;
mod device;
mod job;
mod llm;
mod physics;
mod placement;
mod profile;
mod requests;
mod run;
mod sensors;
mod trace;
mod user_profiles;

pub use catalogue::{
    CatalogueError, Workload, find_gpu, find_node, find_workload, gpu_text, gpus, has_workloads,
    node_text, nodes, workloads,
};
pub use device::{SimulatedGpu, is_simulated, uuid};
pub use job::{GradientExchange, Job, JobError, JobRequest, Phase, ScaledWork, Variation};
pub use llm::{
    EngineLimits, GeneratedToken, LengthError, LlmEngine, LlmLoad, LlmMetrics, LlmModel,
    LlmRequest, LlmTrace, TokenLengths, TraceShape,
};
pub use physics::{Bounds, Chip, Cycle, Limits, Load, State, Steady, Step};
pub use placement::{GpuListError, PlacementError, parse_gpu_list};
pub use profile::{
    AllReduce, Cap, ConvAlgorithm, Core, Dataset, Fault, GpuProfile, HostPower, ItemWork,
    IterationWork, KernelErrors, Kernels, Memory, MemoryNeed, Meter, Mode, NodeLoad, NodePower,
    NodeProfile, PackageLoad, PartWork, Peak, PhaseShare, PowerDraw, Processors, ProfileError,
    Supply, Thermal, UnitUseFault, Variant, VariantError, WorkloadProfile, parse_gpu, parse_node,
    parse_workload,
};
pub use requests::{ArrivalError, Arrivals, QueueStatus, RequestQueue};
pub use run::{
    GroupOutcome, Outcome, PhaseTotal, Rank, RunSpan, Stretch, StretchSink, run, run_together,
};
pub use sensors::Generation;
pub use sweetspot_device::{Knob, SensorKind};
pub use trace::Trace;
pub use user_profiles::use_profiles;
