//! The functions of `nvml-sim` as a shared library.
//!
//! The program embeds the library that cargo builds from this crate. The crate is separate so that tests can use the
//! functions without building the library file a second time.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub use sweetspot_nvml_sim as functions;
