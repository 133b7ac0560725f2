//! A network: its layers, the source of its description, and what could not be counted.

use crate::{Layer, Shape};

/// An operator of an ONNX file whose cost is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOperator {
    /// The operator's name, with its domain unless that is the ONNX standard's.
    pub operator: String,
    /// The number of nodes with this operator.
    pub nodes: u64,
    /// The name of the first node with this operator.
    pub first: String,
}

/// A variant of a network, with other values for some of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// How the variant differs from the network, for display.
    pub about: String,
    /// The layers of the variant, in execution order.
    pub layers: Vec<Layer>,
}

/// A network as a list of layers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// The name or path that the caller gave.
    pub name: String,
    /// The title for display.
    pub title: String,
    /// The publications or files on which the description is based.
    pub source: Vec<String>,
    /// The number of weights that the source states, possibly rounded; `None` if it states none.
    pub published_parameters: Option<f64>,
    /// The number of multiply-accumulates per item that the source states; `None` if it states none.
    pub published_macs: Option<f64>,
    /// Remarks about the network, for display.
    pub notes: Vec<String>,
    /// The batch size for which the layers' shapes are given.
    pub batch: u64,
    /// The name and shape of each input.
    pub inputs: Vec<(String, Shape)>,
    /// The layers, in execution order.
    pub layers: Vec<Layer>,
    /// Variants of the network from the same description.
    pub variants: Vec<Variant>,
    /// The operators of an ONNX file whose cost is unknown and missing in the counts.
    pub unknown: Vec<UnknownOperator>,
    /// The nodes of an ONNX file that are missing in the counts because their input shapes are unknown.
    pub without_shape: Vec<String>,
}

impl Network {
    /// The number of trained weights of all layers.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Whether the counts include every node.
    pub fn is_fully_counted(&self) -> bool {
        self.unknown.is_empty() && self.without_shape.is_empty()
    }
}
