//! Networks from ONNX files: shapes are followed from node to node, weights are never read.

mod operators;
mod order;
mod proto;
mod read;
mod scan;
mod value;
mod weight_inputs;

pub use read::{OnnxOptions, read_onnx};
pub use scan::MOST_FIELDS;
