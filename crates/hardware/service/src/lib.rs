//! The privileged service: lets users without root change device settings, within a policy.
//!
//! One small process runs as root. It leases devices, applies settings, restores them and releases the devices, and does
//! nothing else: it runs no command and opens no file that a client names. Who asks is known from the kernel, not from
//! the request. A lease ends with the process that took it.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod install;
pub mod ownership;
mod policy;
pub mod privileges;
mod zeusd;
