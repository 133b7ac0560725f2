//! Layers of ONNX files that PyTorch executes as one kernel.

use sweetspot_network::{Activation, Arithmetic, Kind, Layer};

/// Attention that is executed as one kernel.
pub struct FusedAttention {
    /// The number of layers from the product of the scores on.
    pub layers: usize,
    /// The number of floating-point operations.
    pub operations: f64,
    /// The number of elements of queries, keys, values, mask and result.
    pub elements: f64,
}

/// The attention whose scores begin with this product, if it is executed as one kernel: both factors are scaled before it,
/// and a mask that may be added, a softmax and a second product follow. ONNX files have this form where PyTorch's
/// `scaled_dot_product_attention` was called.
pub fn fused_attention(layers: &[Layer], index: usize) -> Option<FusedAttention> {
    let scales = |layer: &Layer| {
        matches!(layer.kind, Kind::ElementWise(Arithmetic::Multiply)) && layer.inputs.len() == 1
    };
    let operations = |layer: &Layer| match layer.kind {
        Kind::MatrixProduct { inner } => Some(2.0 * layer.output_elements() as f64 * inner as f64),
        _ => None,
    };
    let before = layers.get(index.checked_sub(2)?..index)?;
    let (mask, [softmax, values]) = match layers.get(index + 1..)? {
        [softmax, values, ..] if softmax.kind == Kind::Softmax => (None, [softmax, values]),
        [mask, softmax, values, ..] if mask.kind == Kind::ElementWise(Arithmetic::Add) => {
            (Some(mask), [softmax, values])
        }
        _ => return None,
    };
    let scores = &layers[index];
    let both = operations(scores)? + operations(values)?;
    let is_fused = before.iter().all(scales) && softmax.kind == Kind::Softmax;
    // Of the inputs of the addition, the scores stay in the kernel.
    let of_mask = mask.map_or(0, |mask| {
        let inputs = mask.input_elements() + mask.weights;
        inputs.saturating_sub(scores.output_elements())
    });
    let elements = scores.input_elements() + 2 * values.output_elements() + of_mask;
    is_fused.then_some(FusedAttention {
        layers: 3 + usize::from(mask.is_some()),
        operations: both,
        elements: elements as f64,
    })
}

/// The number of layers after a division that belong to the same function: exporters write GELU as x / c, its error function,
/// plus 1, times x, times 1/2.
pub fn layers_of_gelu(first: &Layer, rest: &[Layer]) -> usize {
    let is = |layer: &Layer, kind: Kind, inputs: usize| {
        layer.kind == kind && layer.inputs.len() == inputs && layer.outputs == first.outputs
    };
    let add = Kind::ElementWise(Arithmetic::Add);
    let multiply = Kind::ElementWise(Arithmetic::Multiply);
    match rest {
        [erf, plus, times, half, ..]
            if is(first, Kind::ElementWise(Arithmetic::Divide), 1)
                && is(erf, Kind::Activation(Activation::Exponential), 1)
                && is(plus, add, 1)
                && is(times, multiply.clone(), 2)
                && is(half, multiply, 1) =>
        {
            4
        }
        _ => 0,
    }
}

/// Whether a layer adds at most one weight for each column to its only input, which a matrix product does by itself.
pub fn adds_a_bias(layer: &Layer, columns: u64) -> bool {
    layer.kind == Kind::ElementWise(Arithmetic::Add)
        && layer.inputs.len() == 1
        && layer.weights <= columns
}

/// Whether a layer multiplies two tensors of the shape of another layer's output.
pub fn multiplies_by(layer: &Layer, other: &Layer) -> bool {
    let shape = other.outputs.first();
    layer.kind == Kind::ElementWise(Arithmetic::Multiply)
        && layer.inputs.len() == 2
        && layer.inputs.iter().all(|input| Some(input) == shape)
}
