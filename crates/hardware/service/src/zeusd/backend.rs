//! What the HTTP interface needs from the service.

use sweetspot_device::Knob;
use sweetspot_quantity::{Joules, Megahertz, Watts};

/// The GPUs as one caller may use them. The service implements it: who the caller is and what the policy permits is
/// known there.
///
/// Each method gets a GPU that [`Backend::gpus`] lists, but the GPU may have disappeared since.
pub trait Backend {
    /// All GPUs, in ascending order of their ids.
    fn gpus(&mut self) -> Vec<GpuSummary>;

    /// The present power of a GPU.
    fn power(&mut self, gpu: u32) -> Result<Watts, Failure>;

    /// The energy that a GPU has used since its driver was loaded.
    fn energy(&mut self, gpu: u32) -> Result<Joules, Failure>;

    /// The present power limit of a GPU.
    fn power_limit(&mut self, gpu: u32) -> Result<Watts, Failure>;

    /// The smallest and the largest power limit that a GPU supports.
    fn power_limit_range(&mut self, gpu: u32) -> Result<(Watts, Watts), Failure>;

    /// Whether the persistence mode of a GPU is enabled.
    fn persistence(&mut self, gpu: u32) -> Result<bool, Failure>;

    /// Sets the power limit of a GPU.
    fn set_power_limit(&mut self, gpu: u32, limit: Watts) -> Result<(), Failure>;

    /// Locks a clock of a GPU ([`Knob::CoreClock`] or [`Knob::MemoryClock`]) to a frequency, or unlocks it if `None`.
    fn set_clock(
        &mut self,
        gpu: u32,
        clock: Knob,
        frequency: Option<Megahertz>,
    ) -> Result<(), Failure>;

    /// Enables or disables the persistence mode of a GPU.
    fn set_persistence(&mut self, gpu: u32, enabled: bool) -> Result<(), Failure>;

    /// The wall-clock time in milliseconds since the Unix epoch.
    fn unix_time_ms(&mut self) -> u64;
}

/// A GPU as `/discover` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuSummary {
    /// The index by which clients name the GPU.
    pub id: u32,
    /// The product name.
    pub name: String,
    /// The PCI address, such as `0000:01:00.0`; `None` if it is unknown.
    pub pci_address: Option<String>,
    /// Whether the GPU counts its energy itself.
    pub has_energy_counter: bool,
}

/// Why the service did not read or set something. Each message is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The policy, another caller's lease or the driver forbids it.
    #[error("{0}")]
    Denied(String),
    /// The GPU does not support it.
    #[error("{0}")]
    Unsupported(String),
    /// The GPU does not accept the value.
    #[error("{0}")]
    Invalid(String),
    /// The driver or the service failed.
    #[error("{0}")]
    Failed(String),
}

impl Failure {
    /// The HTTP status of the failure.
    pub const fn status(&self) -> u16 {
        match self {
            Self::Denied(_) => 403,
            Self::Unsupported(_) | Self::Invalid(_) => 400,
            Self::Failed(_) => 500,
        }
    }
}
