//! The only writer to any device.
//!
//! A guard is a process of its own. Its client asks over a socket: lease these devices, apply this, run
//! that. Before the first write to a device, what was set is in a journal on disk. When the client lets go,
//! or is gone for whatever reason, the guard puts everything back and ends what still runs of the workload,
//! to the last grandchild.
//!
//! Promises: one writer per device, named to a second client that asks; every write read back; a
//! journal that is there means that something was left changed.
//! Left to others: which backend a device belongs to, what to set.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod channel;
mod client;
mod error;
mod journal;
mod limits;
mod owner;
mod proc_files;
mod processes;
mod protocol;
mod refusal;
mod restore;
mod server;

pub use client::{Guard, Message};
pub use error::GuardError;
pub use journal::{Journal, JournalError, Left};
pub use limits::Limits;
pub use owner::Owner;
pub use processes::{adopt_orphans, await_end_of, end_all, has_descendants, not_ignored, reap};
pub use protocol::{End, Ended, Start, Streams};
pub use refusal::{Refusal, RestoreError, Restored};
pub use restore::restore_left;
pub use server::{Open, serve};
