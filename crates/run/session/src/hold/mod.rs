//! `hold`: inference under a power cap, in virtual time on simulated GPUs and in real time with a command.

mod batches;
mod cap;
mod energy;
mod feed;
mod hold_loop;
mod notice;
mod real;
mod record;
mod request;
mod result;
mod simulated;
mod socket;
mod verdict;

pub use cap::{BadCap, Below, parse_cap};
pub use real::hold;
pub use request::{HoldKnob, HoldRequest, usual_batches};
pub use result::{HeldEnergy, HoldResult, Live, Slice};
pub use simulated::{Conditions, Disturbance, HoldOutcome, PowerSample, Rig, Sensor};
pub use socket::{SetError, set_cap};
pub use verdict::Verdict;
