//! The cost of a neural network before it runs: operations by kind, parameters, data read and written.
//!
//! A [`Network`] is a list of layers with their shapes. It is read from a built-in description
//! ([`built_in()`]), from a user's file in the same language ([`parse`]) or from an ONNX file ([`read_onnx`]).
//! [`count()`] is a pure function of a layer and a [`Convention`]; [`Cost`] adds a batch size, a precision and
//! the backward pass, [`roofline()`] a GPU.
//!
//! Promises: counts are exact whole numbers; any file, however damaged, takes a bounded amount of memory and
//! time, and errors name the line or the node; unknown operators are listed. Left to others: the real cost on a
//! device, and presentation.

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
mod text;
mod window;

pub use built_in::{NAMES, built_in, find, find_with_inputs, load};
pub use convention::{Convention, Precision};
pub use cost::{Cost, KindCost, LayerCost};
pub use count::{Counts, Operations, count};
pub use efficiency::Efficiency;
pub use error::{MissingSizes, NetworkError};
pub use layer::{Activation, Arithmetic, Convolution, Kind, Layer, PoolKind};
pub use network::{Network, UnknownOperator, Variant};
pub use onnx::{MAX_FIELDS, OnnxOptions, read_onnx};
pub use roofline::{Bound, GpuCeilings, Limit, roofline};
pub use shape::Shape;
pub use text::parse;
pub use window::Window;
