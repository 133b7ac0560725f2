//! The parts of onnx.proto that counting needs. The decoder skips undeclared fields, so graphs inside nodes
//! take no memory; `raw_data` and packed numbers stay in the buffer of the file.

use prost::Message;
use prost::bytes::Bytes;

/// The whole file (`ModelProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(message, optional, tag = "7")]
    pub graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    pub opsets: Vec<Opset>,
}

/// The version of an operator set (`OperatorSetIdProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Opset {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// The graph of nodes (`GraphProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<Node>,
    #[prost(message, repeated, tag = "5")]
    pub initializers: Vec<Tensor>,
    #[prost(message, repeated, tag = "11")]
    pub inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    pub outputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "13")]
    pub values: Vec<ValueInfo>,
}

/// A node of the graph (`NodeProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, repeated, tag = "1")]
    pub inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub outputs: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub operator: String,
    #[prost(message, repeated, tag = "5")]
    pub attributes: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// An attribute of a node (`AttributeProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, tag = "2")]
    pub float: f32,
    #[prost(int64, tag = "3")]
    pub int: i64,
    #[prost(bytes = "bytes", tag = "4")]
    pub string: Bytes,
    #[prost(message, optional, tag = "5")]
    pub tensor: Option<Tensor>,
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
}

/// A constant tensor (`TensorProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Tensor {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// The floats in packed encoding, which all known writers of ONNX files use.
    #[prost(bytes = "bytes", repeated, tag = "4")]
    pub float_data: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    pub int32_data: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "7")]
    pub int64_data: Vec<Bytes>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
}

/// The name and type of an input, output or intermediate value (`ValueInfoProto`).
#[derive(Clone, PartialEq, Message)]
pub struct ValueInfo {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub kind: Option<Type>,
}

/// The type of a value (`TypeProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Type {
    #[prost(message, optional, tag = "1")]
    pub tensor: Option<TensorType>,
}

/// The element type and shape of a tensor (`TypeProto.Tensor`).
#[derive(Clone, PartialEq, Message)]
pub struct TensorType {
    #[prost(int32, tag = "1")]
    pub element: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<Sizes>,
}

/// The sizes of all axes of a tensor (`TensorShapeProto`).
#[derive(Clone, PartialEq, Message)]
pub struct Sizes {
    #[prost(message, repeated, tag = "1")]
    pub axes: Vec<Axis>,
}

/// The size or the symbolic name of one axis (`TensorShapeProto.Dimension`).
#[derive(Clone, PartialEq, Message)]
pub struct Axis {
    #[prost(int64, optional, tag = "1")]
    pub size: Option<i64>,
    #[prost(string, optional, tag = "2")]
    pub symbol: Option<String>,
}
