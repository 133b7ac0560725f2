//! The link between a workload and sweetspot (here "the tool"): a folder of ring-buffer files in shared memory.
//!
//! A workload marks phases, items done and values with one [`Writer`] per thread; the tool reads them with a
//! [`Reader`] and sends control words back with its [`Control`]. The values that a serving program reports of
//! its batches and queue have fixed names, in [`value`]. [`pair_phases`] turns marks into spans. The layout is
//! in `docs/reference/link.md`; Python and C have their own clients.
//!
//! Promises: no system call and no lock when writing; a full ring counts the records that it drops; a ring file
//! with any content is either read or reported as a [`LinkError`], and never affects other rings. Left to
//! others: starting the workload, waiting between reads, the cost of a phase.

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
mod tail;
mod writer;

pub use control::{Control, Tuning};
pub use error::LinkError;
pub use event::{Event, Mark, Name, Record, Ring};
pub use moment::Moment;
pub use pair::{Irregularity, PairedEvent, PhasePairing, PhaseSpan, pair_phases};
pub use reader::Reader;
pub use tail::ProgressTail;
pub use writer::{Phase, Writer};

/// The name of the environment variable that tells the workload the path of the link folder.
pub const LINK_VARIABLE: &str = "SWEETSPOT_LINK";
