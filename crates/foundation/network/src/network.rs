//! A whole network.

use crate::{Layer, Shape};

/// Operators of an ONNX file whose cost is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The operator, with its domain where it is not ONNX' own.
    pub operator: String,
    /// How many nodes have it.
    pub nodes: u64,
    /// The first of them.
    pub first: String,
}

/// The same network with something set otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What is different, in words.
    pub about: String,
    /// Its layers.
    pub layers: Vec<Layer>,
}

/// Layers in the order they run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Network {
    /// The name it was asked for by.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// Where its description is from.
    pub source: Vec<String>,
    /// Parameters that the source gives, exactly or rounded.
    pub published_parameters: Option<f64>,
    /// Multiply-accumulates of an item that the source gives.
    pub published_macs: Option<f64>,
    /// What is odd about it, for readers.
    pub notes: Vec<String>,
    /// Items in a batch, as the shapes of the layers have it.
    pub batch: u64,
    /// What goes in, by name.
    pub inputs: Vec<(String, Shape)>,
    /// What is done.
    pub layers: Vec<Layer>,
    /// Other readings of the same description.
    pub variants: Vec<Variant>,
    /// Operators that are not counted.
    pub unknown: Vec<Unknown>,
    /// Nodes that are not counted because the shapes they see are not known.
    pub shapeless: Vec<String>,
}

impl Network {
    /// All weights.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(|layer| layer.parameters).sum()
    }

    /// Whether every node is counted.
    pub fn is_whole(&self) -> bool {
        self.unknown.is_empty() && self.shapeless.is_empty()
    }
}
