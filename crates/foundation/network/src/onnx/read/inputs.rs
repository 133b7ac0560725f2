//! The inputs of a graph: their shapes, and which of them are weights.

use std::collections::HashSet;

use super::super::declared_shape::{declared_shape, is_fully_sized, missing_sizes};
use super::super::execution_order::shorten;
use super::super::proto::ValueInfo;
use super::super::value::{Value, is_whole};
use super::super::weight_inputs::{main_input, weight_inputs};
use super::{OnnxOptions, Reader};
use crate::{MissingSizes, NetworkError, Shape};

/// The maximum number of inputs without sizes that a message names.
const MAX_NAMED: usize = 32;

impl OnnxOptions {
    /// The shape that the caller supplies for an input.
    fn shape_of(&self, input: &str) -> Option<&Shape> {
        let given = self.inputs.iter().find(|(name, _)| name == input);
        given.map(|(_, shape)| shape)
    }
}

impl<'a> Reader<'a> {
    /// Checks that the file or the caller gives the sizes of all inputs.
    fn reject_missing_sizes(
        &self,
        inputs: &[&ValueInfo],
        options: &OnnxOptions,
    ) -> Result<(), NetworkError> {
        let open = inputs
            .iter()
            .filter(|info| options.shape_of(&info.name).is_none());
        let missing = open.filter_map(|info| missing_sizes(info));
        let missing: Vec<MissingSizes> = missing.take(MAX_NAMED).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(NetworkError::MissingSizes {
                file: self.path.to_owned(),
                inputs: missing,
            }),
        }
    }

    /// Reads the graph inputs. Old files list weights among the inputs too; those already read as weights are
    /// skipped.
    pub fn read_inputs(&mut self, options: &OnnxOptions) -> Result<(), NetworkError> {
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
        self.reject_missing_sizes(&inputs, options)?;
        for info in inputs {
            let shape = match options.shape_of(&info.name) {
                Some(shape) => Ok(shape.clone()),
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
    pub fn separate_weight_inputs(&mut self, execution_order: &[usize], options: &OnnxOptions) {
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
}
