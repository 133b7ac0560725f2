//! What a network costs before it runs: operations by kind, parameters, data read and written.
//!
//! A network is a list of layers with the shapes they see ([`Network`]). It comes from a built-in
//! description ([`built_in()`]), from a user's file of the same form ([`parse`]) or from an ONNX file
//! ([`read_onnx`]). What a layer costs is a pure function of it and of a [`Convention`] ([`count()`]);
//! [`Cost`] puts a batch, a precision and the backward pass to it, [`roofline()`] a GPU.
//!
//! Promises: counts are exact whole numbers; no file, however broken, takes more than a bounded amount of
//! memory and time, and errors name the line or the node; operators that are not known are listed.
//! Left to others: what a network really takes on a device, and how any of it is shown.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod built_in;
mod convention;
mod cost;
mod count;
mod efficiency;
mod error;
mod layer;
mod network;
mod onnx;
mod roofline;
mod shape;
mod table_11;
mod text;
mod window;

pub use built_in::{NAMES, built_in, find};
pub use convention::{Convention, Precision};
pub use cost::{Cost, KindCost, LayerCost};
pub use count::{Counts, Operations, count};
pub use efficiency::{Efficiency, gflops_per_watt};
pub use error::NetworkError;
pub use layer::{Activation, Arithmetic, Convolution, Kind, Layer, PoolKind};
pub use network::{Network, Unknown, Variant};
pub use onnx::{MOST_FIELDS, OnnxOptions, read_onnx};
pub use roofline::{Bound, GpuCeilings, Limit, roofline};
pub use shape::Shape;
pub use table_11::{Average, Cell, Table11, table_11};
pub use text::parse;
pub use window::Window;
