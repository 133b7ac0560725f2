//! `hold`: the most inference under a power cap.

mod batches;
mod cap;
mod energy;
mod error;
mod feed;
mod hold_loop;
mod notice;
mod real;
mod record;
mod request;
mod result;
mod socket;
mod verdict;

pub use cap::{BadCap, Below, parse_cap};
pub use error::HoldError;
pub use real::hold;
pub use request::{HoldKnob, HoldRequest, usual_batches};
pub use result::{HeldEnergy, HoldResult, Live, Slice};
pub use socket::{SetError, set_cap};
pub use verdict::Verdict;
