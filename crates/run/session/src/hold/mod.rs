//! `hold`: gets the highest inference throughput below a power cap.

mod automatic;
mod batches;
pub(crate) mod cap;
mod energy;
mod error;
mod group;
mod history;
mod hold_loop;
mod latency;
mod notice;
pub(crate) mod power_reader;
mod rank_batches;
mod real;
mod request;
mod result;
mod simulated;
pub(crate) mod socket;
mod verdict;

pub(crate) use automatic::cap_range;
pub use cap::{CapSource, InvalidCap, parse_cap};
pub use error::HoldError;
pub use latency::{LatencyRequest, hold_latency};
pub use real::hold;
pub use request::{HoldKnob, HoldRequest, default_batches};
pub use result::{HeldGpu, HoldEnergy, HoldResult, HoldStatus, TimeSlice};
pub use simulated::{SimulatedService, hold_simulated};
pub use socket::{ControlledVerb, SetCapError, set_cap};
pub use verdict::Verdict;
