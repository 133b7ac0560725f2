//! Operators that reduce axes.

use super::{Call, NodeResult, axis};
use crate::onnx::value::Value;
use crate::{Kind, PoolKind, Shape};

/// Infers the result of an operator that reduces axes.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    let operator = call.node.operator.as_str();
    let kind = match operator {
        "ReduceMean" | "ReduceSum" | "ReduceProd" | "ReduceL1" | "ReduceL2" | "ReduceSumSquare"
        | "ReduceLogSum" | "ReduceLogSumExp" => PoolKind::Average,
        "ReduceMax" | "ReduceMin" | "ArgMax" | "ArgMin" | "TopK" => PoolKind::Max,
        _ => return Ok(NodeResult::Unknown),
    };
    let Some(input) = call.shape(0) else {
        return Ok(NodeResult::UnknownShape);
    };
    match operator {
        "TopK" => top_k(call, input),
        "ArgMax" | "ArgMin" => reduced(call, input, &[call.int("axis", 0)], kind),
        _ => {
            let named = call.list("axes", 1);
            if named.is_none() && call.input(1).is_some() {
                return Ok(NodeResult::UnknownShape);
            }
            let named = named.unwrap_or_default();
            if named.is_empty() && call.int("noop_with_empty_axes", 0) != 0 {
                return Ok(NodeResult::view(input.clone()));
            }
            reduced(call, input, &named, kind)
        }
    }
}

/// The result of a reduction over these axes, or over all axes if none are given.
fn reduced(
    call: &Call<'_>,
    input: &Shape,
    named: &[i64],
    kind: PoolKind,
) -> Result<NodeResult, String> {
    let mut gone = vec![named.is_empty(); input.rank()];
    for index in named {
        gone[axis(*index, input.rank())?] = true;
    }
    let keep = call.int("keepdims", 1) != 0;
    let sizes = input
        .sizes()
        .iter()
        .zip(gone)
        .filter_map(|(size, gone)| match gone {
            false => Some(*size),
            true if keep => Some(1),
            true => None,
        });
    let shape = Shape::new(sizes.collect())?;
    Ok(NodeResult::layer(Kind::Reduction(kind), shape))
}

/// Infers the result of `TopK`.
fn top_k(call: &Call<'_>, input: &Shape) -> Result<NodeResult, String> {
    let count = match call.attribute("k") {
        Some(own) => Some(own.int),
        None => call.numbers(1).and_then(|numbers| numbers.first().copied()),
    };
    let Some(count) = count.and_then(|count| u64::try_from(count).ok()) else {
        return Ok(NodeResult::UnknownShape);
    };
    let mut sizes = input.sizes().to_vec();
    let along = axis(call.int("axis", -1), input.rank())?;
    sizes[along] = count;
    let output = Value::with_shape(Shape::new(sizes)?);
    Ok(NodeResult::Known {
        kind: Some(Kind::Reduction(PoolKind::Max)),
        outputs: vec![output.clone(), output],
        weights: &[],
        statistics: &[],
    })
}
