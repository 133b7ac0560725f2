//! Opens the GPUs of this machine.
//!
//! Only this crate knows all backends: a new backend is a crate that implements [`Host`], and a line here.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::ffi::OsStr;

use sweetspot_backend_nvml::Nvml;
use sweetspot_device::{Host, HostError};

/// The name, shown to users, of the library through which the GPUs are accessed.
pub const LIBRARY: &str = "NVML library";

/// Opens the GPUs of this machine through the default NVML library, or through the one at the path in
/// `SWEETSPOT_NVML`.
pub fn open_host() -> Result<Box<dyn Host>, HostError> {
    open_host_with(std::env::var_os("SWEETSPOT_NVML").as_deref())
}

/// Opens the GPUs of this machine through the NVML library at this path, or through the default one. The environment is
/// not looked at.
pub fn open_host_with(library: Option<&OsStr>) -> Result<Box<dyn Host>, HostError> {
    Ok(Box::new(Nvml::open(library)?))
}
