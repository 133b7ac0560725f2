//! Constants, and the computations on shapes that exporters write into files.

use std::rc::Rc;

use super::{Call, NodeResult, axis};
use crate::Shape;
use crate::onnx::value::{MAX_NUMBERS, Value, is_whole, value_from_tensor};

/// Infers the result of an operator that produces constants or shapes.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    match call.node.operator.as_str() {
        "Constant" => constant(call),
        "Shape" => {
            let Some(input) = call.shape(0) else {
                return Ok(NodeResult::UnknownShape);
            };
            let rank = input.rank() as i64;
            let end = |name, otherwise| {
                let end = call.int(name, otherwise);
                (if end < 0 {
                    end.saturating_add(rank)
                } else {
                    end
                })
                .clamp(0, rank) as usize
            };
            let (from, to) = (end("start", 0), end("end", rank));
            let sizes = input.sizes().get(from..to).unwrap_or_default();
            Ok(NodeResult::value(Value::list(
                sizes.iter().map(|size| *size as f64).collect(),
            )?))
        }
        "Size" => {
            let Some(input) = call.shape(0) else {
                return Ok(NodeResult::UnknownShape);
            };
            Ok(NodeResult::value(Value {
                numbers: Some(Rc::from([input.elements() as f64])),
                whole: true,
                constant: true,
                ..Value::with_shape(Shape::default())
            }))
        }
        "ConstantOfShape" => constant_of_shape(call),
        "Range" => range(call),
        "OneHot" => {
            let (Some(input), Some(depth)) = (call.shape(0), call.numbers(1)) else {
                return Ok(NodeResult::UnknownShape);
            };
            let depth = depth.first().and_then(|depth| u64::try_from(*depth).ok());
            let mut sizes = input.sizes().to_vec();
            sizes.push(depth.ok_or("its depth is not a valid size")?);
            Ok(NodeResult::layer(crate::Kind::Move, Shape::new(sizes)?))
        }
        _ => Ok(NodeResult::Unknown),
    }
}

/// Infers the result of `Constant`.
fn constant(call: &Call<'_>) -> Result<NodeResult, String> {
    let several = |numbers: Vec<f64>, whole, shape| Value {
        shape: Some(shape),
        numbers: (numbers.len() <= MAX_NUMBERS).then(|| numbers.into()),
        whole,
        constant: true,
        origins: None,
    };
    let Some(own) = call.node.attributes.first() else {
        return Err("it has no value".to_owned());
    };
    let list = |numbers: Vec<f64>, whole| {
        let shape = Shape::new(vec![numbers.len() as u64])?;
        Ok::<_, String>(several(numbers, whole, shape))
    };
    let value = match own.name.as_str() {
        "value" => {
            let tensor = own.tensor.as_ref().ok_or("it has no value")?;
            value_from_tensor(tensor, None)?
        }
        "value_int" => several(vec![own.int as f64], true, Shape::default()),
        "value_float" => several(vec![f64::from(own.float)], false, Shape::default()),
        "value_ints" => list(own.ints.iter().map(|number| *number as f64).collect(), true)?,
        "value_floats" => list(
            own.floats.iter().map(|number| f64::from(*number)).collect(),
            false,
        )?,
        _ => return Ok(NodeResult::Unknown),
    };
    Ok(NodeResult::value(value))
}

/// Infers the result of `ConstantOfShape`.
fn constant_of_shape(call: &Call<'_>) -> Result<NodeResult, String> {
    let Some(sizes) = call.numbers(0) else {
        return Ok(NodeResult::UnknownShape);
    };
    let sizes: Option<Vec<u64>> = sizes.iter().map(|size| u64::try_from(*size).ok()).collect();
    let shape = Shape::new(sizes.ok_or("it has a size below 0")?)?;
    let tensor = call.attribute("value").and_then(|own| own.tensor.as_ref());
    let (number, whole) = match tensor {
        Some(tensor) => {
            let value = value_from_tensor(tensor, None)?;
            let first = value
                .numbers
                .as_ref()
                .and_then(|numbers| numbers.first().copied());
            (first, is_whole(tensor.data_type))
        }
        None => (Some(0.0), false),
    };
    let count = shape.elements() as usize;
    let numbers = number.filter(|_| count <= MAX_NUMBERS);
    Ok(NodeResult::value(Value {
        numbers: numbers.map(|number| vec![number; count].into()),
        whole,
        constant: true,
        ..Value::with_shape(shape)
    }))
}

/// Infers the result of `Range`.
fn range(call: &Call<'_>) -> Result<NodeResult, String> {
    let first = |index| -> Option<f64> { call.input(index)?.numbers.as_ref()?.first().copied() };
    let (Some(start), Some(end), Some(step)) = (first(0), first(1), first(2)) else {
        return Ok(NodeResult::UnknownShape);
    };
    let count = ((end - start) / step).ceil().max(0.0);
    if !count.is_finite() {
        return Err("its limits and step give no finite length".to_owned());
    }
    let shape = Shape::new(vec![count as u64])?;
    let count = count as usize;
    let numbers = (count <= MAX_NUMBERS).then(|| {
        (0..count)
            .map(|index| start + step * index as f64)
            .collect()
    });
    Ok(NodeResult::value(Value {
        numbers,
        constant: true,
        ..Value::with_shape(shape)
    }))
}

/// Computes the values of a small output whose inputs are constant, because later shapes may depend on them.
pub fn fold(call: &Call<'_>, shape: Option<&Shape>) -> Option<Rc<[f64]>> {
    let count = usize::try_from(shape?.elements()).ok()?;
    if count > MAX_NUMBERS {
        return None;
    }
    let numbers = |index| call.input(index).and_then(|value| value.numbers.clone());
    let a = numbers(0)?;
    let whole = call.inputs.iter().flatten().all(|value| value.whole);
    let one = |act: fn(f64) -> f64| Some(a.iter().map(|number| act(*number)).collect());
    let folded: Option<Vec<f64>> = match call.node.operator.as_str() {
        "Identity" | "Squeeze" | "Unsqueeze" | "Reshape" | "Flatten" => Some(a.to_vec()),
        "Cast" if is_whole(i32::try_from(call.int("to", 1)).unwrap_or(1)) => one(f64::trunc),
        "Cast" => Some(a.to_vec()),
        "Neg" => one(|number| -number),
        "Abs" => one(f64::abs),
        "Floor" => one(f64::floor),
        "Ceil" => one(f64::ceil),
        "Sqrt" => one(f64::sqrt),
        "Not" => one(|number| f64::from(number == 0.0)),
        "Where" => {
            let (b, c) = (numbers(1)?, numbers(2)?);
            let pick = |index| {
                let from = if *broadcast_element(&a, index)? != 0.0 {
                    &b
                } else {
                    &c
                };
                broadcast_element(from, index).copied()
            };
            (0..count).map(pick).collect()
        }
        "Concat" if call.shape(0)?.rank() == 1 => {
            let mut all = Vec::with_capacity(count);
            for index in 0..call.inputs.len() {
                all.extend(numbers(index)?.iter());
            }
            Some(all)
        }
        "Gather" if call.shape(0)?.rank() == 1 => {
            let length = a.len() as i64;
            let pick = |position: &f64| {
                let position = *position as i64;
                let position = if position < 0 {
                    position + length
                } else {
                    position
                };
                a.get(usize::try_from(position).ok()?).copied()
            };
            numbers(1)?.iter().map(pick).collect()
        }
        "Slice" => slice(call, &a, shape?),
        "Transpose" => transpose(call, &a, shape?),
        "Expand" if a.len() == 1 => Some(vec![a[0]; count]),
        "Expand" if a.len() == count => Some(a.to_vec()),
        "ReduceProd" if count == 1 => Some(vec![a.iter().product()]),
        "ReduceSum" if count == 1 => Some(vec![a.iter().sum()]),
        "ReduceMax" if count == 1 => Some(vec![a.iter().copied().fold(f64::MIN, f64::max)]),
        "ReduceMin" if count == 1 => Some(vec![a.iter().copied().fold(f64::MAX, f64::min)]),
        operator => {
            let act = arithmetic(operator, whole)?;
            let b = numbers(1)?;
            (call.inputs.len() == 2).then_some(())?;
            (0..count)
                .map(|index| {
                    Some(act(
                        *broadcast_element(&a, index)?,
                        *broadcast_element(&b, index)?,
                    ))
                })
                .collect()
        }
    };
    folded.filter(|folded| folded.len() == count).map(Rc::from)
}

/// The element at an index; a list of one number is broadcast to every index.
fn broadcast_element(numbers: &Rc<[f64]>, index: usize) -> Option<&f64> {
    match &**numbers {
        [single] => Some(single),
        several => several.get(index),
    }
}

/// The arithmetic of an operator on two numbers; `whole` selects division of whole numbers.
fn arithmetic(operator: &str, whole: bool) -> Option<fn(f64, f64) -> f64> {
    Some(match operator {
        "Add" => |a, b| a + b,
        "Sub" => |a, b| a - b,
        "Mul" => |a, b| a * b,
        "Div" if whole => |a, b| (a / b).trunc(),
        "Div" => |a, b| a / b,
        "Mod" => |a, b| a.rem_euclid(b),
        "Pow" => f64::powf,
        "Min" => f64::min,
        "Max" => f64::max,
        "Equal" => |a, b| f64::from(a == b),
        "Less" => |a, b| f64::from(a < b),
        "LessOrEqual" => |a, b| f64::from(a <= b),
        "Greater" => |a, b| f64::from(a > b),
        "GreaterOrEqual" => |a, b| f64::from(a >= b),
        "And" => |a, b| f64::from(a != 0.0 && b != 0.0),
        "Or" => |a, b| f64::from(a != 0.0 || b != 0.0),
        _ => return None,
    })
}

/// Selects elements of a tensor: `begin` is the index of the first, `steps` the index distance along each axis
/// of the output.
fn select_elements(
    numbers: &[f64],
    output: &Shape,
    begin: usize,
    steps: &[i64],
) -> Option<Vec<f64>> {
    let count = output.elements();
    let pick = |index: u64| {
        let (mut rest, mut position) = (index, begin as i64);
        for (size, step) in output.sizes().iter().zip(steps).rev() {
            position = position.saturating_add(((rest % size) as i64).saturating_mul(*step));
            rest /= size;
        }
        numbers.get(usize::try_from(position).ok()?).copied()
    };
    (0..count).map(pick).collect()
}

/// The index distance between neighbouring elements along each axis.
fn strides(shape: &Shape) -> Vec<i64> {
    let mut strides = vec![1i64; shape.rank()];
    for axis in (1..shape.rank()).rev() {
        strides[axis - 1] = strides[axis] * shape.sizes()[axis] as i64;
    }
    strides
}

/// The elements of a transposed constant.
fn transpose(call: &Call<'_>, numbers: &[f64], output: &Shape) -> Option<Vec<f64>> {
    let input = call.shape(0)?;
    let mut steps = strides(input);
    match call.ints("perm") {
        Some(order) => {
            let own = steps.clone();
            let turned = order
                .iter()
                .map(|from| own.get(axis(*from, own.len()).ok()?).copied());
            steps = turned.collect::<Option<_>>()?;
        }
        None => steps.reverse(),
    }
    select_elements(numbers, output, 0, &steps)
}

/// The elements of a slice of a constant.
fn slice(call: &Call<'_>, numbers: &[f64], output: &Shape) -> Option<Vec<f64>> {
    let input = call.shape(0)?;
    let starts = call.list("starts", 1)?;
    let axes = call.list("axes", 3);
    let by = call.list("steps", 4);
    let mut steps = strides(input);
    let mut begin = 0i64;
    for (index, start) in starts.iter().enumerate() {
        let named = axes
            .as_ref()
            .map_or(Some(index as i64), |axes| axes.get(index).copied())?;
        let along = axis(named, input.rank()).ok()?;
        let step = by.as_ref().map_or(Some(1), |by| by.get(index).copied())?;
        let size = input.sizes()[along] as i64;
        let from = if *start < 0 {
            start.saturating_add(size)
        } else {
            *start
        };
        let last = if step > 0 { size } else { (size - 1).max(0) };
        begin = begin.saturating_add(from.clamp(0, last).saturating_mul(steps[along]));
        // Beyond a few thousand elements a step leads outside of the tensor.
        steps[along] = steps[along].saturating_mul(step.clamp(-(1 << 20), 1 << 20));
    }
    select_elements(numbers, output, usize::try_from(begin).ok()?, &steps)
}
