//! What a command does, from a typed request to a typed answer.
//!
//! The program turns flags into requests and answers into text; everything in between is here, so that
//! a service or another program can do the same.

pub mod published;

mod deviations;
mod error;
mod sweep;
mod virtual_time;

pub use deviations::{Deviation, StudyDeviations, TOLERANCE, deviations};
pub use error::SessionError;
pub use sweep::{SweepRequest, sweep};
