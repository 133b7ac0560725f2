//! Reads an ONNX file into a network.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;

use prost::Message;
use prost::bytes::Bytes;

use super::declared_shape::{declared_shape, is_fully_sized};
use super::execution_order::{describe_node, execution_order, shorten};
use super::operators::{Call, NodeResult, infer};
use super::proto::{Graph, Model, Node, ValueInfo};
use super::scan::scan;
use super::value::{Value, is_whole, value_from_tensor};
use super::weight_inputs::{main_input, weight_inputs};
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
    let file = File::open(path).map_err(|error| unreadable(error.to_string()))?;
    let about = file
        .metadata()
        .map_err(|error| unreadable(error.to_string()))?;
    if !about.is_file() {
        return Err(unreadable("it is not a file".to_owned()));
    }
    if about.len() > MAX_BYTES {
        let problem =
            "it is larger than 2 GiB, the limit of ONNX files: store its weights in separate files";
        return Err(unreadable(problem.to_owned()));
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    let read = file.take(MAX_BYTES).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(error.to_string()))?;
    Ok(bytes)
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

    /// Reads the graph inputs. Old files list weights among the inputs too; those already read as weights are
    /// skipped.
    fn read_inputs(&mut self, options: &OnnxOptions) -> Result<(), NetworkError> {
        let fresh = |info: &&ValueInfo| !self.values.contains_key(info.name.as_str());
        let inputs: Vec<&ValueInfo> = self.graph.inputs.iter().filter(fresh).collect();
        let unknown_input =
            |(name, _): &&(String, Shape)| !inputs.iter().any(|info| info.name == *name);
        if let Some((name, _)) = options.inputs.iter().find(unknown_input) {
            let names: Vec<_> = inputs
                .iter()
                .take(9)
                .map(|info| shorten(&info.name))
                .collect();
            return Err(NetworkError::Input {
                file: self.path.to_owned(),
                input: name.clone(),
                problem: format!("does not exist; the inputs are {}", names.join(", ")),
            });
        }
        for info in inputs {
            let given = options.inputs.iter().find(|(name, _)| *name == info.name);
            let shape = match given {
                Some((_, shape)) => Ok(shape.clone()),
                None => declared_shape(info),
            };
            let shape = shape.map_err(|problem| NetworkError::Input {
                file: self.path.to_owned(),
                input: shorten(&info.name),
                problem,
            })?;
            self.network.inputs.push((info.name.clone(), shape.clone()));
            let element = info.kind.as_ref().and_then(|kind| kind.tensor.as_ref());
            self.values.insert(
                &info.name,
                Value {
                    whole: element.is_some_and(|tensor| is_whole(tensor.element)),
                    origins: Some([self.elements.len()].into()),
                    ..Value::with_shape(shape.clone())
                },
            );
            self.elements.push(shape.elements());
            self.names.push(&info.name);
        }
        Ok(())
    }

    /// Turns graph inputs that are weights into constants; the others stay inputs of the network. An input
    /// whose shape the caller supplied, or with an axis of unknown size, is never a weight.
    fn separate_weight_inputs(&mut self, execution_order: &[usize], options: &OnnxOptions) {
        let all_inputs = std::mem::take(&mut self.network.inputs);
        let names: Vec<&str> = all_inputs.iter().map(|(name, _)| name.as_str()).collect();
        let main = main_input(self.graph, &names);
        let Some((main_name, main_shape)) = all_inputs.get(main) else {
            return;
        };
        let fixed: HashSet<&str> = self
            .graph
            .inputs
            .iter()
            .filter(|info| is_fully_sized(info) && info.name != *main_name)
            .map(|info| info.name.as_str())
            .filter(|name| !options.inputs.iter().any(|(given, _)| given == name))
            .collect();
        let may_be_weight = |name: &str| {
            let value = self.values.get(name);
            fixed.contains(name) && value.is_some_and(|value| !value.whole)
        };
        let candidates: Vec<(&str, &Shape)> = all_inputs
            .iter()
            .filter(|(name, _)| may_be_weight(name))
            .map(|(name, shape)| (name.as_str(), shape))
            .collect();
        let is_constant = |name: &str| self.values.get(name).is_some_and(|value| value.constant);
        let weights = weight_inputs(
            self.graph,
            execution_order,
            &candidates,
            is_constant,
            main_shape,
        );
        for name in &weights {
            if let Some(value) = self.values.get_mut(*name) {
                value.constant = true;
            }
        }
        let data = all_inputs
            .iter()
            .filter(|(name, _)| !weights.contains(name.as_str()));
        self.network.inputs = data.cloned().collect();
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
                    self.add_layer(node, &inputs, kind, &outputs, (weights, statistics));
                }
                outputs
            }
            NodeResult::UnknownShape => {
                self.network.without_shape.push(describe_node(node));
                Vec::new()
            }
            NodeResult::Unknown => {
                self.add_unknown_operator(node);
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

    /// Records that the cost of the node's operator is unknown.
    fn add_unknown_operator(&mut self, node: &Node) {
        let operator = match node.domain.as_str() {
            "" | "ai.onnx" => shorten(&node.operator),
            domain => shorten(&format!("{domain}.{}", node.operator)),
        };
        let next = self.network.unknown.len();
        let index = *self.unknown.entry(operator.clone()).or_insert(next);
        match self.network.unknown.get_mut(index) {
            Some(known) => known.nodes += 1,
            None => self.network.unknown.push(UnknownOperator {
                operator,
                nodes: 1,
                first: describe_node(node),
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
