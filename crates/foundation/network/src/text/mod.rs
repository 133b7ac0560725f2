//! Networks as text: one statement per line, blocks by indentation. `docs/network.md` describes the language.

mod arguments;
mod build;
mod layers;
mod tree;

use std::collections::HashMap;

use crate::{Layer, Network, NetworkError, Shape, Variant};

use tree::Statement;

/// A line number and its problem.
type LineError = (usize, String);

/// Reads a network from its description.
pub fn parse(name: &str, text: &str) -> Result<Network, NetworkError> {
    read(name, text).map_err(|(line, problem)| NetworkError::Line {
        file: name.to_owned(),
        line,
        problem,
    })
}

/// The statements of a description, grouped by purpose.
#[derive(Default)]
struct Head<'a> {
    input: Option<Shape>,
    settings: HashMap<String, String>,
    variants: Vec<(&'a Statement, HashMap<String, String>, String)>,
    definitions: HashMap<&'a str, &'a Statement>,
    body: Vec<&'a Statement>,
}

/// Reads a description; the error has the number of its line.
fn read(name: &str, text: &str) -> Result<Network, LineError> {
    let statements = tree::tree(text)?;
    let mut network = Network {
        name: name.to_owned(),
        title: name.to_owned(),
        batch: 1,
        ..Network::default()
    };
    let mut head = Head::default();
    for statement in &statements {
        read_statement(&mut network, &mut head, statement)
            .map_err(|problem| (statement.line, problem))?;
    }
    let Some(input) = head.input.clone() else {
        return Err((1, "there is no `input`, as in `input 3x224x224`".to_owned()));
    };
    network.layers = layers(&head, &input, &head.settings)?;
    for (_, changed, about) in &head.variants {
        let mut settings = head.settings.clone();
        settings.extend(changed.clone());
        network.variants.push(Variant {
            about: about.clone(),
            layers: layers(&head, &input, &settings)?,
        });
    }
    network.inputs = vec![("input".to_owned(), input)];
    Ok(network)
}

/// Builds the layers, with the values of variables in `settings`.
fn layers(
    head: &Head<'_>,
    input: &Shape,
    settings: &HashMap<String, String>,
) -> Result<Vec<Layer>, LineError> {
    build::build(&head.body, &head.definitions, input, settings)
}

/// Sorts one statement into the network's properties or into `head`.
fn read_statement<'a>(
    network: &mut Network,
    head: &mut Head<'a>,
    statement: &'a Statement,
) -> Result<(), String> {
    statement.check()?;
    let (word, rest) = statement.words.split_first().ok_or("an empty statement")?;
    let line = rest.join(" ");
    let number = || -> Result<Option<f64>, String> {
        let number = line
            .parse()
            .map_err(|_| format!("`{line}` is not a number"))?;
        Ok(Some(number))
    };
    match word.as_str() {
        "title" => network.title = line,
        "source" => network.source.push(line),
        "note" => network.notes.push(line),
        "parameters" => network.published_parameters = number()?,
        "macs" => network.published_macs = number()?,
        "input" => {
            let shape: Shape = format!("1x{line}").parse()?;
            head.input = Some(shape);
        }
        "set" => match rest {
            [key, value] => {
                head.settings.insert(key.clone(), value.clone());
            }
            _ => return Err("`set` needs a name and a value".to_owned()),
        },
        "variant" => {
            let (settings, about) = line
                .split_once(": ")
                .ok_or("`variant` must be written as `variant NAME=VALUE ...: DESCRIPTION`")?;
            let mut changed = HashMap::new();
            for pair in settings.split_whitespace() {
                let (key, value) = pair
                    .split_once('=')
                    .filter(|(key, _)| head.settings.contains_key(*key))
                    .ok_or_else(|| format!("`{pair}` changes a name that no `set` line defines"))?;
                changed.insert(key.to_owned(), value.to_owned());
            }
            head.variants.push((statement, changed, about.to_owned()));
        }
        "def" => {
            let name = rest.first().ok_or("`def` needs a name")?;
            if head.definitions.insert(name, statement).is_some() {
                return Err(format!("`{name}` is defined twice"));
            }
        }
        _ => head.body.push(statement),
    }
    Ok(())
}
