//! The simulated NVML as a shared library.

pub use sweetspot_nvml_sim as functions;
