//! A network: its layers and where they come from.

use crate::{Layer, Shape};

/// An operator of an ONNX file whose cost is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOperator {
    /// The operator's name, with its domain unless that is ONNX' own.
    pub operator: String,
    /// The number of nodes with this operator.
    pub nodes: u64,
    /// The first of these nodes.
    pub first: String,
}

/// The same network with other settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// A description of the difference.
    pub about: String,
    /// The layers.
    pub layers: Vec<Layer>,
}

/// A network as layers in execution order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// The name or path that was given.
    pub name: String,
    /// The title for display.
    pub title: String,
    /// The sources of its description.
    pub source: Vec<String>,
    /// The number of parameters that the source states, exact or rounded.
    pub published_parameters: Option<f64>,
    /// The multiply-accumulates per item that the source states.
    pub published_macs: Option<f64>,
    /// Remarks for readers.
    pub notes: Vec<String>,
    /// The batch size of the layers' shapes.
    pub batch: u64,
    /// The inputs, by name.
    pub inputs: Vec<(String, Shape)>,
    /// The layers.
    pub layers: Vec<Layer>,
    /// The same description with other settings.
    pub variants: Vec<Variant>,
    /// The operators that are not counted.
    pub unknown: Vec<UnknownOperator>,
    /// The nodes that are not counted because their input shapes are unknown.
    pub without_shape: Vec<String>,
}

impl Network {
    /// The number of all weights.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Whether every node is counted.
    pub fn is_fully_counted(&self) -> bool {
        self.unknown.is_empty() && self.without_shape.is_empty()
    }
}
