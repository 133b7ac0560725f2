//! Networks as text: one statement per line, blocks by indentation. `docs/reference/network.md` describes the language.

mod arguments;
mod build;
mod layers;
mod transformer;
mod tree;

use std::collections::HashMap;

use crate::{Layer, Network, NetworkError, Shape, Variant};

use tree::Statement;

/// A line number and its problem.
type LineError = (usize, String);

/// Reads a network from its description.
pub fn parse(name: &str, text: &str) -> Result<Network, NetworkError> {
    read(name, text, None).map_err(|(line, problem)| NetworkError::Line {
        file: name.to_owned(),
        line,
        problem,
    })
}

/// The name of the only input of a description.
const INPUT: &str = "input";

/// Reads a network from its description, for inputs of other sizes than the description's. A shape is written without the
/// batch, as in the description, or with a batch of one.
pub fn parse_with_inputs(
    name: &str,
    text: &str,
    inputs: &[(String, Shape)],
) -> Result<Network, NetworkError> {
    let network = parse(name, text)?;
    let Some((given_name, shape)) = inputs.last() else {
        return Ok(network);
    };
    let rejected = |problem: String| NetworkError::InputSize {
        network: name.to_owned(),
        input: format!("{given_name}={shape}"),
        problem,
    };
    if given_name != INPUT {
        return Err(rejected(format!("its only input is `{INPUT}`")));
    }
    if inputs.len() > 1 {
        return Err(rejected("it is given more than once".to_owned()));
    }
    let own = network
        .inputs
        .first()
        .map_or(&[][..], |(_, own)| own.sizes());
    let mut sizes = shape.sizes().to_vec();
    if sizes.len() + 1 == own.len() {
        sizes.insert(0, 1);
    }
    if sizes.len() != own.len() || sizes.first() != Some(&1) {
        let item: Vec<String> = own.iter().skip(1).map(u64::to_string).collect();
        return Err(rejected(format!(
            "it has the form {INPUT}={}, without the batch",
            item.join("x")
        )));
    }
    let sizes = Shape::new(sizes).map_err(rejected)?;
    read(name, text, Some(sizes))
        .map_err(|(line, problem)| rejected(format!("{problem} (line {line} of its description)")))
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

/// Reads a description, for its own input or another one; the error has the number of its line.
fn read(name: &str, text: &str, other_input: Option<Shape>) -> Result<Network, LineError> {
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
    let Some(input) = other_input.or(head.input.clone()) else {
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
    network.inputs = vec![(INPUT.to_owned(), input)];
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
