//! The privileged service: lets users without root change device settings, within a policy.
//!
//! One small process runs as root. It leases devices, applies settings, restores them and releases the devices, and does
//! nothing else: it runs no command and opens no file that a client names. Who asks is known from the kernel, not from
//! the request. A lease ends with the process that took it.

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

mod audit;
mod caller;
mod connection;
mod gpus;
pub mod install;
mod lease_checks;
mod listener;
mod monitor;
pub mod monitor_link;
mod notify;
pub mod ownership;
pub mod policy;
pub mod privileges;
mod processor_energy;
mod rate;
mod releases;
mod requests;
mod server;
mod start;
mod zeus_backend;
pub mod zeusd;

pub use audit::Audit;
#[doc(hidden)]
pub use connection::Connection;
pub use gpus::ServedGpu;
pub use listener::{ListenError, listen};
pub use monitor::{MONITOR_ACCOUNT, Monitor, MonitorOptions, TcpError, listen_tcp, path_argument};
pub use requests::Service;
pub use server::{ServerOptions, serve};
pub use start::{
    AUDIT_LOG, EARLIER_JOURNAL_FOLDER, JOURNAL_FOLDER, MonitorFiles, SOCKET, ServeError,
    ServiceFiles, load_policy, serve_sudo_user, serve_users,
};
