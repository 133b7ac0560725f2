//! The functions of `nvml-sim` as a shared library.
//!
//! The command-line program embeds the library that cargo builds from this crate. Tests use the functions of `nvml-sim`
//! directly, without this library file.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub use sweetspot_nvml_sim as functions;
