//! Counts the operations and data of one layer. Equation numbers refer to multi_gpu_2018, section 4.

use std::ops::{Add, AddAssign};

use crate::{Activation, Arithmetic, Convention, Convolution, Kind, Layer, PoolKind, Shape};

/// The number of operations by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// The number of multiply-accumulates.
    pub macs: u128,
    /// The number of additions and subtractions.
    pub additions: u128,
    /// The number of multiplications.
    pub multiplications: u128,
    /// The number of maxima and comparisons.
    pub maxima: u128,
    /// The number of divisions and roots.
    pub divisions: u128,
    /// The number of exponentials.
    pub exponentials: u128,
}

impl Operations {
    /// The number of all operations; a multiply-accumulate is one operation.
    pub fn all(&self) -> u128 {
        self.macs + self.others()
    }

    /// The number of operations other than multiply-accumulates.
    pub fn others(&self) -> u128 {
        self.additions + self.multiplications + self.maxima + self.divisions + self.exponentials
    }

    /// Multiplies every count by a factor.
    pub fn times(self, factor: u128) -> Self {
        Self {
            macs: self.macs * factor,
            additions: self.additions * factor,
            multiplications: self.multiplications * factor,
            maxima: self.maxima * factor,
            divisions: self.divisions * factor,
            exponentials: self.exponentials * factor,
        }
    }
}

impl Add for Operations {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            macs: self.macs + other.macs,
            additions: self.additions + other.additions,
            multiplications: self.multiplications + other.multiplications,
            maxima: self.maxima + other.maxima,
            divisions: self.divisions + other.divisions,
            exponentials: self.exponentials + other.exponentials,
        }
    }
}

/// The operations of one layer, and the tensor elements that it reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The operations of the layer, by kind.
    pub operations: Operations,
    /// The number of elements read, without weights.
    pub read: u128,
    /// The number of weights read.
    pub weights: u128,
    /// The number of elements written, without gradients of weights.
    pub written: u128,
    /// The number of weight gradients written.
    pub gradients: u128,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.operations = self.operations + other.operations;
        self.read += other.read;
        self.weights += other.weights;
        self.written += other.written;
        self.gradients += other.gradients;
    }
}

/// Counts a layer's forward pass for the batch size of its shapes.
pub fn count(layer: &Layer, convention: Convention) -> Counts {
    let operations = operations(layer, convention);
    let mut counts = Counts {
        operations,
        read: u128::from(layer.input_elements()),
        weights: u128::from(layer.weights),
        written: u128::from(layer.output_elements()),
        gradients: 0,
    };
    if let Kind::Embedding = layer.kind {
        // Of the table, only the rows that are looked up are read.
        counts.weights = counts.weights.min(counts.written);
    }
    if convention == Convention::EquationsAsPrinted {
        counts.as_printed(layer);
    }
    counts
}

impl Counts {
    /// Replaces the data counts by those of the printed equations: equation 8 counts weights without output
    /// channels, and output sizes lack the +1.
    fn as_printed(&mut self, layer: &Layer) {
        match &layer.kind {
            Kind::Convolution(conv) => {
                self.weights = u128::from(conv.window.volume()) * channels_in(layer);
                self.written = spatial_as_printed(layer, &conv.window) * u128::from(conv.channels);
            }
            // A fully connected layer is a kernel as large as the input.
            Kind::FullyConnected { .. } => self.weights = self.read,
            Kind::Pool { window, .. } => {
                self.written = spatial_as_printed(layer, window) * channels_in(layer);
            }
            _ => {}
        }
    }
}

/// Counts the operations of a layer's forward pass.
fn operations(layer: &Layer, convention: Convention) -> Operations {
    let inputs = u128::from(layer.input_elements());
    let outputs = u128::from(layer.output_elements());
    let one = Operations::default();
    match &layer.kind {
        Kind::Convolution(conv) => convolution(layer, conv, convention),
        Kind::FullyConnected {
            outputs: fan_out,
            bias,
            ..
        } => Operations {
            macs: inputs * u128::from(*fan_out),
            // Equation 2 has no bias.
            additions: outputs * u128::from(*bias && !convention.follows_paper()),
            ..one
        },
        Kind::MatrixProduct { inner } => Operations {
            macs: outputs * u128::from(*inner),
            ..one
        },
        Kind::Attention {
            heads,
            sizes,
            positions,
        } => attention(layer, *heads, *sizes, *positions),
        Kind::Pool { kind, window } => {
            // Equation 3.
            let positions = match convention {
                Convention::EquationsAsPrinted => {
                    spatial_as_printed(layer, window) * channels_in(layer)
                }
                _ => outputs,
            };
            pooling_operations(
                *kind,
                positions * u128::from(window.volume()),
                outputs,
                convention,
            )
        }
        Kind::Reduction(kind) => pooling_operations(*kind, inputs, outputs, convention),
        // Equation 4.
        Kind::Activation(activation) => activation_operations(*activation, inputs),
        // Equation 5.
        Kind::Dropout => Operations {
            multiplications: inputs,
            ..one
        },
        // Equation 6.
        Kind::BatchNormalisation => Operations {
            additions: inputs,
            divisions: inputs,
            ..one
        },
        Kind::LocalResponseNormalisation { size } => {
            local_response(inputs, u128::from(*size), convention)
        }
        Kind::LayerNormalisation => Operations {
            additions: 3 * inputs,
            multiplications: 2 * inputs,
            divisions: inputs,
            ..one
        },
        // Equation 7.
        Kind::Softmax => softmax(inputs),
        Kind::ElementWise(what) => element_wise(*what, layer, outputs),
        Kind::Concat | Kind::Embedding | Kind::Move => one,
    }
}

/// Counts an activation function on `inputs` elements.
fn activation_operations(activation: Activation, inputs: u128) -> Operations {
    let none = Operations::default();
    match activation {
        Activation::Threshold => Operations {
            maxima: inputs,
            ..none
        },
        Activation::Exponential => Operations {
            exponentials: inputs,
            divisions: inputs,
            ..none
        },
        Activation::Simple => Operations {
            additions: inputs,
            ..none
        },
    }
}

/// The limit on the operations of one layer. It prevents overflow in sums over layers.
const MAX_OPERATIONS: u128 = 1 << 90;

/// Counts a convolution by equation 1.
fn convolution(layer: &Layer, conv: &Convolution, convention: Convention) -> Operations {
    let volume = u128::from(conv.window.volume());
    let (groups, filters) = (u128::from(conv.groups.max(1)), u128::from(conv.channels));
    let per_position = volume * channels_in(layer) * filters / groups;
    let (macs, additions) = match convention {
        Convention::EquationsAsPrinted => {
            let positions = spatial_as_printed(layer, &conv.window);
            let each = volume * channels_in(layer) * filters;
            // The equation has no groups, so its count may exceed what any stored weights allow.
            (positions.saturating_mul(each).min(MAX_OPERATIONS), filters)
        }
        _ => {
            // A convolution is counted at its outputs, a transposed one at its inputs.
            let side = if conv.transposed {
                layer.inputs.first()
            } else {
                layer.outputs.first()
            };
            let additions = match convention {
                Convention::Table1 => filters,
                _ => u128::from(layer.output_elements()),
            };
            (side.map_or(0, positions) * per_position, additions)
        }
    };
    Operations {
        macs,
        additions: additions * u128::from(conv.bias),
        ..Operations::default()
    }
}

/// Counts attention: the scores of all pairs of positions, their softmax and the weighted sum of the values.
fn attention(
    layer: &Layer,
    heads: u64,
    (query, value): (u64, u64),
    (query_positions, key_positions): (u64, u64),
) -> Operations {
    let output = layer.outputs.first();
    let batch = output.and_then(|shape| shape.sizes().first());
    let scores = u128::from(batch.copied().unwrap_or(1))
        * u128::from(heads)
        * u128::from(query_positions)
        * u128::from(key_positions);
    Operations {
        macs: scores * (u128::from(query) + u128::from(value)),
        ..softmax(scores)
    }
}

/// Counts a softmax over `elements` elements.
fn softmax(elements: u128) -> Operations {
    Operations {
        exponentials: elements,
        additions: elements,
        divisions: elements,
        ..Operations::default()
    }
}

/// Counts a pooling layer; `seen` is the number of elements under all positions of its window.
fn pooling_operations(
    kind: PoolKind,
    seen: u128,
    outputs: u128,
    convention: Convention,
) -> Operations {
    match kind {
        PoolKind::Max => Operations {
            maxima: seen,
            ..Operations::default()
        },
        PoolKind::Average => Operations {
            additions: seen,
            divisions: outputs * u128::from(!convention.follows_paper()),
            ..Operations::default()
        },
    }
}

/// Counts local response normalisation. The paper has no equation for it; its table counts it like batch normalisation
/// (equation 6).
fn local_response(elements: u128, size: u128, convention: Convention) -> Operations {
    if convention.follows_paper() {
        return Operations {
            additions: elements,
            divisions: elements,
            ..Operations::default()
        };
    }
    Operations {
        multiplications: elements * size,
        additions: elements * size,
        exponentials: elements,
        divisions: elements,
        ..Operations::default()
    }
}

/// Counts element-wise arithmetic on the inputs of a layer.
fn element_wise(what: Arithmetic, layer: &Layer, outputs: u128) -> Operations {
    let operands = layer.inputs.len().max(2) as u128 - 1;
    let count = outputs * operands;
    let one = Operations::default();
    match what {
        Arithmetic::Add => Operations {
            additions: count,
            ..one
        },
        Arithmetic::Multiply => Operations {
            multiplications: count,
            ..one
        },
        Arithmetic::Divide => Operations {
            divisions: count,
            ..one
        },
        Arithmetic::Compare => Operations {
            maxima: count,
            ..one
        },
    }
}

/// The number of elements of one channel: the batch size times the spatial sizes.
fn positions(shape: &Shape) -> u128 {
    u128::from(shape.elements() / shape.channels().max(1))
}

/// The number of channels of a layer's first input.
fn channels_in(layer: &Layer) -> u128 {
    u128::from(layer.inputs.first().map_or(1, Shape::channels))
}

/// The number of spatial positions of the output, as the paper's equations compute it.
fn spatial_as_printed(layer: &Layer, window: &crate::Window) -> u128 {
    let Some(input) = layer.inputs.first() else {
        return 0;
    };
    let batch = u128::from(input.sizes().first().copied().unwrap_or(1));
    let sizes = window.output_as_printed(input.space());
    batch * sizes.into_iter().map(u128::from).product::<u128>()
}
