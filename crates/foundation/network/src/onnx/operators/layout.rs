//! Operators that move data or look at it in another way.

use super::{Answer, Call, axis, listed};
use crate::onnx::value::Value;
use crate::{Kind, Shape};

pub fn answer(call: &Call<'_>) -> Result<Answer, String> {
    let act = match call.node.operator.as_str() {
        "Identity" => |_: &Call<'_>, input: &Shape| Ok(Some(Answer::view(input.clone()))),
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
            |_: &Call<'_>, input: &Shape| moved(input.sizes().to_vec())
        }
        "Expand" => expand,
        "Tile" => tile,
        "Pad" => pad,
        "Resize" | "Upsample" => resize,
        "DepthToSpace" | "SpaceToDepth" => blocks,
        _ => return Ok(Answer::Unknown),
    };
    let Some(input) = call.shape(0) else {
        return Ok(Answer::Shapeless);
    };
    Ok(act(call, input)?.unwrap_or(Answer::Shapeless))
}

/// None where a shape depends on numbers that are not known.
type Found = Result<Option<Answer>, String>;

fn moved(sizes: Vec<u64>) -> Found {
    Ok(Some(Answer::layer(Kind::Move, Shape::new(sizes)?)))
}

fn view(sizes: Vec<u64>) -> Found {
    Ok(Some(Answer::view(Shape::new(sizes)?)))
}

fn reshape(call: &Call<'_>, input: &Shape) -> Found {
    let Some(asked) = call.list("shape", 1) else {
        return Ok(None);
    };
    let keeps_zero = call.int("allowzero", 0) != 0;
    let mut sizes = Vec::with_capacity(asked.len());
    let mut open = None;
    for (index, size) in asked.iter().enumerate() {
        sizes.push(match *size {
            -1 if open.is_some() => return Err("two sizes of -1 cannot be told".to_owned()),
            -1 => {
                open = Some(index);
                1
            }
            0 if !keeps_zero => *input
                .sizes()
                .get(index)
                .ok_or("it copies a size that its input has not")?,
            size => u64::try_from(size).map_err(|_| format!("{size} is no size"))?,
        });
    }
    let shape = Shape::new(sizes.clone())?;
    let (have, want) = (input.elements(), shape.elements());
    match open {
        Some(index) if want > 0 && have % want == 0 => sizes[index] = have / want,
        None if have == want => {}
        _ => return Err(format!("{input} cannot become {}", listed(&asked))),
    }
    view(sizes)
}

fn flatten(call: &Call<'_>, input: &Shape) -> Found {
    let rank = input.rank() as i64;
    let from = call.int("axis", 1);
    if from < -rank || from > rank {
        return Err(format!("there is no axis {from} in {input}"));
    }
    let from = if from < 0 { from + rank } else { from } as usize;
    let (outer, inner) = input.sizes().split_at(from);
    view(vec![outer.iter().product(), inner.iter().product()])
}

fn squeeze(call: &Call<'_>, input: &Shape) -> Found {
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

fn unsqueeze(call: &Call<'_>, input: &Shape) -> Found {
    let Some(named) = call.list("axes", 1) else {
        return Ok(None);
    };
    let rank = input.rank() + named.len();
    if rank > 16 {
        return Err("it makes too many axes".to_owned());
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

fn transpose(call: &Call<'_>, input: &Shape) -> Found {
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
            "{} is no order of the axes of {input}",
            listed(&order)
        ));
    }
    moved(sizes)
}

fn concat(call: &Call<'_>, input: &Shape) -> Found {
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
                "{input} and {shape} do not fit side by side along axis {along}"
            ));
        }
        sizes[along] = sizes[along].saturating_add(shape.sizes()[along]);
    }
    Ok(Some(Answer::layer(Kind::Concat, Shape::new(sizes)?)))
}

fn split(call: &Call<'_>, input: &Shape) -> Found {
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
        return Err(format!("{whole} is not the sum of its parts"));
    }
    let outputs = parts.into_iter().map(|part| {
        let mut sizes = input.sizes().to_vec();
        sizes[along] = part;
        Ok(Value::of(Shape::new(sizes)?))
    });
    Ok(Some(Answer::Known {
        kind: Some(Kind::Move),
        outputs: outputs.collect::<Result<_, String>>()?,
        weights: &[],
        statistics: &[],
    }))
}

/// How many elements are left between two ends, both possibly counted from the back or beyond the tensor.
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

fn slice(call: &Call<'_>, input: &Shape) -> Found {
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
        return Err("it has not as many starts as ends, axes and steps".to_owned());
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
    moved(sizes)
}

fn gather(call: &Call<'_>, input: &Shape) -> Found {
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
    Ok(Some(Answer::layer(kind, Shape::new(sizes)?)))
}

fn gather_elements(call: &Call<'_>, _: &Shape) -> Found {
    match call.shape(1) {
        Some(positions) => moved(positions.sizes().to_vec()),
        None => Ok(None),
    }
}

fn gather_nd(call: &Call<'_>, input: &Shape) -> Found {
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
        .ok_or("its positions have too many axes")?;
    moved([outer, inner].concat())
}

fn expand(call: &Call<'_>, input: &Shape) -> Found {
    let Some(asked) = call.numbers(1) else {
        return Ok(None);
    };
    let sizes: Option<Vec<u64>> = asked.iter().map(|size| u64::try_from(*size).ok()).collect();
    let sizes = sizes.ok_or_else(|| format!("{} are no sizes", listed(&asked)))?;
    let sizes = super::element_wise::broadcast(input.sizes(), &sizes)
        .ok_or_else(|| format!("{input} cannot become {}", listed(&asked)))?;
    moved(sizes)
}

fn tile(call: &Call<'_>, input: &Shape) -> Found {
    let Some(times) = call.numbers(1) else {
        return Ok(None);
    };
    if times.len() != input.rank() {
        return Err(format!(
            "{} does not say how often to repeat {input}",
            listed(&times)
        ));
    }
    let sizes = input.sizes().iter().zip(times).map(|(size, times)| {
        let times = u64::try_from(times).ok()?;
        size.checked_mul(times)
    });
    let sizes: Option<Vec<u64>> = sizes.collect();
    moved(sizes.ok_or("it repeats beyond all bounds")?)
}

fn pad(call: &Call<'_>, input: &Shape) -> Found {
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
        return Err(format!("{} does not say how to pad {input}", listed(&pads)));
    }
    let mut sizes = input.sizes().to_vec();
    for (index, along) in axes.iter().enumerate() {
        let added = i128::from(pads[index]) + i128::from(pads[axes.len() + index]);
        let size = u64::try_from(i128::from(sizes[*along]) + added);
        sizes[*along] = size.map_err(|_| "it pads beyond all bounds")?;
    }
    moved(sizes)
}

/// By sizes, or by factors; the last inputs and attributes win, as files of different age have them.
fn resize(call: &Call<'_>, input: &Shape) -> Found {
    if let Some(asked) = call.numbers(3).filter(|sizes| !sizes.is_empty()) {
        let sizes: Option<Vec<u64>> = asked.iter().map(|size| u64::try_from(*size).ok()).collect();
        let sizes = sizes.filter(|sizes| sizes.len() == input.rank());
        return moved(sizes.ok_or_else(|| format!("{input} cannot become {}", listed(&asked)))?);
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
            "{} does not say how to scale {input}",
            listed(&factors)
        ));
    }
    let sizes = input.sizes().iter().zip(factors);
    moved(
        sizes
            .map(|(size, factor)| (*size as f64 * factor).floor().max(0.0) as u64)
            .collect(),
    )
}

fn blocks(call: &Call<'_>, input: &Shape) -> Found {
    let block = u64::try_from(call.int("blocksize", 0))
        .ok()
        .filter(|block| (1..1 << 16).contains(block));
    let (Some(block), [batch, channels, height, width]) = (block, input.sizes()) else {
        return Err(format!("it cannot rearrange {input}"));
    };
    match call.node.operator.as_str() {
        "DepthToSpace" => moved(vec![
            *batch,
            channels / (block * block),
            height.saturating_mul(block),
            width.saturating_mul(block),
        ]),
        _ => moved(vec![
            *batch,
            channels.saturating_mul(block * block),
            height / block,
            width / block,
        ]),
    }
}
