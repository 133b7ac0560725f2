//! Opens the GPUs of this machine.
//!
//! Only this crate knows all backends: a new backend is a crate that implements [`Host`], and a line here.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{Host, HostError};

/// The name, shown to users, of the library through which the GPUs are accessed.
pub const LIBRARY: &str = "NVML library";

/// Opens the GPUs of this machine through the default NVML library, or through the one at the path in
/// `SWEETSPOT_NVML`.
pub fn open_host() -> Result<Box<dyn Host>, HostError> {
    let library = std::env::var_os("SWEETSPOT_NVML");
    Ok(Box::new(Nvml::open(library.as_deref())?))
}
