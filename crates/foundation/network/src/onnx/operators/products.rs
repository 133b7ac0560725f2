//! Matrix products.

use std::collections::HashMap;

use super::element_wise::broadcast;
use super::{Call, NodeResult};
use crate::{Kind, Shape};

/// Infers the result of a matrix product.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    match call.node.operator.as_str() {
        "Gemm" => gemm(call),
        "MatMul" => matmul(call),
        "Einsum" => einsum(call),
        "Attention" if call.node.domain != "com.microsoft" => attention(call),
        _ => Ok(NodeResult::Unknown),
    }
}

/// Whether an input of the node is constant, which makes it a weight.
fn is_weight(call: &Call<'_>, index: usize) -> bool {
    call.input(index).is_some_and(|value| value.constant)
}

/// Infers the result of `Gemm`.
fn gemm(call: &Call<'_>) -> Result<NodeResult, String> {
    let (Some(a), Some(b)) = (call.shape(0), call.shape(1)) else {
        return Ok(NodeResult::UnknownShape);
    };
    let ([a0, a1], [b0, b1]) = (a.sizes(), b.sizes()) else {
        return Err(format!("{a} and {b} are not matrices"));
    };
    let turned = |name: &str, sizes: (u64, u64)| match call.int(name, 0) {
        0 => sizes,
        _ => (sizes.1, sizes.0),
    };
    let (rows, inner) = turned("transA", (*a0, *a1));
    let (inner_b, columns) = turned("transB", (*b0, *b1));
    if inner != inner_b {
        return Err(format!("shapes {a} and {b} do not match"));
    }
    let output = Shape::new(vec![rows, columns])?;
    let kind = match is_weight(call, 1) && !is_weight(call, 0) {
        true => Kind::FullyConnected {
            inputs: inner,
            outputs: columns,
            bias: call.input(2).is_some(),
        },
        false => Kind::MatrixProduct { inner },
    };
    Ok(NodeResult::layer(kind, output))
}

/// Infers the result of `MatMul`.
fn matmul(call: &Call<'_>) -> Result<NodeResult, String> {
    let (Some(a), Some(b)) = (call.shape(0), call.shape(1)) else {
        return Ok(NodeResult::UnknownShape);
    };
    let apart = || format!("shapes {a} and {b} do not match");
    // A vector is a row on the left and a column on the right.
    let (left, row) = match a.sizes() {
        [] => return Err(apart()),
        [inner] => (vec![1, *inner], true),
        sizes => (sizes.to_vec(), false),
    };
    let (right, column) = match b.sizes() {
        [] => return Err(apart()),
        [inner] => (vec![*inner, 1], true),
        sizes => (sizes.to_vec(), false),
    };
    let ([outer_a @ .., rows, inner], [outer_b @ .., inner_b, columns]) =
        (left.as_slice(), right.as_slice())
    else {
        return Err(apart());
    };
    if inner != inner_b {
        return Err(apart());
    }
    let mut sizes = broadcast(outer_a, outer_b).ok_or_else(apart)?;
    if !row {
        sizes.push(*rows);
    }
    if !column {
        sizes.push(*columns);
    }
    let weights = is_weight(call, 1) && !is_weight(call, 0) && b.rank() == 2;
    let kind = match weights {
        true => Kind::FullyConnected {
            inputs: *inner,
            outputs: *columns,
            bias: false,
        },
        false => Kind::MatrixProduct { inner: *inner },
    };
    Ok(NodeResult::layer(kind, Shape::new(sizes)?))
}

/// An `Einsum` node, such as `bhid,bhjd->bhij`. Letters that are not in the output are summed over.
fn einsum(call: &Call<'_>) -> Result<NodeResult, String> {
    let equation = String::from_utf8_lossy(call.text("equation")).replace(' ', "");
    let Some((inputs, output)) = equation.split_once("->") else {
        return Ok(NodeResult::Unknown);
    };
    // Sixteen axes for each operand and the output suffice.
    if equation.contains('.') || equation.len() > 1 << 10 {
        return Ok(NodeResult::Unknown);
    }
    let mut sizes: HashMap<char, u64> = HashMap::new();
    for (index, letters) in inputs.split(',').enumerate() {
        let Some(shape) = call.shape(index) else {
            return Ok(NodeResult::UnknownShape);
        };
        if letters.chars().count() != shape.rank() {
            return Err(format!("`{letters}` does not describe {shape}"));
        }
        for (letter, size) in letters.chars().zip(shape.sizes()) {
            if *sizes.entry(letter).or_insert(*size) != *size {
                return Err(format!("`{letter}` has two sizes in `{equation}`"));
            }
        }
    }
    let out = output.chars().map(|letter| sizes.get(&letter).copied());
    let out: Option<Vec<u64>> = out.collect();
    let shape =
        Shape::new(out.ok_or_else(|| format!("an output letter of `{equation}` is in no input"))?)?;
    let summed = sizes
        .iter()
        .filter(|(letter, _)| !output.contains(**letter));
    let summed = Shape::new(summed.map(|(_, size)| *size).collect())?.elements();
    let kind = match call.inputs.len() {
        1 => Kind::Move,
        _ => Kind::MatrixProduct { inner: summed },
    };
    Ok(NodeResult::layer(kind, shape))
}

/// The `Attention` operator of opset 23. Its inputs are queries, keys and values, with the heads as an axis or
/// concatenated.
fn attention(call: &Call<'_>) -> Result<NodeResult, String> {
    let (Some(q), Some(k), Some(v)) = (call.shape(0), call.shape(1), call.shape(2)) else {
        return Ok(NodeResult::UnknownShape);
    };
    let heads = |name: &str| {
        u64::try_from(call.int(name, 0))
            .ok()
            .filter(|heads| *heads > 0)
    };
    let apart = || format!("{q}, {k} and {v} are not shapes of queries, keys and values");
    let (heads, asking, asked, query, value, output) = match (q.sizes(), k.sizes(), v.sizes()) {
        ([batch, heads, asking, query], [_, _, asked, _], [_, _, _, value]) => {
            let output = vec![*batch, *heads, *asking, *value];
            (*heads, *asking, *asked, *query, *value, output)
        }
        ([batch, asking, width], [_, asked, _], [_, _, values]) => {
            let heads_q = heads("q_num_heads").ok_or_else(apart)?;
            let heads_v = heads("kv_num_heads").ok_or_else(apart)?;
            let value = values / heads_v;
            let output = vec![
                *batch,
                *asking,
                value.checked_mul(heads_q).ok_or_else(apart)?,
            ];
            (heads_q, *asking, *asked, width / heads_q, value, output)
        }
        _ => return Err(apart()),
    };
    Shape::new(vec![output[0], heads, asking, asked])?;
    let kind = Kind::Attention {
        heads,
        sizes: (query, value),
        positions: (asking, asked),
    };
    Ok(NodeResult::layer(kind, Shape::new(output)?))
}
