//! Statements become layers.

use std::collections::HashMap;

use super::arguments::number;
use super::tree::Statement;
use super::{Fault, layers};
use crate::{Kind, Layer, Shape};

/// No description makes more layers or calls deeper, so that a small file stays a small network.
const MOST_LAYERS: usize = 100_000;
const MOST_STEPS: usize = 1_000_000;
const DEEPEST: usize = 32;

type Words = HashMap<String, String>;

struct Builder<'a> {
    definitions: &'a HashMap<&'a str, &'a Statement>,
    layers: Vec<Layer>,
    current: Shape,
    kept: HashMap<String, Shape>,
    /// How often each name was given.
    given: HashMap<String, u64>,
    depth: usize,
    steps: usize,
}

/// All layers of the statements, from this input.
pub fn build(
    body: &[&Statement],
    definitions: &HashMap<&str, &Statement>,
    input: &Shape,
    settings: &Words,
) -> Result<Vec<Layer>, Fault> {
    let mut builder = Builder {
        definitions,
        layers: Vec::new(),
        current: input.clone(),
        kept: HashMap::new(),
        given: HashMap::new(),
        depth: 0,
        steps: 0,
    };
    builder.block(body.iter().copied(), settings, "")?;
    match builder.layers.is_empty() {
        true => Err((1, "there are no layers".to_owned())),
        false => Ok(builder.layers),
    }
}

impl Builder<'_> {
    fn block<'s>(
        &mut self,
        statements: impl Iterator<Item = &'s Statement>,
        words: &Words,
        scope: &str,
    ) -> Result<(), Fault> {
        // Where the branches begin, and where they ended.
        let mut fork: Option<Shape> = None;
        let mut ends: Vec<Shape> = Vec::new();
        let mut line = 1;
        for statement in statements {
            line = statement.line;
            statement.check().map_err(|problem| (line, problem))?;
            let said = filled(&statement.words, words).map_err(|problem| (line, problem))?;
            let word = said.first().map_or("", String::as_str);
            if word == "branch" {
                self.current = fork.get_or_insert_with(|| self.current.clone()).clone();
                self.block(statement.children.iter(), words, scope)?;
                ends.push(self.current.clone());
                continue;
            }
            let inputs = std::mem::take(&mut ends);
            fork = None;
            self.statement(statement, &said, inputs, words, scope)?;
        }
        match ends.is_empty() {
            true => Ok(()),
            false => Err((
                line,
                "branches end in `concat`, `add` or `multiply`".to_owned(),
            )),
        }
    }

    fn statement(
        &mut self,
        statement: &Statement,
        said: &[String],
        inputs: Vec<Shape>,
        words: &Words,
        scope: &str,
    ) -> Result<(), Fault> {
        let fault = |problem: String| (statement.line, problem);
        self.steps += 1;
        if self.layers.len() > MOST_LAYERS || self.steps > MOST_STEPS {
            return Err(fault(format!("this makes more than {MOST_LAYERS} layers")));
        }
        let word = said.first().map_or("", String::as_str);
        if !inputs.is_empty() && !matches!(word, "concat" | "add" | "multiply") {
            let problem = "branches end in `concat`, `add` or `multiply`";
            return Err(fault(problem.to_owned()));
        }
        match (word, said) {
            ("repeat", [_, times, rest @ ..]) => {
                let times = number(times).map_err(fault)?;
                for _ in 0..times {
                    if rest.is_empty() {
                        self.block(statement.children.iter(), words, scope)?;
                    } else {
                        self.statement(statement, rest, Vec::new(), words, scope)?;
                    }
                    if self.steps > MOST_STEPS {
                        return Err(fault("this repeats too much".to_owned()));
                    }
                    self.steps += 1;
                }
                Ok(())
            }
            ("keep", [_, name]) => {
                self.kept.insert(name.clone(), self.current.clone());
                Ok(())
            }
            ("take", [_, name]) => {
                self.current = self.named(name).map_err(fault)?;
                Ok(())
            }
            ("let", [_, name, of]) => {
                let shape = self.named(of).map_err(fault)?;
                self.kept.insert(name.clone(), shape);
                Ok(())
            }
            ("concat" | "add" | "multiply", _) => self.join(said, inputs, scope).map_err(fault),
            _ => match self.definitions.get(word).copied() {
                Some(definition) => self.call(definition, said, scope, statement.line),
                None => self.layer(said, scope).map_err(fault),
            },
        }
    }

    fn named(&self, name: &str) -> Result<Shape, String> {
        let shape = self.kept.get(name).cloned();
        shape.ok_or_else(|| format!("nothing was kept as `{name}`"))
    }

    fn join(&mut self, said: &[String], inputs: Vec<Shape>, scope: &str) -> Result<(), String> {
        let inputs = match said {
            [_] => inputs,
            [_, names @ ..] => names
                .iter()
                .map(|name| self.named(name))
                .collect::<Result<_, _>>()?,
            [] => Vec::new(),
        };
        let (kind, output) = layers::join(&said[0], &inputs)?;
        self.push(&said[0], scope, kind, inputs, output, 0);
        Ok(())
    }

    fn layer(&mut self, said: &[String], scope: &str) -> Result<(), String> {
        let input = self.current.clone();
        let made = layers::layer(said, &input)?;
        match made.kind {
            Some(kind) => self.push(
                &said[0],
                scope,
                kind,
                vec![input],
                made.output,
                made.parameters,
            ),
            None => self.current = made.output,
        }
        Ok(())
    }

    fn push(
        &mut self,
        word: &str,
        scope: &str,
        kind: Kind,
        inputs: Vec<Shape>,
        output: Shape,
        parameters: u64,
    ) {
        let name = self.name(word, scope);
        // Means and variances are read too, but nobody trains them.
        let statistics = match kind {
            Kind::BatchNormalisation => parameters,
            _ => 0,
        };
        self.current = output.clone();
        self.layers.push(Layer {
            name,
            kind,
            inputs,
            outputs: vec![output],
            parameters,
            weights: parameters + statistics,
        });
    }

    fn name(&mut self, word: &str, scope: &str) -> String {
        let name = format!("{scope}{word}");
        let times = self.given.entry(name.clone()).or_default();
        *times += 1;
        format!("{name}{times}")
    }

    /// A definition with its words filled in; its layers are named after it.
    fn call(
        &mut self,
        definition: &Statement,
        said: &[String],
        scope: &str,
        line: usize,
    ) -> Result<(), Fault> {
        let words = bound(definition, said).map_err(|problem| (line, problem))?;
        if self.depth >= DEEPEST {
            return Err((line, format!("`{}` calls itself", said[0])));
        }
        self.depth += 1;
        let scope = self.name(&said[0], scope) + ".";
        self.block(definition.children.iter(), &words, &scope)?;
        self.depth -= 1;
        Ok(())
    }
}

/// What the words of a definition stand for in a call: in order, by name, or as it says itself.
fn bound(definition: &Statement, said: &[String]) -> Result<Words, String> {
    let parameters = definition.words.get(2..).unwrap_or_default();
    let split = |word: &'_ String| match word.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (word.clone(), None),
    };
    let parameters: Vec<_> = parameters.iter().map(split).collect();
    let mut words: Words = parameters
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.clone()?)))
        .collect();
    let mut positions = parameters.iter().map(|(name, _)| name);
    for word in &said[1..] {
        let pair = word.split_once('=');
        match pair.filter(|(name, _)| parameters.iter().any(|(known, _)| known == name)) {
            Some((name, value)) => words.insert(name.to_owned(), value.to_owned()),
            None => match positions.next() {
                Some(name) => words.insert(name.clone(), word.clone()),
                None => return Err(format!("`{}` does not take `{word}`", said[0])),
            },
        };
    }
    match parameters
        .iter()
        .find(|(name, _)| !words.contains_key(name))
    {
        Some((name, _)) => Err(format!("`{}` needs `{name}`", said[0])),
        None => Ok(words),
    }
}

/// `{name}` in a word is what the name stands for.
fn filled(words: &[String], values: &Words) -> Result<Vec<String>, String> {
    let fill = |word: &String| {
        let mut done = String::new();
        let mut rest = word.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| format!("`{word}` has a `{{` without its `}}`"))?;
            let value = values.get(name);
            let value = value.ok_or_else(|| format!("`{name}` stands for nothing here"))?;
            done = done + before + value;
            rest = after;
        }
        Ok(done + rest)
    };
    words.iter().map(fill).collect()
}
