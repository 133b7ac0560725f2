//! Reads an ONNX file into a network.

mod inputs;

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;

use prost::Message;
use prost::bytes::Bytes;

use super::declared_shape::declared_shape;
use super::execution_order::{describe_node, execution_order, shorten};
use super::operators::{Call, NodeResult, infer};
use super::proto::{Graph, Model, Node, ValueInfo};
use super::scan::scan;
use super::value::{Value, value_from_tensor};
use crate::{Layer, Network, NetworkError, Shape, UnknownOperator};

/// Shapes that the caller supplies because the file lacks them.
#[derive(Clone, Debug, Default)]
pub struct OnnxOptions {
    /// The name and shape of each input whose shape the caller supplies.
    pub inputs: Vec<(String, Shape)>,
}

/// The size limit of protocol buffers, 2 GiB; larger models store their weights in separate files.
const MAX_BYTES: u64 = 1 << 31;
/// The limit on the number of constant elements, over the whole file, that are stored to compute shapes.
const MAX_NUMBERS: usize = 1 << 22;

/// Reads a network from an ONNX file. The values of weights are not used and may be missing.
pub fn read_onnx(path: &str, options: &OnnxOptions) -> Result<Network, NetworkError> {
    let invalid = |problem: String| NetworkError::File {
        file: path.to_owned(),
        problem,
    };
    let bytes = Bytes::from(read_file(path)?);
    scan(&bytes).map_err(invalid)?;
    let model = Model::decode(bytes)
        .map_err(|error| invalid(format!("it is damaged, or not an ONNX model: {error}")))?;
    let graph = model.graph.unwrap_or_default();
    if graph.nodes.is_empty() {
        return Err(invalid(
            "it is not an ONNX model: it has no nodes".to_owned(),
        ));
    }
    let version = |own: &str| own.is_empty() || own == "ai.onnx";
    let opset = model.opsets.iter().find(|opset| version(&opset.domain));
    Reader {
        path,
        graph: &graph,
        opset: opset.map_or(1, |opset| opset.version),
        values: HashMap::new(),
        elements: Vec::new(),
        names: Vec::new(),
        counted: HashSet::new(),
        numbers_left: MAX_NUMBERS,
        unknown: HashMap::new(),
        network: Network::default(),
    }
    .read(options)
}

/// Reads the bytes of a file, which must not be larger than protocol buffers allow.
fn read_file(path: &str) -> Result<Vec<u8>, NetworkError> {
    let unreadable = |reason: String| NetworkError::Unreadable {
        path: path.to_owned(),
        reason,
    };
    sweetspot_input::read_bytes(path, MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::FileTooLarge => unreadable(
            "it is larger than 2 GiB, the limit of ONNX files: store its weights in separate files"
                .to_owned(),
        ),
        _ => unreadable(error.to_string()),
    })
}

/// The state while the nodes of a file are turned into layers.
struct Reader<'a> {
    path: &'a str,
    graph: &'a Graph,
    opset: i64,
    values: HashMap<&'a str, Value>,
    /// The number of elements of each weight of the file, followed by those of each graph input.
    /// [`Value::origins`] has indices into this list.
    elements: Vec<u64>,
    /// The name of each of them.
    names: Vec<&'a str>,
    /// The weights (as indices into `elements`) that belong to a layer already, so they are not counted twice.
    counted: HashSet<usize>,
    numbers_left: usize,
    /// The index of each unknown operator in `network.unknown`.
    unknown: HashMap<String, usize>,
    network: Network,
}

impl<'a> Reader<'a> {
    /// Reads the weights, inputs and nodes, and returns the network.
    fn read(mut self, options: &OnnxOptions) -> Result<Network, NetworkError> {
        self.read_weights()?;
        self.read_inputs(options)?;
        let values = &self.values;
        let execution_order = execution_order(self.graph, |name| values.contains_key(name));
        let execution_order =
            execution_order.map_err(|(node, problem)| self.node_error(node, problem))?;
        self.separate_weight_inputs(&execution_order, options);
        let declared: HashMap<&str, &ValueInfo> = self
            .graph
            .values
            .iter()
            .chain(&self.graph.outputs)
            .map(|info| (info.name.as_str(), info))
            .collect();
        for index in execution_order {
            let node = &self.graph.nodes[index];
            self.add_node(node, &declared)
                .map_err(|problem| self.node_error(describe_node(node), problem))?;
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

    fn node_error(&self, node: String, problem: String) -> NetworkError {
        NetworkError::Node {
            file: self.path.to_owned(),
            node,
            problem,
        }
    }

    /// Reads the shapes of the weights that the file contains.
    fn read_weights(&mut self) -> Result<(), NetworkError> {
        for (index, tensor) in self.graph.initializers.iter().enumerate() {
            let value =
                value_from_tensor(tensor, Some(index)).map_err(|problem| NetworkError::File {
                    file: self.path.to_owned(),
                    problem: format!("weight `{}`: {problem}", shorten(&tensor.name)),
                })?;
            let elements = value.shape.as_ref().map_or(0, Shape::elements);
            self.elements.push(elements);
            self.names.push(&tensor.name);
            self.values.insert(&tensor.name, value);
        }
        Ok(())
    }

    /// Infers the outputs of a node, and adds a layer if the node computes something.
    fn add_node(
        &mut self,
        node: &'a Node,
        declared: &HashMap<&str, &ValueInfo>,
    ) -> Result<(), String> {
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
        let result = infer(&call)?;
        let outputs = match result {
            NodeResult::Known {
                kind,
                outputs,
                weights,
                statistics,
            } => {
                if let Some(kind) = kind {
                    reject_empty_product(&kind, &outputs)?;
                    self.add_layer(node, &inputs, kind, &outputs, (weights, statistics));
                }
                outputs
            }
            NodeResult::UnknownShape => {
                self.network.without_shape.push(describe_node(node));
                Vec::new()
            }
            NodeResult::Unknown => {
                self.add_unknown_operator(node, &inputs, declared);
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
            // If an operator is unknown, the shape that the file declares for its output is used.
            if value.shape.is_none()
                && let Some(info) = declared.get(name.as_str())
            {
                value.shape = declared_shape(info).ok();
            }
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// Records that the cost of the node's operator is unknown, and how much data the node has at least.
    fn add_unknown_operator(
        &mut self,
        node: &Node,
        inputs: &[Option<Value>],
        declared: &HashMap<&str, &ValueInfo>,
    ) {
        let operator = match node.domain.as_str() {
            "" | "ai.onnx" => shorten(&node.operator),
            domain => shorten(&format!("{domain}.{}", node.operator)),
        };
        let read = inputs.iter().flatten();
        let read = read.filter_map(|value| value.shape.as_ref().map(Shape::elements));
        let written = node.outputs.iter();
        let written = written.filter_map(|name| declared_shape(declared.get(name.as_str())?).ok());
        let elements = read.chain(written.map(|shape| shape.elements()));
        let elements = elements.fold(0, u64::saturating_add);
        let next = self.network.unknown.len();
        let index = *self.unknown.entry(operator.clone()).or_insert(next);
        match self.network.unknown.get_mut(index) {
            Some(known) => {
                known.nodes += 1;
                known.elements = known.elements.saturating_add(elements);
            }
            None => self.network.unknown.push(UnknownOperator {
                operator,
                nodes: 1,
                first: describe_node(node),
                elements,
            }),
        }
    }

    /// Adds a layer. Inputs that are weights are counted separately from those that depend on the network's
    /// input.
    fn add_layer(
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
            has_folded_normalisation: false,
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
            // Sizes, axes and single numbers are parameters of the operation, not weights.
            let is_tensor = !value.whole && shape.rank() > 0;
            let Some(origins) = value.origins.as_ref().filter(|_| is_tensor) else {
                continue;
            };
            layer.weights += shape.elements();
            if statistics.contains(&position) {
                continue;
            }
            let is_convolution = matches!(layer.kind, crate::Kind::Convolution(_));
            layer.has_folded_normalisation |= is_convolution && self.is_computed(origins);
            for origin in origins.iter() {
                if self.counted.insert(*origin) {
                    let own = self.elements.get(*origin).copied();
                    layer.parameters += own.unwrap_or_else(|| shape.elements());
                }
            }
        }
        self.network.layers.push(layer);
    }

    /// Whether weights have no name of their own: PyTorch's exporter names weights that it has computed, by folding a
    /// normalisation into them, after the node that uses them.
    fn is_computed(&self, origins: &[usize]) -> bool {
        let mut names = origins.iter().filter_map(|origin| self.names.get(*origin));
        names.any(|name| name.starts_with("onnx::Conv_"))
    }
}

/// Rejects a matrix product without a result, which only a damaged file has.
fn reject_empty_product(kind: &crate::Kind, outputs: &[Value]) -> Result<(), String> {
    let shapes = outputs.iter().filter_map(|value| value.shape.as_ref());
    let mut empty = shapes.filter(|shape| shape.elements() == 0);
    match empty.next() {
        Some(shape) if kind.multiplies_matrices() => {
            Err(format!("its output of shape {shape} has no elements"))
        }
        _ => Ok(()),
    }
}
