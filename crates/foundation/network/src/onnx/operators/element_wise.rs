//! Operators that work on each element.

use super::{Call, NodeResult};
use crate::onnx::value::{Value, is_whole};
use crate::{Activation, Arithmetic, Kind, Shape};

/// Infers the result of an operator that works on each element.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    let operator = call.node.operator.as_str();
    if let Some(kind) = unary_kind(operator) {
        let Some(shape) = call.shape(0) else {
            return Ok(NodeResult::UnknownShape);
        };
        let mut outputs = vec![Value::with_shape(shape.clone())];
        if operator == "Dropout" {
            outputs.push(Value::with_shape(shape.clone()));
        }
        return Ok(NodeResult::Known {
            kind: Some(kind),
            outputs,
            weights: &[],
            statistics: &[],
        });
    }
    let Some(arithmetic) = binary_arithmetic(operator) else {
        return Ok(NodeResult::Unknown);
    };
    let mut sizes: Vec<u64> = Vec::new();
    for index in 0..call.inputs.len() {
        let Some(shape) = call.shape(index) else {
            return Ok(NodeResult::UnknownShape);
        };
        let known = Shape::new(sizes)?;
        sizes = broadcast(known.sizes(), shape.sizes())
            .ok_or_else(|| format!("shapes {known} and {shape} do not match"))?;
    }
    Ok(NodeResult::layer(
        Kind::ElementWise(arithmetic),
        Shape::new(sizes)?,
    ))
}

/// The kind of layer of an operator with one input.
fn unary_kind(operator: &str) -> Option<Kind> {
    Some(match operator {
        "Relu" | "LeakyRelu" | "PRelu" | "ThresholdedRelu" | "Clip" | "HardSigmoid"
        | "HardSwish" | "Shrink" | "Abs" | "Sign" => Kind::Activation(Activation::Threshold),
        "Sigmoid" | "Tanh" | "Gelu" | "FastGelu" | "QuickGelu" | "Erf" | "Exp" | "Log"
        | "Softplus" | "Softsign" | "Elu" | "Selu" | "Celu" | "Mish" | "Swish" | "Sin" | "Cos"
        | "Tan" | "Asin" | "Acos" | "Atan" | "Sinh" | "Cosh" => {
            Kind::Activation(Activation::Exponential)
        }
        "Neg" | "Sqrt" | "Reciprocal" | "Floor" | "Ceil" | "Round" | "Not" | "IsNaN" | "IsInf"
        | "BitwiseNot" => Kind::Activation(Activation::Simple),
        "Softmax" | "LogSoftmax" | "Hardmax" => Kind::Softmax,
        "Dropout" => Kind::Dropout,
        "Cast" | "CastLike" | "Trilu" | "CumSum" => Kind::Move,
        "QuantizeLinear" | "DequantizeLinear" => Kind::ElementWise(Arithmetic::Multiply),
        _ => return None,
    })
}

/// The arithmetic of an operator with two inputs.
fn binary_arithmetic(operator: &str) -> Option<Arithmetic> {
    Some(match operator {
        "Add" | "Sub" | "Sum" | "Mean" => Arithmetic::Add,
        "Mul" => Arithmetic::Multiply,
        "Div" | "Pow" | "Mod" => Arithmetic::Divide,
        "Max" | "Min" | "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "And"
        | "Or" | "Xor" | "Where" => Arithmetic::Compare,
        _ => return None,
    })
}

/// Whether the output consists of whole numbers or booleans.
pub fn makes_whole(call: &Call<'_>) -> bool {
    let of = |index| call.input(index).is_some_and(|value| value.whole);
    match call.node.operator.as_str() {
        "Cast" => i32::try_from(call.int("to", 1)).is_ok_and(is_whole),
        "Equal" | "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" | "And" | "Or" | "Xor"
        | "Not" | "IsNaN" | "IsInf" | "Shape" | "Size" | "ArgMax" | "ArgMin" | "NonZero"
        | "QuantizeLinear" => true,
        "Where" => of(1),
        "CastLike" => of(1),
        // The value determines the type; the input is a shape.
        "ConstantOfShape" | "DequantizeLinear" | "OneHot" => false,
        _ => of(0),
    }
}

/// Broadcasts two shapes, aligned at the last axis; size 1 matches any size. `None` if they do not match.
pub fn broadcast(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut sizes = long.to_vec();
    let from = long.len() - short.len();
    for (size, other) in sizes[from..].iter_mut().zip(short) {
        *size = match (*size, *other) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => return None,
        };
    }
    Some(sizes)
}
