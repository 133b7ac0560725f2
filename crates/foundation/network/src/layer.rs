//! Layers: their kinds and shapes.

use crate::{Shape, Window};

/// The parameters of a convolution. It is depthwise if there are as many groups as input channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// The kernel with its stride, padding and dilation.
    pub window: Window,
    /// The number of output channels (filters).
    pub channels: u64,
    /// The number of groups of channels that are convolved separately.
    pub groups: u64,
    /// Whether a bias is added to each channel.
    pub bias: bool,
    /// Whether this is a transposed convolution (deconvolution).
    pub transposed: bool,
}

/// The function that reduces several elements to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The maximum of the elements.
    Max,
    /// The mean of the elements.
    Average,
}

/// The cost class of a function that is applied to each element of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// A comparison: ReLU, clip, leaky ReLU, absolute value.
    Threshold,
    /// One exponential and a division: sigmoid, tanh, GELU, SiLU, softplus.
    Exponential,
    /// One cheap operation: negation, rounding, square root.
    Simple,
}

/// An operation that combines two tensors element by element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// Addition or subtraction.
    Add,
    /// Multiplication.
    Multiply,
    /// Division, modulo or a power; each counts as one division.
    Divide,
    /// Maximum, minimum, comparison or logical operation.
    Compare,
}

/// The kind of a layer, with the parameters that determine its cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A convolution.
    Convolution(Convolution),
    /// A fully connected layer.
    FullyConnected {
        /// The number of inputs on which each output depends.
        inputs: u64,
        /// The number of outputs of the layer.
        outputs: u64,
        /// Whether a bias is added to each output.
        bias: bool,
    },
    /// A matrix product of two tensors that both depend on the network's input, so neither is a weight.
    MatrixProduct {
        /// The size of the dimension that is summed over.
        inner: u64,
    },
    /// Scaled dot-product attention: scores, softmax, weighted sum.
    Attention {
        /// The number of attention heads.
        heads: u64,
        /// The lengths of a query vector and of a value vector in one head.
        sizes: (u64, u64),
        /// The numbers of query positions and of key positions in the sequence.
        positions: (u64, u64),
    },
    /// Pooling over a sliding window.
    Pool {
        /// Whether the maximum or the mean is taken.
        kind: PoolKind,
        /// The kernel with its stride, padding and dilation.
        window: Window,
    },
    /// A reduction of whole axes to one element.
    Reduction(PoolKind),
    /// An activation function, applied to each element.
    Activation(Activation),
    /// Dropout: each element is multiplied by 0 or 1.
    Dropout,
    /// A normalisation over the batch.
    BatchNormalisation,
    /// A normalisation over neighbouring channels.
    LocalResponseNormalisation {
        /// The number of neighbouring channels that are normalised together.
        size: u64,
    },
    /// A normalisation over an item, or over a group of its channels.
    LayerNormalisation,
    /// Softmax: exponentials divided by their sum.
    Softmax,
    /// Tensors combined element by element; a residual connection is an addition.
    ElementWise(Arithmetic),
    /// A concatenation of tensors.
    Concat,
    /// An embedding: rows looked up in a table of weights.
    Embedding,
    /// A copy of data without computation: transpose, slice, pad or expand.
    Move,
}

impl Kind {
    /// The name of the kind in tables and documents.
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

    /// Whether the layer is a matrix product. Its backward pass needs two products, one for the gradient of each
    /// factor.
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
    /// The name of the layer, which is unique in the network.
    pub name: String,
    /// What the layer computes.
    pub kind: Kind,
    /// The shape of each input of the layer, without weights.
    pub inputs: Vec<Shape>,
    /// The shape of each output of the layer.
    pub outputs: Vec<Shape>,
    /// The number of trained weights, without those that the layer shares with an earlier one.
    pub parameters: u64,
    /// The number of constants that the layer reads: its own weights, shared weights, running means and
    /// variances.
    pub weights: u64,
    /// Whether the exporter of an ONNX file has folded a batch normalisation into this convolution. The program from which
    /// the file was made executes it on its own.
    pub has_folded_normalisation: bool,
}

impl Layer {
    /// The number of elements of all inputs.
    pub fn input_elements(&self) -> u64 {
        self.inputs.iter().map(Shape::elements).sum()
    }

    /// The number of elements of all outputs.
    pub fn output_elements(&self) -> u64 {
        self.outputs.iter().map(Shape::elements).sum()
    }
}
