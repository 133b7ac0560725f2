//! The channel between a workload and the tool: a folder of ring files in shared memory.
//!
//! A workload marks phases, items done and values with a [`Writer`] of its own per thread; the tool takes
//! them with a [`Reader`] and gives words back through its [`Control`]. What a serving program tells of its batches
//! and queue has names of its own, in [`value`]. [`pair()`] makes spans of the marks.
//! The layout is in `docs/link.md`; Python and C have clients of their own.
//!
//! Promises: no system call and no lock on the write path; a full ring counts what it drops; a ring file
//! with any content is either read or named in a [`LinkError`], and never stops the others.
//! Left to others: starting the workload, waiting between drains, what a phase cost.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod value;

mod control;
mod error;
mod event;
mod folder;
mod host;
mod layout;
mod map;
mod moment;
mod pair;
mod reader;
mod ring;
mod writer;

pub use control::{Control, Tuning};
pub use error::LinkError;
pub use event::{Event, Mark, Name, Record, Ring};
pub use moment::Moment;
pub use pair::{Irregularity, PhaseSpan, pair};
pub use reader::Reader;
pub use writer::{Phase, Writer};

/// The environment variable that tells a workload the folder of its link.
pub const ENV: &str = "SWEETSPOT_LINK";
