//! One layer: what it does and the shapes it sees.

use crate::{Shape, Window};

/// A convolution; depthwise where there are as many groups as input channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// What slides.
    pub window: Window,
    /// How many filters.
    pub channels: u64,
    /// Parts that do not see each other.
    pub groups: u64,
    /// Whether something is added to each channel.
    pub bias: bool,
    /// Whether it spreads instead of gathers.
    pub transposed: bool,
}

/// How a pool sums its window up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The largest.
    Max,
    /// The mean.
    Average,
}

/// What is applied to each element alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// A comparison: ReLU, clip, leaky ReLU, absolute value.
    Threshold,
    /// One exponential and a division: sigmoid, tanh, GELU, SiLU, softplus.
    Exponential,
    /// One cheap operation: negation, rounding, square root.
    Simple,
}

/// What is done to two tensors, element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// A sum or a difference.
    Add,
    /// A product.
    Multiply,
    /// A quotient, or a power.
    Divide,
    /// The larger, the smaller, or a comparison.
    Compare,
}

/// What a layer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A convolution.
    Convolution(Convolution),
    /// Every input to every output.
    FullyConnected {
        /// Inputs of one output.
        inputs: u64,
        /// Outputs.
        outputs: u64,
        /// Whether something is added to each.
        bias: bool,
    },
    /// A product of two tensors that both depend on the input; so long are the rows that are summed up.
    MatrixProduct {
        /// The length.
        inner: u64,
    },
    /// Scaled dot-product attention: scores, softmax, weighted sum.
    Attention {
        /// Heads.
        heads: u64,
        /// Sizes of a query, and of a value, in one head.
        sizes: (u64, u64),
        /// Positions that ask, and that are asked.
        positions: (u64, u64),
    },
    /// A window summed up.
    Pool {
        /// How.
        kind: PoolKind,
        /// What slides.
        window: Window,
    },
    /// All of some axes summed up.
    Reduction(PoolKind),
    /// A function of each element.
    Activation(Activation),
    /// Elements multiplied by 0 or 1.
    Dropout,
    /// Normalised over the batch.
    BatchNormalisation,
    /// Normalised over neighbouring channels.
    LocalResponseNormalisation {
        /// How many.
        size: u64,
    },
    /// Normalised over an item, or a group of its channels.
    LayerNormalisation,
    /// Exponentials over their sum.
    Softmax,
    /// Tensors combined element by element; a residual is an addition.
    ElementWise(Arithmetic),
    /// Tensors side by side.
    Concat,
    /// Rows of a table.
    Embedding,
    /// Data moved, nothing computed: transpose, slice, pad, expand.
    Move,
}

impl Kind {
    /// The word for it in tables and documents.
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

    /// Whether its gradient needs two products: one for the inputs, one for the weights or other inputs.
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
    /// Unique in its network.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// What it is given; no weights.
    pub inputs: Vec<Shape>,
    /// What it makes.
    pub outputs: Vec<Shape>,
    /// Weights that no layer before it has.
    pub parameters: u64,
    /// Elements of weights that it reads: its own, shared ones, running means.
    pub weights: u64,
}

impl Layer {
    /// Elements of all inputs.
    pub fn input_elements(&self) -> u64 {
        self.inputs.iter().map(Shape::elements).sum()
    }

    /// Elements of all outputs.
    pub fn output_elements(&self) -> u64 {
        self.outputs.iter().map(Shape::elements).sum()
    }
}
