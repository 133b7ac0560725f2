//! The measuring process of the service: named counters for many clients, metrics for Prometheus, and the live page.
//!
//! It runs as a user without rights beside the privileged process, which passes it the sockets of clients
//! (`sweetspot_service::monitor_link`). One thread serves all clients with `poll`; the [`meter`] reads the GPUs in threads
//! of its own. It sets nothing: no request changes a device.
//!
//! A program without the service can start the same process for itself ([`PrivateGpus`]), as `sweetspot.measure()` in Python
//! does: it plays the part of the privileged process, and its counters are answered in the same way.
//!
//! Promises: who a client is comes from the kernel; every client, user and counter has bounded memory; a client that is
//! slow or silent keeps nobody waiting. Energies come from the estimator that `measure` uses.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

pub mod access;
pub mod api;
pub mod client;
pub mod counters;
pub mod gpus;
pub mod jobs;
mod leased;
pub mod meter;
mod metrics;
pub mod page;
pub mod processors;
pub mod routes;
pub mod sample_stream;
pub mod samples;
pub mod server;
mod start;
pub mod state;
pub mod timeline;
pub mod top;

pub use start::{MonitorError, MonitorRequest, PrivateGpus, run_monitor};
