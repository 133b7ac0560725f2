//! From a file to a network.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;

use prost::Message;
use prost::bytes::Bytes;

use super::operators::{Answer, Call, answer};
use super::order::{called, order, short};
use super::proto::{Graph, Model, Node, ValueInfo};
use super::scan::scan;
use super::value::{Value, is_whole, of_tensor};
use super::weight_inputs::{main_input, weight_inputs};
use crate::{Layer, Network, NetworkError, Shape, Unknown};

/// What the caller knows that the file does not say.
#[derive(Clone, Debug, Default)]
pub struct OnnxOptions {
    /// Shapes of inputs, by name.
    pub inputs: Vec<(String, Shape)>,
}

/// Protocol buffers end at 2 GiB; larger models keep their weights in files of their own.
const MOST_BYTES: u64 = 1 << 31;
/// All constants together that shapes are computed from.
const MOST_NUMBERS: usize = 1 << 22;

/// A network from an ONNX file; its weights are not looked at, and may be missing.
pub fn read_onnx(path: &str, options: &OnnxOptions) -> Result<Network, NetworkError> {
    let wrong = |problem: String| NetworkError::File {
        file: path.to_owned(),
        problem,
    };
    let bytes = Bytes::from(bytes_of(path)?);
    scan(&bytes).map_err(wrong)?;
    let model = Model::decode(bytes)
        .map_err(|error| wrong(format!("it is damaged, or no ONNX model: {error}")))?;
    let graph = model.graph.unwrap_or_default();
    if graph.nodes.is_empty() {
        return Err(wrong("it is no ONNX model: it has no nodes".to_owned()));
    }
    let version = |own: &str| own.is_empty() || own == "ai.onnx";
    let opset = model.opsets.iter().find(|opset| version(&opset.domain));
    Reader {
        path,
        graph: &graph,
        opset: opset.map_or(1, |opset| opset.version),
        values: HashMap::new(),
        elements: Vec::new(),
        counted: HashSet::new(),
        numbers_left: MOST_NUMBERS,
        unknown: HashMap::new(),
        network: Network::default(),
    }
    .network(options)
}

fn bytes_of(path: &str) -> Result<Vec<u8>, NetworkError> {
    let unreadable = |reason: String| NetworkError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let about = file
        .metadata()
        .map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    if about.len() > MOST_BYTES {
        let much = "it is larger than 2 GiB, which no ONNX file may be; keep weights beside it";
        return Err(unreadable(much.to_owned()));
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    let read = file.take(MOST_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(error.to_string()))?;
    Ok(bytes)
}

struct Reader<'a> {
    path: &'a str,
    graph: &'a Graph,
    opset: i64,
    values: HashMap<&'a str, Value>,
    /// Elements of each weight of the file and then of each input, by the number that is their `origins`.
    elements: Vec<u64>,
    /// Weights that some layer has already.
    counted: HashSet<usize>,
    numbers_left: usize,
    /// Where each unknown operator is in the network's list.
    unknown: HashMap<String, usize>,
    network: Network,
}

impl<'a> Reader<'a> {
    fn network(mut self, options: &OnnxOptions) -> Result<Network, NetworkError> {
        self.weights()?;
        self.inputs(options)?;
        let values = &self.values;
        let order = order(self.graph, |name| values.contains_key(name));
        let order = order.map_err(|(node, problem)| self.at(node, problem))?;
        self.tell_weights_from_data(&order, options);
        let told: HashMap<&str, &ValueInfo> = self
            .graph
            .values
            .iter()
            .chain(&self.graph.outputs)
            .map(|info| (info.name.as_str(), info))
            .collect();
        for index in order {
            let node = &self.graph.nodes[index];
            self.node(node, &told)
                .map_err(|problem| self.at(called(node), problem))?;
        }
        let first = self.network.inputs.first();
        let batch = first.and_then(|(_, shape)| shape.sizes().first().copied());
        self.network.batch = batch.unwrap_or(1).max(1);
        let name = std::path::Path::new(self.path).file_stem();
        self.network.name = name.map_or_else(String::new, |name| name.to_string_lossy().into());
        self.network.title = self.network.name.clone();
        self.network.source = vec![self.path.to_owned()];
        Ok(self.network)
    }

    fn at(&self, node: String, problem: String) -> NetworkError {
        NetworkError::Node {
            file: self.path.to_owned(),
            node,
            problem,
        }
    }

    fn weights(&mut self) -> Result<(), NetworkError> {
        for (index, tensor) in self.graph.initializers.iter().enumerate() {
            let value = of_tensor(tensor, Some(index)).map_err(|problem| NetworkError::File {
                file: self.path.to_owned(),
                problem: format!("weight `{}`: {problem}", short(&tensor.name)),
            })?;
            let elements = value.shape.as_ref().map_or(0, Shape::elements);
            self.elements.push(elements);
            self.values.insert(&tensor.name, value);
        }
        Ok(())
    }

    /// Old files list their weights among the inputs, beside their values.
    fn inputs(&mut self, options: &OnnxOptions) -> Result<(), NetworkError> {
        let fresh = |info: &&ValueInfo| !self.values.contains_key(info.name.as_str());
        let inputs: Vec<&ValueInfo> = self.graph.inputs.iter().filter(fresh).collect();
        let strange = |(name, _): &&(String, Shape)| !inputs.iter().any(|info| info.name == *name);
        if let Some((name, _)) = options.inputs.iter().find(strange) {
            let names: Vec<_> = inputs
                .iter()
                .take(9)
                .map(|info| short(&info.name))
                .collect();
            return Err(NetworkError::Input {
                file: self.path.to_owned(),
                input: name.clone(),
                problem: format!("is not there; the inputs are {}", names.join(", ")),
            });
        }
        for info in inputs {
            let given = options.inputs.iter().find(|(name, _)| *name == info.name);
            let shape = match given {
                Some((_, shape)) => Ok(shape.clone()),
                None => input_shape(info),
            };
            let shape = shape.map_err(|problem| NetworkError::Input {
                file: self.path.to_owned(),
                input: short(&info.name),
                problem,
            })?;
            self.network.inputs.push((info.name.clone(), shape.clone()));
            let element = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
            self.values.insert(
                &info.name,
                Value {
                    whole: element.is_some_and(|tensor| is_whole(tensor.element)),
                    origins: Some([self.elements.len()].into()),
                    ..Value::of(shape.clone())
                },
            );
            self.elements.push(shape.elements());
        }
        Ok(())
    }

    /// Inputs that are weights become constants, and only the others stay inputs of the network. An input that
    /// the caller gave a shape, or that has an axis without a size, is data.
    fn tell_weights_from_data(&mut self, order: &[usize], options: &OnnxOptions) {
        let listed = std::mem::take(&mut self.network.inputs);
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
        let main = main_input(self.graph, &names);
        let Some((main_name, main_shape)) = listed.get(main) else {
            return;
        };
        let fixed: HashSet<&str> = self
            .graph
            .inputs
            .iter()
            .filter(|info| is_sized(info) && info.name != *main_name)
            .map(|info| info.name.as_str())
            .filter(|name| !options.inputs.iter().any(|(given, _)| given == name))
            .collect();
        let may_be_weight = |name: &str| {
            let value = self.values.get(name);
            fixed.contains(name) && value.is_some_and(|value| !value.whole)
        };
        let candidates: Vec<(&str, &Shape)> = listed
            .iter()
            .filter(|(name, _)| may_be_weight(name))
            .map(|(name, shape)| (name.as_str(), shape))
            .collect();
        let is_constant = |name: &str| self.values.get(name).is_some_and(|value| value.constant);
        let weights = weight_inputs(self.graph, order, &candidates, is_constant, main_shape);
        for name in &weights {
            if let Some(value) = self.values.get_mut(*name) {
                value.constant = true;
            }
        }
        let data = listed
            .iter()
            .filter(|(name, _)| !weights.contains(name.as_str()));
        self.network.inputs = data.cloned().collect();
    }

    fn node(&mut self, node: &'a Node, told: &HashMap<&str, &ValueInfo>) -> Result<(), String> {
        let none = Value::default();
        let inputs: Vec<Option<Value>> = node
            .inputs
            .iter()
            .map(|name| match name.as_str() {
                "" => None,
                name => Some(self.values.get(name).unwrap_or(&none).clone()),
            })
            .collect();
        let call = Call {
            node,
            inputs: &inputs,
            opset: self.opset,
        };
        let answer = answer(&call)?;
        let outputs = match answer {
            Answer::Known {
                kind,
                outputs,
                weights,
                statistics,
            } => {
                if let Some(kind) = kind {
                    self.layer(node, &inputs, kind, &outputs, (weights, statistics));
                }
                outputs
            }
            Answer::Shapeless => {
                self.network.shapeless.push(called(node));
                Vec::new()
            }
            Answer::Unknown => {
                self.unknown(node);
                Vec::new()
            }
        };
        let mut outputs = outputs.into_iter();
        for name in node.outputs.iter().filter(|name| !name.is_empty()) {
            let mut value = outputs.next().unwrap_or_default();
            let length = value.numbers.as_ref().map_or(0, |numbers| numbers.len());
            match self.numbers_left.checked_sub(length) {
                Some(left) => self.numbers_left = left,
                None => value.numbers = None,
            }
            // What the file itself says helps where an operator is not known.
            if value.shape.is_none()
                && let Some(info) = told.get(name.as_str())
            {
                value.shape = input_shape(info).ok();
            }
            self.values.insert(name, value);
        }
        Ok(())
    }

    fn unknown(&mut self, node: &Node) {
        let operator = match node.domain.as_str() {
            "" | "ai.onnx" => short(&node.operator),
            domain => short(&format!("{domain}.{}", node.operator)),
        };
        let next = self.network.unknown.len();
        let index = *self.unknown.entry(operator.clone()).or_insert(next);
        match self.network.unknown.get_mut(index) {
            Some(known) => known.nodes += 1,
            None => self.network.unknown.push(Unknown {
                operator,
                nodes: 1,
                first: called(node),
            }),
        }
    }

    /// Inputs that are weights are told apart from those that depend on the network's input.
    fn layer(
        &mut self,
        node: &Node,
        inputs: &[Option<Value>],
        kind: crate::Kind,
        outputs: &[Value],
        (positions, statistics): (&[usize], &[usize]),
    ) {
        let mut layer = Layer {
            name: match node.name.as_str() {
                "" => node.outputs.first().cloned().unwrap_or_default(),
                name => name.to_owned(),
            },
            kind,
            inputs: Vec::new(),
            outputs: outputs
                .iter()
                .filter_map(|value| value.shape.clone())
                .collect(),
            parameters: 0,
            weights: 0,
        };
        for (position, value) in inputs.iter().enumerate() {
            let Some((value, shape)) = value.as_ref().and_then(|v| Some((v, v.shape.as_ref()?)))
            else {
                continue;
            };
            let is_weight = positions.contains(&position) || value.constant;
            if !is_weight {
                layer.inputs.push(shape.clone());
                continue;
            }
            // Sizes, axes and single numbers are part of the operation.
            let is_tensor = !value.whole && shape.rank() > 0;
            let Some(origins) = value.origins.as_ref().filter(|_| is_tensor) else {
                continue;
            };
            layer.weights += shape.elements();
            if statistics.contains(&position) {
                continue;
            }
            for origin in origins.iter() {
                if self.counted.insert(*origin) {
                    let own = self.elements.get(*origin).copied();
                    layer.parameters += own.unwrap_or_else(|| shape.elements());
                }
            }
        }
        self.network.layers.push(layer);
    }
}

/// Whether the file gives every size of this input.
fn is_sized(info: &ValueInfo) -> bool {
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let sizes = tensor.and_then(|tensor| tensor.shape.as_ref());
    sizes.is_some_and(|sizes| {
        sizes
            .axes
            .iter()
            .all(|axis| axis.size.is_some_and(|size| size > 0))
    })
}

/// A first axis without a size is the batch, and taken as 1.
fn input_shape(info: &ValueInfo) -> Result<Shape, String> {
    let missing = "has no shape in the file: give one with --input NAME=1x3x224x224";
    let tensor = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
    let sizes = tensor.and_then(|tensor| tensor.shape.as_ref());
    let sizes = sizes.ok_or_else(|| missing.replace("NAME", &short(&info.name)))?;
    let mut known = Vec::with_capacity(sizes.axes.len().min(16));
    for (index, axis) in sizes.axes.iter().enumerate().take(17) {
        let size = axis.size.and_then(|size| u64::try_from(size).ok());
        match size.filter(|size| *size > 0) {
            Some(size) => known.push(size),
            None if index == 0 => known.push(1),
            None => {
                let symbol = short(axis.symbol.as_deref().unwrap_or("?"));
                return Err(format!(
                    "has no size for its axis {index} (`{symbol}`): give all of them with --input {}=...",
                    short(&info.name)
                ));
            }
        }
    }
    Shape::new(known)
}
