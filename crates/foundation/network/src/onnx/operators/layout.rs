//! Operators that move or reshape data.

use super::slices::{concat, gather, gather_elements, gather_nd, slice, split};
use super::{Call, NodeResult, axis, format_numbers};
use crate::{Kind, Shape};

/// Infers the result of an operator that moves or reshapes data.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    let act = match call.node.operator.as_str() {
        "Identity" => |_: &Call<'_>, input: &Shape| Ok(Some(NodeResult::view(input.clone()))),
        "Reshape" => reshape,
        "Flatten" => flatten,
        "Squeeze" => squeeze,
        "Unsqueeze" => unsqueeze,
        "Transpose" => transpose,
        "Concat" => concat,
        "Split" => split,
        "Slice" => slice,
        "Gather" => gather,
        "GatherElements" => gather_elements,
        "GatherND" => gather_nd,
        "ScatterND" | "ScatterElements" | "Scatter" | "ReverseSequence" => {
            |_: &Call<'_>, input: &Shape| moved_data(input.sizes().to_vec())
        }
        "Expand" => expand,
        "Tile" => tile,
        "Pad" => pad,
        "Resize" | "Upsample" => resize,
        "DepthToSpace" | "SpaceToDepth" => blocks,
        _ => return Ok(NodeResult::Unknown),
    };
    let Some(input) = call.shape(0) else {
        return Ok(NodeResult::UnknownShape);
    };
    Ok(act(call, input)?.unwrap_or(NodeResult::UnknownShape))
}

/// The inferred result of a node; `None` if its shape depends on values that are not known.
pub(super) type LayoutResult = Result<Option<NodeResult>, String>;

/// A layer that copies data into an output of these sizes.
pub(super) fn moved_data(sizes: Vec<u64>) -> LayoutResult {
    Ok(Some(NodeResult::layer(Kind::Move, Shape::new(sizes)?)))
}

/// A result that is the same data in another shape, without cost.
fn view(sizes: Vec<u64>) -> LayoutResult {
    Ok(Some(NodeResult::view(Shape::new(sizes)?)))
}

fn reshape(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(asked) = call.list("shape", 1) else {
        return Ok(None);
    };
    let keeps_zero = call.int("allowzero", 0) != 0;
    let mut sizes = Vec::with_capacity(asked.len());
    let mut open = None;
    for (index, size) in asked.iter().enumerate() {
        sizes.push(match *size {
            -1 if open.is_some() => return Err("only one size can be -1".to_owned()),
            -1 => {
                open = Some(index);
                1
            }
            0 if !keeps_zero => *input
                .sizes()
                .get(index)
                .ok_or("it copies a size that its input does not have")?,
            size => u64::try_from(size).map_err(|_| format!("invalid size {size}"))?,
        });
    }
    let shape = Shape::new(sizes.clone())?;
    let (have, want) = (input.elements(), shape.elements());
    match open {
        Some(index) if want > 0 && have % want == 0 => sizes[index] = have / want,
        None if have == want => {}
        _ => {
            return Err(format!(
                "cannot reshape {input} to {}",
                format_numbers(&asked)
            ));
        }
    }
    view(sizes)
}

/// Infers the result of `Flatten`.
fn flatten(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let rank = input.rank() as i64;
    let from = call.int("axis", 1);
    if from < -rank || from > rank {
        return Err(format!("there is no axis {from} in {input}"));
    }
    let from = if from < 0 { from + rank } else { from } as usize;
    let (outer, inner) = input.sizes().split_at(from);
    view(vec![outer.iter().product(), inner.iter().product()])
}

/// Infers the result of `Squeeze`.
fn squeeze(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let named = call.list("axes", 1);
    if named.is_none() && call.input(1).is_some() {
        return Ok(None);
    }
    let mut gone = vec![false; input.rank()];
    match named {
        Some(named) => {
            for index in named {
                let index = axis(index, input.rank())?;
                if input.sizes()[index] != 1 {
                    return Err(format!("axis {index} of {input} is not 1"));
                }
                gone[index] = true;
            }
        }
        None => {
            for (gone, size) in gone.iter_mut().zip(input.sizes()) {
                *gone = *size == 1;
            }
        }
    }
    let left = input.sizes().iter().zip(gone).filter(|(_, gone)| !gone);
    view(left.map(|(size, _)| *size).collect())
}

/// Infers the result of `Unsqueeze`.
fn unsqueeze(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(named) = call.list("axes", 1) else {
        return Ok(None);
    };
    let rank = input.rank() + named.len();
    if rank > 16 {
        return Err("its output has too many axes".to_owned());
    }
    let mut fresh = vec![false; rank];
    for index in named {
        fresh[axis(index, rank)?] = true;
    }
    let mut own = input.sizes().iter();
    let sizes = fresh.into_iter().map(|fresh| match fresh {
        true => Some(1),
        false => own.next().copied(),
    });
    let sizes: Option<Vec<u64>> = sizes.collect();
    view(sizes.ok_or("it names an axis twice")?)
}

/// Infers the result of `Transpose`.
fn transpose(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let rank = input.rank();
    let order: Vec<i64> = match call.ints("perm") {
        Some(order) => order.to_vec(),
        None => (0..rank as i64).rev().collect(),
    };
    let mut seen = vec![false; rank];
    let mut sizes = Vec::with_capacity(rank);
    for index in &order {
        let index = axis(*index, rank)?;
        seen[index] = true;
        sizes.push(input.sizes()[index]);
    }
    if order.len() != rank || seen.contains(&false) {
        return Err(format!(
            "{} is not a permutation of the axes of {input}",
            format_numbers(&order)
        ));
    }
    moved_data(sizes)
}

/// Infers the result of `Expand`.
fn expand(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(asked) = call.numbers(1) else {
        return Ok(None);
    };
    let sizes: Option<Vec<u64>> = asked.iter().map(|size| u64::try_from(*size).ok()).collect();
    let sizes = sizes.ok_or_else(|| format!("invalid sizes {}", format_numbers(&asked)))?;
    let sizes = super::element_wise::broadcast(input.sizes(), &sizes)
        .ok_or_else(|| format!("cannot reshape {input} to {}", format_numbers(&asked)))?;
    moved_data(sizes)
}

/// Infers the result of `Tile`.
fn tile(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(times) = call.numbers(1) else {
        return Ok(None);
    };
    if times.len() != input.rank() {
        return Err(format!(
            "{} repeats do not match {input}",
            format_numbers(&times)
        ));
    }
    let sizes = input.sizes().iter().zip(times).map(|(size, times)| {
        let times = u64::try_from(times).ok()?;
        size.checked_mul(times)
    });
    let sizes: Option<Vec<u64>> = sizes.collect();
    moved_data(sizes.ok_or("its result is too large")?)
}

/// Infers the result of `Pad`.
fn pad(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let Some(pads) = call.list("pads", 1) else {
        return Ok(None);
    };
    let axes: Vec<usize> = match call.input(3) {
        Some(_) => match call.numbers(3) {
            Some(named) => {
                let named = named.iter().map(|index| axis(*index, input.rank()));
                named.collect::<Result<_, _>>()?
            }
            None => return Ok(None),
        },
        None => (0..input.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(format!(
            "its pads {} do not match an input of shape {input}",
            format_numbers(&pads)
        ));
    }
    let mut sizes = input.sizes().to_vec();
    for (index, along) in axes.iter().enumerate() {
        let added = i128::from(pads[index]) + i128::from(pads[axes.len() + index]);
        let size = u64::try_from(i128::from(sizes[*along]) + added);
        sizes[*along] = size.map_err(|_| "its padding is out of range")?;
    }
    moved_data(sizes)
}

/// Resizes by sizes or by factors, which files of different versions give in different inputs and attributes.
fn resize(call: &Call<'_>, input: &Shape) -> LayoutResult {
    if let Some(asked) = call.numbers(3).filter(|sizes| !sizes.is_empty()) {
        let sizes: Option<Vec<u64>> = asked.iter().map(|size| u64::try_from(*size).ok()).collect();
        let sizes = sizes.filter(|sizes| sizes.len() == input.rank());
        return moved_data(
            sizes.ok_or_else(|| format!("cannot reshape {input} to {}", format_numbers(&asked)))?,
        );
    }
    let from = if call.node.operator == "Upsample" || call.opset < 11 {
        1
    } else {
        2
    };
    let factors: Vec<f64> = match call.attribute("scales") {
        Some(own) => own.floats.iter().map(|factor| f64::from(*factor)).collect(),
        None => match call.input(from).and_then(|value| value.numbers.clone()) {
            Some(numbers) => numbers.to_vec(),
            None => return Ok(None),
        },
    };
    if factors.len() != input.rank() {
        return Err(format!(
            "its scales {} do not match an input of shape {input}",
            format_numbers(&factors)
        ));
    }
    let sizes = input.sizes().iter().zip(factors);
    moved_data(
        sizes
            .map(|(size, factor)| (*size as f64 * factor).floor().max(0.0) as u64)
            .collect(),
    )
}

/// Infers the result of `DepthToSpace` and `SpaceToDepth`.
fn blocks(call: &Call<'_>, input: &Shape) -> LayoutResult {
    let block = u64::try_from(call.int("blocksize", 0))
        .ok()
        .filter(|block| (1..1 << 16).contains(block));
    let (Some(block), [batch, channels, height, width]) = (block, input.sizes()) else {
        return Err(format!("it cannot rearrange an input of shape {input}"));
    };
    match call.node.operator.as_str() {
        "DepthToSpace" => moved_data(vec![
            *batch,
            channels / (block * block),
            height.saturating_mul(block),
            width.saturating_mul(block),
        ]),
        _ => moved_data(vec![
            *batch,
            channels.saturating_mul(block * block),
            height / block,
            width / block,
        ]),
    }
}
