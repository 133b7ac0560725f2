//! The guard: the only process that writes settings to devices.
//!
//! A guard is a process of its own. Its client sends requests over a socket: lease these devices, apply these
//! settings, run this command. Before the first write to a device, its settings are in a journal on disk. When
//! the client releases the devices or ends for any reason, the guard restores all settings and ends all
//! processes of the workload, grandchildren included.
//!
//! Promises: only one process can change a device, and the error for a second one names the first; every write
//! is read back; a journal file that remains on disk means that a device was not restored. Left to others: which
//! backend a device belongs to, which settings to apply.

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

mod channel;
mod client;
mod connect;
mod connection;
mod entry;
mod error;
mod journal;
mod leases;
mod machine_lock;
mod owner;
mod private_files;
mod proc_files;
mod processes;
mod protocol;
mod refusal;
mod remote_writer;
mod restore;
mod server;
mod settings_protocol;
mod socket_owner;
mod timeouts;
mod writer;

pub use client::{Guard, GuardMessage};
pub use connect::connect_at_once;
pub use connection::{ClientConnection, start_guard};
pub use entry::LeaseKind;
pub use error::GuardError;
pub use journal::{Journal, JournalError, UnrestoredDevice};
pub use leases::{LeaseSummary, LeaseTerms, Leases, Resumed};
pub use owner::Owner;
pub use processes::{
    adopt_orphans, end_descendants, exclude_from_reaping, has_descendants, reap_children,
    signals_not_ignored,
};
pub use protocol::{CommandExit, Streams, WorkloadCommand, WorkloadEnd};
pub use refusal::{CapChange, Refusal, RestoreError, RestoreOutcome};
pub use remote_writer::{RemoteWriter, service_responds};
pub use restore::restore_device;
pub use server::{OpenDevice, serve};
pub use settings_protocol::{
    Job, MAX_REQUEST_LENGTH, SETTINGS_PROTOCOL, SettingsReply, SettingsRequest,
};
pub use timeouts::GuardTimeouts;
pub use writer::{LocalWriter, SettingsWriter};
