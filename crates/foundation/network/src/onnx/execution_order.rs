//! Sorts the nodes of a graph into an order in which they can be executed.

use std::collections::HashMap;

use super::proto::{Graph, Node};

/// Shortens a name for messages.
pub fn shorten(name: &str) -> String {
    const MAX_NAME_LENGTH: usize = 120;
    match name.char_indices().nth(MAX_NAME_LENGTH) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// Describes a node in messages: its name, or that of its output, and its operator.
pub fn describe_node(node: &Node) -> String {
    let made = node.outputs.first().map_or("", String::as_str);
    let name = if node.name.is_empty() {
        made
    } else {
        &node.name
    };
    format!("`{}` ({})", shorten(name), shorten(&node.operator))
}

/// The indices of the nodes, sorted so that every node comes after those that produce its inputs. A cycle, or
/// an input that no node produces, is an error.
pub fn execution_order(
    graph: &Graph,
    known: impl Fn(&str) -> bool,
) -> Result<Vec<usize>, (String, String)> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|output| !output.is_empty()) {
            if makers.insert(output, index).is_some() || known(output) {
                let problem = format!("two nodes produce `{}`", shorten(output));
                return Err((describe_node(node), problem));
            }
        }
    }
    let mut waiting = vec![0usize; graph.nodes.len()];
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); graph.nodes.len()];
    for (index, node) in graph.nodes.iter().enumerate() {
        for input in node.inputs.iter().filter(|input| !input.is_empty()) {
            match makers.get(input.as_str()) {
                Some(maker) => {
                    followers[*maker].push(index);
                    waiting[index] += 1;
                }
                None if known(input) => {}
                None => {
                    let problem = format!("no node produces its input `{}`", shorten(input));
                    return Err((describe_node(node), problem));
                }
            }
        }
    }
    // The lowest index comes first, so a file that is already sorted stays as it is.
    let mut ready: std::collections::BTreeSet<usize> = (0..waiting.len())
        .filter(|index| waiting[*index] == 0)
        .collect();
    let mut execution_order = Vec::with_capacity(waiting.len());
    while let Some(index) = ready.pop_first() {
        execution_order.push(index);
        for follower in &followers[index] {
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                ready.insert(*follower);
            }
        }
    }
    let stuck = waiting.iter().position(|count| *count > 0);
    match stuck.filter(|_| execution_order.len() < graph.nodes.len()) {
        Some(index) => {
            let problem = "it waits for its own output: the graph has a cycle";
            Err((describe_node(&graph.nodes[index]), problem.to_owned()))
        }
        None => Ok(execution_order),
    }
}
