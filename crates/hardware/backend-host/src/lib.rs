//! The processor packages, the memory and the power probes of a machine, as Linux shows them below `/sys`: zones of
//! powercap (RAPL) and channels of hwmon.
//!
//! The energy of the host is the sum of its packages and of the memory beside them
//! ([`DeviceKind::is_host_energy`](sweetspot_device::DeviceKind::is_host_energy)): the parts of a package are within it,
//! psys covers the whole platform, and probes overlap with all of these, so none of them is added.
//!
//! Promises: an energy counter goes on where the kernel's wraps around; a counter that may not be read is denied, never
//! zero; a package that the kernel shows twice (`intel-rapl-mmio`) is one device. Left to others: permission to write
//! (`guard`), computing energy from readings (`measure`).

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod counter;
mod detect;
mod error;
mod hwmon;
mod part;
mod powercap;
mod read;
mod sysfs;
mod write;

pub use detect::{DEFAULT_ROOT, HostTree, ROOT_VARIABLE};
pub use error::{CAP_FIX, ENERGY_FIX};
pub use part::{HostPart, SensorAccess};
