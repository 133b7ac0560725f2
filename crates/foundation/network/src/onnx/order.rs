//! Nodes in an order in which each has what it needs.

use std::collections::HashMap;

use super::proto::{Graph, Node};

/// A name as messages show it; nobody reads more of one.
pub fn short(name: &str) -> String {
    const MOST: usize = 120;
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name.to_owned(),
    }
}

/// What a node is called in messages: its name, or what it makes, and its operator.
pub fn called(node: &Node) -> String {
    let made = node.outputs.first().map_or("", String::as_str);
    let name = if node.name.is_empty() {
        made
    } else {
        &node.name
    };
    format!("`{}` ({})", short(name), short(&node.operator))
}

/// The nodes' numbers in such an order; files are mostly in it already. A node that waits for itself, or for
/// what nobody makes, is an error.
pub fn order(graph: &Graph, known: impl Fn(&str) -> bool) -> Result<Vec<usize>, (String, String)> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        for output in node.outputs.iter().filter(|output| !output.is_empty()) {
            if makers.insert(output, index).is_some() || known(output) {
                let problem = format!("`{}` is made twice", short(output));
                return Err((called(node), problem));
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
                    let problem = format!("nothing makes its input `{}`", short(input));
                    return Err((called(node), problem));
                }
            }
        }
    }
    // The lowest number first, so that a file in order stays as it is.
    let mut ready: std::collections::BTreeSet<usize> = (0..waiting.len())
        .filter(|index| waiting[*index] == 0)
        .collect();
    let mut order = Vec::with_capacity(waiting.len());
    while let Some(index) = ready.pop_first() {
        order.push(index);
        for follower in &followers[index] {
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                ready.insert(*follower);
            }
        }
    }
    let stuck = waiting.iter().position(|count| *count > 0);
    match stuck.filter(|_| order.len() < graph.nodes.len()) {
        Some(index) => {
            let problem = "it waits for its own output: the graph has a cycle";
            Err((called(&graph.nodes[index]), problem.to_owned()))
        }
        None => Ok(order),
    }
}
