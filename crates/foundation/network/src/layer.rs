//! Layers: their kinds and shapes.

use crate::{Shape, Window};

/// A convolution; depthwise where there are as many groups as input channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// The sliding window.
    pub window: Window,
    /// The number of filters.
    pub channels: u64,
    /// The number of groups of channels that are convolved separately.
    pub groups: u64,
    /// Whether a bias is added to each channel.
    pub bias: bool,
    /// Whether the convolution is transposed.
    pub transposed: bool,
}

/// The way in which a pool reduces its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The maximum.
    Max,
    /// The mean.
    Average,
}

/// The cost class of a function that is applied to each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// A comparison: ReLU, clip, leaky ReLU, absolute value.
    Threshold,
    /// One exponential and a division: sigmoid, tanh, GELU, SiLU, softplus.
    Exponential,
    /// One cheap operation: negation, rounding, square root.
    Simple,
}

/// The operation on two tensors, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// A sum or a difference.
    Add,
    /// A product.
    Multiply,
    /// A quotient, or a power.
    Divide,
    /// A maximum, minimum or comparison.
    Compare,
}

/// The kind of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A convolution.
    Convolution(Convolution),
    /// A fully connected layer.
    FullyConnected {
        /// The number of inputs of one output.
        inputs: u64,
        /// The number of outputs.
        outputs: u64,
        /// Whether a bias is added to each output.
        bias: bool,
    },
    /// A product of two tensors that both depend on the input.
    MatrixProduct {
        /// The length of the rows that are summed.
        inner: u64,
    },
    /// Scaled dot-product attention: scores, softmax, weighted sum.
    Attention {
        /// The number of heads.
        heads: u64,
        /// The sizes of a query and of a value in one head.
        sizes: (u64, u64),
        /// The numbers of query positions and of key positions.
        positions: (u64, u64),
    },
    /// A pool over a sliding window.
    Pool {
        /// The reduction.
        kind: PoolKind,
        /// The sliding window.
        window: Window,
    },
    /// A reduction over whole axes.
    Reduction(PoolKind),
    /// A function of each element.
    Activation(Activation),
    /// Elements multiplied by 0 or 1.
    Dropout,
    /// A normalisation over the batch.
    BatchNormalisation,
    /// A normalisation over neighbouring channels.
    LocalResponseNormalisation {
        /// The number of channels.
        size: u64,
    },
    /// A normalisation over an item, or over a group of its channels.
    LayerNormalisation,
    /// Exponentials divided by their sum.
    Softmax,
    /// Tensors combined element by element; a residual connection is an addition.
    ElementWise(Arithmetic),
    /// Concatenated tensors.
    Concat,
    /// Rows looked up in a table.
    Embedding,
    /// Data that is moved without computation: transpose, slice, pad, expand.
    Move,
}

impl Kind {
    /// The kind's name in tables and documents.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Convolution(Convolution { transposed, .. }) if *transposed => {
                "transposed convolution"
            }
            Self::Convolution(Convolution {
                groups, channels, ..
            }) if *groups > 1 && groups == channels => "depthwise convolution",
            Self::Convolution(_) => "convolution",
            Self::FullyConnected { .. } => "fully connected",
            Self::MatrixProduct { .. } => "matrix product",
            Self::Attention { .. } => "attention",
            Self::Pool { .. } => "pooling",
            Self::Reduction(_) => "reduction",
            Self::Activation(_) => "activation",
            Self::Dropout => "dropout",
            Self::BatchNormalisation => "batch normalisation",
            Self::LocalResponseNormalisation { .. } => "local response normalisation",
            Self::LayerNormalisation => "layer normalisation",
            Self::Softmax => "softmax",
            Self::ElementWise(Arithmetic::Add) => "add",
            Self::ElementWise(_) => "element-wise",
            Self::Concat => "concat",
            Self::Embedding => "embedding",
            Self::Move => "data movement",
        }
    }

    /// Whether its gradient needs two matrix products: one for the inputs, one for the weights or other inputs.
    pub fn multiplies_matrices(&self) -> bool {
        matches!(
            self,
            Self::Convolution(_)
                | Self::FullyConnected { .. }
                | Self::MatrixProduct { .. }
                | Self::Attention { .. }
        )
    }
}

/// A layer of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// The name, unique in its network.
    pub name: String,
    /// The kind.
    pub kind: Kind,
    /// The shapes of its inputs, without weights.
    pub inputs: Vec<Shape>,
    /// The shapes of its outputs.
    pub outputs: Vec<Shape>,
    /// The number of weights that no earlier layer has.
    pub parameters: u64,
    /// The elements of weights that it reads: its own, shared ones, running means.
    pub weights: u64,
}

impl Layer {
    /// The elements of all inputs.
    pub fn input_elements(&self) -> u64 {
        self.inputs.iter().map(Shape::elements).sum()
    }

    /// The elements of all outputs.
    pub fn output_elements(&self) -> u64 {
        self.outputs.iter().map(Shape::elements).sum()
    }
}
