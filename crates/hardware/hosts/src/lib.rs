//! The GPUs of this machine, whichever backend finds them.
//!
//! This is the one crate that knows which backends there are: a new backend is a crate that implements
//! [`Host`], and a line here.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{Host, HostError};

/// What the GPUs of this machine are reached through, for people.
pub const LIBRARY: &str = "NVML library";

/// Opens the host of this machine: NVML from its usual place, or from where `SWEETSPOT_NVML` says.
pub fn open_host() -> Result<Box<dyn Host>, HostError> {
    let library = std::env::var_os("SWEETSPOT_NVML");
    Ok(Box::new(Nvml::open(library.as_deref())?))
}
