//! Builds layers from statements.

use std::collections::HashMap;

use super::arguments::{Arguments, number};
use super::layers::{self, ParsedLayer};
use super::tree::Statement;
use super::{LineError, transformer};
use crate::{Layer, Shape};

/// The maximum number of layers. Without such limits a small file could produce an enormous network.
const MAX_LAYERS: usize = 100_000;
/// The maximum number of statements executed, repetitions included.
const MAX_STEPS: usize = 1_000_000;
/// The maximum depth of nested calls.
const MAX_DEPTH: usize = 32;

/// What is wrong if nothing joins the branches.
const UNJOINED_BRANCHES: &str =
    "branches must be followed by `concat`, `add`, `multiply` or `attention`";

/// The values of variables by name.
type Variables = HashMap<String, String>;

/// The state while statements are turned into layers.
struct Builder<'a> {
    definitions: &'a HashMap<&'a str, &'a Statement>,
    layers: Vec<Layer>,
    current: Shape,
    saved_shapes: HashMap<String, Shape>,
    /// How often each layer name was used, to make names unique.
    name_counts: HashMap<String, u64>,
    depth: usize,
    steps: usize,
}

/// Builds the layers that the statements describe, for an input of this shape.
pub fn build(
    body: &[&Statement],
    definitions: &HashMap<&str, &Statement>,
    input: &Shape,
    settings: &Variables,
) -> Result<Vec<Layer>, LineError> {
    let mut builder = Builder {
        definitions,
        layers: Vec::new(),
        current: input.clone(),
        saved_shapes: HashMap::new(),
        name_counts: HashMap::new(),
        depth: 0,
        steps: 0,
    };
    builder.run_block(body.iter().copied(), settings, "")?;
    match builder.layers.is_empty() {
        true => Err((1, "the description has no layers".to_owned())),
        false => Ok(builder.layers),
    }
}

impl Builder<'_> {
    /// Executes a block of statements; `scope` is the prefix of the layers' names.
    fn run_block<'s>(
        &mut self,
        statements: impl Iterator<Item = &'s Statement>,
        variables: &Variables,
        scope: &str,
    ) -> Result<(), LineError> {
        // The shape where the branches begin, and the shapes where they end.
        let mut fork: Option<Shape> = None;
        let mut ends: Vec<Shape> = Vec::new();
        let mut line = 1;
        for statement in statements {
            line = statement.line;
            statement.check().map_err(|problem| (line, problem))?;
            let words =
                substitute(&statement.words, variables).map_err(|problem| (line, problem))?;
            let word = words.first().map_or("", String::as_str);
            if word == "branch" {
                self.current = fork.get_or_insert_with(|| self.current.clone()).clone();
                self.run_block(statement.children.iter(), variables, scope)?;
                ends.push(self.current.clone());
                continue;
            }
            let inputs = std::mem::take(&mut ends);
            fork = None;
            self.run_statement(statement, &words, inputs, variables, scope)?;
        }
        match ends.is_empty() {
            true => Ok(()),
            false => Err((line, UNJOINED_BRANCHES.to_owned())),
        }
    }

    /// Executes one statement on the tensors `inputs`.
    fn run_statement(
        &mut self,
        statement: &Statement,
        words: &[String],
        inputs: Vec<Shape>,
        variables: &Variables,
        scope: &str,
    ) -> Result<(), LineError> {
        let fault = |problem: String| (statement.line, problem);
        self.steps += 1;
        if self.layers.len() > MAX_LAYERS || self.steps > MAX_STEPS {
            return Err(fault(format!("this makes more than {MAX_LAYERS} layers")));
        }
        let word = words.first().map_or("", String::as_str);
        if !inputs.is_empty() && !matches!(word, "concat" | "add" | "multiply" | "attention") {
            return Err(fault(UNJOINED_BRANCHES.to_owned()));
        }
        match (word, words) {
            ("repeat", [_, times, rest @ ..]) => {
                let times = number(times).map_err(fault)?;
                for _ in 0..times {
                    if rest.is_empty() {
                        self.run_block(statement.children.iter(), variables, scope)?;
                    } else {
                        self.run_statement(statement, rest, Vec::new(), variables, scope)?;
                    }
                    if self.steps > MAX_STEPS {
                        return Err(fault("too many repetitions".to_owned()));
                    }
                    self.steps += 1;
                }
                Ok(())
            }
            ("keep", [_, name]) => {
                self.saved_shapes.insert(name.clone(), self.current.clone());
                Ok(())
            }
            ("take", [_, name]) => {
                self.current = self.saved_shape(name).map_err(fault)?;
                Ok(())
            }
            ("let", [_, name, of]) => {
                let shape = self.saved_shape(of).map_err(fault)?;
                self.saved_shapes.insert(name.clone(), shape);
                Ok(())
            }
            ("concat" | "add" | "multiply", _) => self.join(words, inputs, scope).map_err(fault),
            _ => match self.definitions.get(word).copied() {
                Some(definition) => self.call(definition, words, scope, statement.line),
                None if word == "attention" => self.attend(words, inputs, scope).map_err(fault),
                None => self.layer(words, scope).map_err(fault),
            },
        }
    }

    /// The shape of a tensor that an earlier line saved with `keep`.
    fn saved_shape(&self, name: &str) -> Result<Shape, String> {
        let shape = self.saved_shapes.get(name).cloned();
        shape.ok_or_else(|| {
            format!(
                "there is no saved tensor `{name}`: save one with `keep {name}` on an earlier line"
            )
        })
    }

    /// Adds a layer that joins several tensors: `concat`, `add` or `multiply`.
    fn join(&mut self, words: &[String], inputs: Vec<Shape>, scope: &str) -> Result<(), String> {
        let inputs = match words {
            [_] => inputs,
            [_, names @ ..] => names
                .iter()
                .map(|name| self.saved_shape(name))
                .collect::<Result<_, _>>()?,
            [] => Vec::new(),
        };
        let (kind, output) = layers::join(&words[0], &inputs)?;
        self.push(&words[0], scope, inputs, ParsedLayer::new(kind, output, 0));
        Ok(())
    }

    /// Adds attention over the tensors that are named, that branches made, or that the present one has side by side.
    fn attend(
        &mut self,
        words: &[String],
        branches: Vec<Shape>,
        scope: &str,
    ) -> Result<(), String> {
        let (options, names): (Vec<String>, Vec<String>) = words[1..]
            .iter()
            .cloned()
            .partition(|word| word.contains('='));
        let named = names.iter().map(|name| self.saved_shape(name));
        let named: Vec<Shape> = named.collect::<Result<_, _>>()?;
        let inputs = match (named.is_empty(), branches.is_empty()) {
            (false, _) => named,
            (true, false) => branches,
            (true, true) => vec![self.current.clone()],
        };
        let options: Vec<String> = std::iter::once(words[0].clone()).chain(options).collect();
        let mut arguments = Arguments::new(&options);
        let (kind, output) = transformer::attention(&mut arguments, &inputs)?;
        arguments.finish()?;
        self.push(&words[0], scope, inputs, ParsedLayer::new(kind, output, 0));
        Ok(())
    }

    /// Adds the layer that an operation with one input describes.
    fn layer(&mut self, words: &[String], scope: &str) -> Result<(), String> {
        let input = self.current.clone();
        let parsed = layers::layer(words, &input)?;
        self.push(&words[0], scope, vec![input], parsed);
        Ok(())
    }

    /// Makes the output of an operation the present tensor, and appends a layer to the network unless the operation only
    /// looks at its data in another shape.
    fn push(&mut self, word: &str, scope: &str, inputs: Vec<Shape>, parsed: ParsedLayer) {
        self.current = parsed.output.clone();
        let Some(kind) = parsed.kind else {
            return;
        };
        let name = self.name(word, scope);
        self.layers.push(Layer {
            name,
            kind,
            inputs,
            outputs: vec![parsed.output],
            parameters: parsed.parameters,
            weights: parsed.weights,
            has_folded_normalisation: false,
        });
    }

    /// A unique name for a layer, made from its operation.
    fn name(&mut self, word: &str, scope: &str) -> String {
        let name = format!("{scope}{word}");
        let times = self.name_counts.entry(name.clone()).or_default();
        *times += 1;
        format!("{name}{times}")
    }

    /// Builds the layers of a definition with the arguments of a call. The layers' names begin with that of the
    /// definition.
    fn call(
        &mut self,
        definition: &Statement,
        words: &[String],
        scope: &str,
        line: usize,
    ) -> Result<(), LineError> {
        let variables = bind_parameters(definition, words).map_err(|problem| (line, problem))?;
        if self.depth >= MAX_DEPTH {
            return Err((
                line,
                format!("`{}` calls itself or is nested too deep", words[0]),
            ));
        }
        self.depth += 1;
        let scope = self.name(&words[0], scope) + ".";
        self.run_block(definition.children.iter(), &variables, &scope)?;
        self.depth -= 1;
        Ok(())
    }
}

/// Assigns a value to each parameter of a definition: by position, by name, or its default.
fn bind_parameters(definition: &Statement, words: &[String]) -> Result<Variables, String> {
    let parameters = definition.words.get(2..).unwrap_or_default();
    let split = |word: &'_ String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word.clone(), None),
    };
    let parameters: Vec<_> = parameters.iter().map(split).collect();
    let mut variables: Variables = parameters
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    let mut positions = parameters.iter().map(|(name, _)| name);
    for word in &words[1..] {
        let pair = word.split_once('=');
        match pair.filter(|(name, _)| parameters.iter().any(|(known, _)| known == name)) {
            Some((name, value)) => variables.insert(name.to_owned(), value.to_owned()),
            None => match positions.next() {
                Some(name) => variables.insert(name.clone(), word.clone()),
                None => return Err(format!("`{}` does not take `{word}`", words[0])),
            },
        };
    }
    match parameters
        .iter()
        .find(|(name, _)| !variables.contains_key(name))
    {
        Some((name, _)) => Err(format!("`{}` needs `{name}`", words[0])),
        None => Ok(variables),
    }
}

/// Replaces each `{name}` in a word by the variable's value.
fn substitute(words: &[String], variables: &Variables) -> Result<Vec<String>, String> {
    let fill = |word: &String| {
        let mut done = String::new();
        let mut rest = word.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`{word}` has a `{{` without its `}}`"))?;
            let value = variables.get(name);
            let value = value.ok_or_else(|| format!("unknown variable `{name}`"))?;
            done = done + before + value;
            rest = after;
        }
        Ok(done + rest)
    };
    words.iter().map(fill).collect()
}
