//! The JSON documents that leave the program, as types.
//!
//! One module for each document; a module's main type serialises to the document, and its doc comments become the
//! descriptions of the JSON Schema in `docs/schemas/`. All documents follow the same rules: SI units, named by the
//! end of a key (`_s`, `_j`, `_w`, `_mhz`), fractions instead of percentages, and a key is absent if its value is
//! unknown.
//!
//! This crate only defines data: `sweetspot-report` makes documents from results, and the program writes them.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod budget;
pub mod calibrate;
pub mod common;
pub mod compare;
pub mod counter;
pub mod devices;
pub mod doctor;
pub mod fit;
pub mod hold;
pub mod live;
pub mod measure;
pub mod network;
pub mod node;
pub mod recommendation;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod reproduce_on_gpu;
pub mod schema;
pub mod serving;
pub mod study;
pub mod tune;
