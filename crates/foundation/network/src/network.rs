//! A network: its layers, the source of its description, and what could not be counted.

use crate::{Convention, Layer, Shape, count};

/// An operator of an ONNX file whose cost is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOperator {
    /// The operator's name, with its domain unless that is the ONNX standard's.
    pub operator: String,
    /// The number of nodes with this operator.
    pub nodes: u64,
    /// The name of the first node with this operator.
    pub first: String,
    /// The number of elements of all inputs, weights included, and outputs of these nodes whose shapes are known.
    pub elements: u64,
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
    /// How much of the network may be missing in the counts, from 0 to 1: the share of data or the share of nodes,
    /// whichever is larger.
    pub fn unknown_share(&self) -> f64 {
        self.unknown_share_of_data()
            .max(self.unknown_share_of_nodes())
    }

    /// The least share of the data that unknown operators read and write. They move each input and output whose shape is
    /// known once; what they compute, and data of unknown shape, is not in this share.
    pub fn unknown_share_of_data(&self) -> f64 {
        let unknown = self.unknown.iter();
        let unknown: f64 = unknown.map(|operator| operator.elements as f64).sum();
        let counted = self.layers.iter().map(|layer| {
            let counts = count(layer, Convention::Usual);
            (counts.read + counts.weights + counts.written) as f64
        });
        share(unknown, counted.sum())
    }

    /// The share of nodes that are not counted, among those and the layers: nodes with unknown operators, and nodes whose
    /// shapes are unknown because of them.
    pub fn unknown_share_of_nodes(&self) -> f64 {
        let unknown: u64 = self.unknown.iter().map(|operator| operator.nodes).sum();
        let unknown = unknown as f64 + self.without_shape.len() as f64;
        share(unknown, self.layers.len() as f64)
    }
}

/// The share of a part beside another one; 0 if there is neither.
fn share(part: f64, other: f64) -> f64 {
    match part > 0.0 {
        true => part / (part + other),
        false => 0.0,
    }
}
