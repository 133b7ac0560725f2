//! What an operator makes of its inputs, and which kind of layer it is.

mod constants;
mod element_wise;
mod layout;
mod products;
mod reduce;
mod windows;

use std::collections::BTreeSet;
use std::rc::Rc;

use super::proto::{Attribute, Node};
use super::value::Value;
use crate::{Kind, Shape};

/// No constant is made of more weights.
const MOST_ORIGINS: usize = 64;

/// What is known about a node.
pub enum Answer {
    /// What it makes and, unless it only looks at data in another way, what it is.
    Known {
        kind: Option<Kind>,
        outputs: Vec<Value>,
        /// Inputs that are weights whatever they come from.
        weights: &'static [usize],
        /// Weights that are not trained.
        statistics: &'static [usize],
    },
    /// The operator is known, the shapes it needs are not.
    Shapeless,
    /// The operator is not known.
    Unknown,
}

impl Answer {
    /// A layer with one output of this shape.
    fn layer(kind: Kind, shape: Shape) -> Self {
        Self::Known {
            kind: Some(kind),
            outputs: vec![Value::of(shape)],
            weights: &[],
            statistics: &[],
        }
    }

    /// The same data in another shape.
    fn view(shape: Shape) -> Self {
        Self::value(Value::of(shape))
    }

    fn value(value: Value) -> Self {
        Self::Known {
            kind: None,
            outputs: vec![value],
            weights: &[],
            statistics: &[],
        }
    }
}

/// A node with what is known of its inputs.
pub struct Call<'a> {
    pub node: &'a Node,
    pub inputs: &'a [Option<Value>],
    pub opset: i64,
}

impl<'a> Call<'a> {
    fn input(&self, index: usize) -> Option<&'a Value> {
        self.inputs.get(index)?.as_ref()
    }

    fn shape(&self, index: usize) -> Option<&'a Shape> {
        self.input(index)?.shape.as_ref()
    }

    /// Constant whole numbers.
    fn numbers(&self, index: usize) -> Option<Vec<i64>> {
        self.input(index)?.whole_numbers()
    }

    fn attribute(&self, name: &str) -> Option<&'a Attribute> {
        self.node.attributes.iter().find(|own| own.name == name)
    }

    fn int(&self, name: &str, otherwise: i64) -> i64 {
        self.attribute(name).map_or(otherwise, |own| own.int)
    }

    fn ints(&self, name: &str) -> Option<&'a [i64]> {
        self.attribute(name).map(|own| own.ints.as_slice())
    }

    fn text(&self, name: &str) -> &'a [u8] {
        self.attribute(name).map_or(&[], |own| &own.string)
    }

    /// A list that is an attribute in old files and an input in new ones.
    fn list(&self, attribute: &str, input: usize) -> Option<Vec<i64>> {
        match self.ints(attribute) {
            Some(ints) => Some(ints.to_vec()),
            None => self.numbers(input),
        }
    }
}

/// Numbers as messages show them.
fn listed<T: std::fmt::Debug>(numbers: &[T]) -> String {
    match numbers.get(..16) {
        Some(first) if numbers.len() > 16 => format!("{first:?} and {} more", numbers.len() - 16),
        _ => format!("{numbers:?}"),
    }
}

/// An axis counted from the front; negative ones come from the back.
fn axis(axis: i64, rank: usize) -> Result<usize, String> {
    let rank = rank as i64;
    match axis {
        _ if axis >= -rank && axis < rank => Ok(axis.rem_euclid(rank) as usize),
        _ => Err(format!("there is no axis {axis} in a tensor of {rank}")),
    }
}

/// What a node does; an error where it cannot be.
pub fn answer(call: &Call<'_>) -> Result<Answer, String> {
    let own = matches!(call.node.domain.as_str(), "" | "ai.onnx" | "com.microsoft");
    if !own {
        return Ok(Answer::Unknown);
    }
    let mut found = Answer::Unknown;
    for family in [
        windows::answer,
        products::answer,
        element_wise::answer,
        reduce::answer,
        layout::answer,
        constants::answer,
    ] {
        found = family(call)?;
        if !matches!(found, Answer::Unknown) {
            break;
        }
    }
    Ok(settled(call, found))
}

/// The weights that a constant is made of. Single numbers, indices and scales of quantised weights are part
/// of the operation.
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
    let all: BTreeSet<usize> = all.flatten().take(MOST_ORIGINS).copied().collect();
    Some(all.into_iter().collect())
}

/// Fills in what follows from the inputs alone: what is made of constants is one.
fn settled(call: &Call<'_>, answer: Answer) -> Answer {
    let Answer::Known {
        mut kind,
        mut outputs,
        weights,
        statistics,
    } = answer
    else {
        return answer;
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
    Answer::Known {
        kind,
        outputs,
        weights,
        statistics,
    }
}
