//! The lowest core clock that keeps the latency bounds of a server, decided anew with every metrics page.
//!
//! The controller has no clock and no device: it takes pages as values, so that it runs against a real server and in
//! virtual time alike.

mod controller;
mod prefill;
mod target;

pub use controller::{ServingPage, SloAction, SloConfig, SloController, SloNotice};
pub use target::{InvalidSlo, LatencyKind, Slo};
