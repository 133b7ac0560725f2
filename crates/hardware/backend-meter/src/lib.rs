//! Power meters of whole machines, as devices.
//!
//! A meter is named by a [`Spec`] (`wt310:/dev/usbtmc0`, `shelly:http://ADDRESS`), or by a name in the user's
//! `meters.toml` ([`MetersFile`]). [`open_meter`] connects to it, checks that it is the model that the user named, and
//! starts a thread for each of its channels, which reads it in step with its updates, and connects again when the
//! connection is lost.
//!
//! Promises: every reading has the time span in which it appeared, on the machine's monotonic clock, never on the
//! meter's; an invalid sample (over-range) is a gap with its reason and never a number; what a meter answers is bounded in
//! size and time; a password never comes from a command line and never appears in a message.
//! Left to others: the energy of a time span (`measure`), what is done with it. A meter is set only as
//! far as a measurement needs it ([`Purpose`]), and an integration that runs on it is never ended.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod channel;
mod config;
mod detect;
mod error;
mod http;
mod hwmon;
mod line;
mod properties;
mod read;
mod spec;
mod transport;
mod wt310;

pub use channel::Purpose;
pub use config::{MeterSettings, MetersFile, meters_path};
pub use detect::{open_meter, resolve_meters};
pub use error::MeterError;
pub use spec::{HttpKind, Spec, Target};
