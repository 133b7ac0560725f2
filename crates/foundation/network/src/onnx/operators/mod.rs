//! Infers, for each node, the shapes of its outputs and the kind of layer.

mod constants;
mod element_wise;
mod layout;
mod products;
mod reduce;
mod slices;
mod windows;

use std::collections::BTreeSet;
use std::rc::Rc;

use super::proto::{Attribute, Node};
use super::value::Value;
use crate::{Kind, Shape};

/// The limit on the number of weights that are recorded as the origins of one constant.
const MAX_ORIGINS: usize = 64;

/// The result of inference for a node.
pub enum NodeResult {
    /// The outputs and, unless the node only reshapes data, the kind of layer.
    Known {
        kind: Option<Kind>,
        outputs: Vec<Value>,
        /// The indices of the inputs that are always weights.
        weights: &'static [usize],
        /// The indices of the inputs that are running statistics: weights that are not trained.
        statistics: &'static [usize],
    },
    /// The operator is known, but an input shape that it needs is not.
    UnknownShape,
    /// The operator is not known to this program.
    Unknown,
}

impl NodeResult {
    /// A node that is a layer with one output of this shape.
    fn layer(kind: Kind, shape: Shape) -> Self {
        Self::Known {
            kind: Some(kind),
            outputs: vec![Value::with_shape(shape)],
            weights: &[],
            statistics: &[],
        }
    }

    /// A node that only reinterprets its data in another shape, without cost.
    fn view(shape: Shape) -> Self {
        Self::value(Value::with_shape(shape))
    }

    /// A node without cost whose only output is this value.
    fn value(value: Value) -> Self {
        Self::Known {
            kind: None,
            outputs: vec![value],
            weights: &[],
            statistics: &[],
        }
    }
}

/// A node of the graph together with what is known about its inputs.
pub struct Call<'a> {
    pub node: &'a Node,
    pub inputs: &'a [Option<Value>],
    pub opset: i64,
}

impl<'a> Call<'a> {
    /// What is known about an input of the node.
    fn input(&self, index: usize) -> Option<&'a Value> {
        self.inputs.get(index)?.as_ref()
    }

    /// The shape of an input, if it is known.
    fn shape(&self, index: usize) -> Option<&'a Shape> {
        self.input(index)?.shape.as_ref()
    }

    /// The values of a constant input, as whole numbers; `None` if they are not known.
    fn numbers(&self, index: usize) -> Option<Vec<i64>> {
        self.input(index)?.whole_numbers()
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.attributes.iter().find(|own| own.name == name)
    }

    /// The value of a whole-number attribute, or `otherwise` if the node does not have it.
    fn int(&self, name: &str, otherwise: i64) -> i64 {
        self.attribute(name).map_or(otherwise, |own| own.int)
    }

    /// The value of an attribute that is a list of whole numbers.
    fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|own| own.ints.as_slice())
    }

    /// The value of a text attribute; empty if the node does not have it.
    fn text(&self, name: &str) -> &'a [u8] {
        self.attribute(name).map_or(&[], |own| &own.string)
    }

    /// A list of whole numbers that old files store as an attribute and new files as an input.
    fn list(&self, attribute: &str, input: usize) -> Option<Vec<i64>> {
        match self.ints(attribute) {
            Some(ints) => Some(ints.to_vec()),
            None => self.numbers(input),
        }
    }
}

/// Formats numbers for messages.
fn format_numbers<T: std::fmt::Debug>(numbers: &[T]) -> String {
    match numbers.get(..16) {
        Some(first) if numbers.len() > 16 => format!("{first:?} and {} more", numbers.len() - 16),
        _ => format!("{numbers:?}"),
    }
}

/// Converts an axis number to an index; negative numbers count from the last axis.
fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let rank = rank as i64;
    match axis {
        _ if axis >= -rank && axis < rank => Ok(axis.rem_euclid(rank) as usize),
        _ => Err(format!(
            "there is no axis {axis} in a tensor of {rank} axes"
        )),
    }
}

/// Infers the result of a node, or an error if the node is invalid.
pub fn infer(call: &Call<'_>) -> Result<NodeResult, String> {
    let own = matches!(call.node.domain.as_str(), "" | "ai.onnx" | "com.microsoft");
    if !own {
        return Ok(NodeResult::Unknown);
    }
    let mut found = NodeResult::Unknown;
    for family in [
        windows::infer,
        products::infer,
        element_wise::infer,
        reduce::infer,
        layout::infer,
        constants::infer,
    ] {
        found = family(call)?;
        if !matches!(found, NodeResult::Unknown) {
            break;
        }
    }
    Ok(propagate_constants(call, found))
}

/// The weights from which a constant is computed. Single numbers, indices and the scales of quantised weights
/// are not counted among them.
fn origins(call: &Call<'_>) -> Option<Rc<[usize]>> {
    let mut given = call.inputs.iter().flatten();
    let first = given.find(|value| value.origins.is_some())?;
    let is_quantised = call.node.operator == "DequantizeLinear";
    let is_weight = |value: &&Value| {
        let rank = value.shape.as_ref().map_or(0, Shape::rank);
        !value.whole && rank > 0 && value.origins.is_some()
    };
    let mut others = given.filter(|_| !is_quantised).filter(is_weight).peekable();
    if others.peek().is_none() {
        return first.origins.clone();
    }
    let all = std::iter::once(first)
        .chain(others)
        .filter_map(|value| value.origins.as_deref());
    let all: BTreeSet<usize> = all.flatten().take(MAX_ORIGINS).copied().collect();
    Some(all.into_iter().collect())
}

/// Marks the outputs of a node as constant if all of its inputs are.
fn propagate_constants(call: &Call<'_>, result: NodeResult) -> NodeResult {
    let NodeResult::Known {
        mut kind,
        mut outputs,
        weights,
        statistics,
    } = result
    else {
        return result;
    };
    let mut given = call.inputs.iter().flatten().peekable();
    let constant = given.peek().is_some() && given.all(|value| value.constant);
    let origins = origins(call);
    let whole = element_wise::makes_whole(call);
    for output in &mut outputs {
        output.whole |= whole;
        if constant {
            output.constant = true;
            output.origins.clone_from(&origins);
        }
    }
    if constant {
        kind = None;
    }
    if let [output, ..] = outputs.as_mut_slice()
        && output.numbers.is_none()
    {
        output.numbers = constants::fold(call, output.shape.as_ref());
    }
    NodeResult::Known {
        kind,
        outputs,
        weights,
        statistics,
    }
}
