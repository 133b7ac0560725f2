//! Operators that join tensors or select parts of them.

use super::layout::{LayoutResult, moved_data};
use super::{Call, NodeResult, axis};
use crate::onnx::value::Value;
use crate::{Kind, Shape};

/// Infers the result of `Concat`.
pub(super) fn concat(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let along = axis(call.int("axis", 1), input.rank())?;
    let mut sizes = input.sizes().to_vec();
    for index in 1..call.inputs.len() {
        let Some(shape) = call.shape(index) else {
            return Ok(None);
        };
        let alike = shape.rank() == input.rank()
            && (0..input.rank()).all(|axis| axis == along || shape.sizes()[axis] == sizes[axis]);
        if !alike {
            return Err(format!(
                "cannot concatenate {input} and {shape} along axis {along}"
            ));
        }
        sizes[along] = sizes[along].saturating_add(shape.sizes()[along]);
    }
    Ok(Some(NodeResult::layer(Kind::Concat, Shape::new(sizes)?)))
}

/// Infers the result of `Split`.
pub(super) fn split(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let along = axis(call.int("axis", 0), input.rank())?;
    let whole = input.sizes()[along];
    let count = call.node.outputs.len() as u64;
    let parts: Vec<u64> = match call.list("split", 1) {
        Some(parts) => {
            let parts: Option<_> = parts.iter().map(|part| u64::try_from(*part).ok()).collect();
            parts.ok_or("a part has a size below 0")?
        }
        None if call.input(1).is_some() => return Ok(None),
        None => {
            let each = whole.div_ceil(count.max(1));
            let part = |index: u64| whole.saturating_sub(index * each).min(each);
            (0..count).map(part).collect()
        }
    };
    if parts.len() as u64 != count || parts.iter().copied().fold(0, u64::saturating_add) != whole {
        return Err(format!("its parts do not add up to {whole}"));
    }
    let outputs = parts.into_iter().map(|part| {
        let mut sizes = input.sizes().to_vec();
        sizes[along] = part;
        Ok(Value::with_shape(Shape::new(sizes)?))
    });
    Ok(Some(NodeResult::Known {
        kind: Some(Kind::Move),
        outputs: outputs.collect::<Result<_, String>>()?,
        weights: &[],
        statistics: &[],
    }))
}

/// The number of elements that a slice selects. `start` and `end` may be negative (counted from the end) or
/// outside of the tensor.
fn slice_length(size: u64, start: i64, end: i64, step: i64) -> u64 {
    let (size, start, end) = (i128::from(size), i128::from(start), i128::from(end));
    let from_back = |end: i128| if end < 0 { end + size } else { end };
    let step = i128::from(step);
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let start = from_back(start).clamp(if step > 0 { 0 } else { 0.min(size - 1) }, high);
    let end = from_back(end).clamp(low, high.max(low));
    let span = if step > 0 { end - start } else { start - end };
    let length = (span + step.abs() - 1) / step.abs();
    u64::try_from(length.max(0)).unwrap_or(0)
}

/// Infers the result of `Slice`.
pub(super) fn slice(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let (Some(starts), Some(ends)) = (call.list("starts", 1), call.list("ends", 2)) else {
        return Ok(None);
    };
    let axes = call.list("axes", 3);
    let steps = call.list("steps", 4);
    if axes.is_none() && call.input(3).is_some() || steps.is_none() && call.input(4).is_some() {
        return Ok(None);
    }
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err("its starts, ends, axes and steps differ in number".to_owned());
    }
    let mut sizes = input.sizes().to_vec();
    for (index, named) in axes.iter().enumerate() {
        let along = axis(*named, input.rank())?;
        if steps[index] == 0 {
            return Err("it has a step of 0".to_owned());
        }
        sizes[along] = slice_length(
            input.sizes()[along],
            starts[index],
            ends[index],
            steps[index],
        );
    }
    moved_data(sizes)
}

/// Infers the result of `Gather`.
pub(super) fn gather(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(positions) = call.shape(1) else {
        return Ok(None);
    };
    let along = axis(call.int("axis", 0), input.rank())?;
    let mut sizes = input.sizes()[..along].to_vec();
    sizes.extend(positions.sizes());
    sizes.extend(&input.sizes()[along + 1..]);
    let table = call
        .input(0)
        .is_some_and(|value| value.constant && value.origins.is_some());
    let kind = if table { Kind::Embedding } else { Kind::Move };
    Ok(Some(NodeResult::layer(kind, Shape::new(sizes)?)))
}

/// Infers the result of `GatherElements`.
pub(super) fn gather_elements(call: &Call<'_>, _: &Shape) -> LayoutResult {
    match call.shape(1) {
        Some(positions) => moved_data(positions.sizes().to_vec()),
        None => Ok(None),
    }
}

/// Infers the result of `GatherND`.
pub(super) fn gather_nd(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(positions) = call.shape(1) else {
        return Ok(None);
    };
    let batch = usize::try_from(call.int("batch_dims", 0)).unwrap_or(0);
    let (last, outer) = positions
        .sizes()
        .split_last()
        .ok_or("it has no positions")?;
    let from = usize::try_from(*last)
        .unwrap_or(usize::MAX)
        .saturating_add(batch);
    let inner = input
        .sizes()
        .get(from..)
        .ok_or("its indices tensor has too many dimensions")?;
    moved_data([outer, inner].concat())
}
