//! The functions of `nvml-sim` as a shared library.
//!
//! The program embeds the library that cargo builds from this crate. It is a crate of its own so that others,
//! tests first, can use the functions without building that file a second time.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub use sweetspot_nvml_sim as functions;
