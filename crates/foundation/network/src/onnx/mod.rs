//! Networks from ONNX files: shapes are inferred from node to node, and the values of weights are never read.

mod declared_shape;
mod execution_order;
mod operators;
mod proto;
mod read;
mod scan;
mod value;
mod weight_inputs;

pub use read::{OnnxOptions, read_onnx};
pub use scan::MAX_FIELDS;
