//! The lowest core clock that keeps the latency bounds of a server, decided anew with every metrics page.
//!
//! The controller has no clock and no device: it takes pages as values, so that it runs against a real server and in
//! virtual time alike.

mod controller;
mod known_load;
mod late_share;
mod messages;
mod missing;
mod power_bound;
mod power_record;
mod prefill;
mod target;

pub use controller::SloController;
pub use messages::{ProbeObservation, ServingPage, SloAction, SloConfig, SloNotice};
pub use power_record::{PowerBoundResult, PowerRecord};
pub use target::{InvalidSlo, LatencyKind, Slo};
