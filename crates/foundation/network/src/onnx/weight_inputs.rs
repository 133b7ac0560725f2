//! Separates weights from data among the inputs of a graph.
//!
//! Exporters can list weights as inputs, with shapes only. Nothing in the file marks them: an input is a weight
//! if it is used like one and never like data.

use std::collections::{HashMap, HashSet};

use super::proto::{Graph, Node};
use crate::Shape;

/// The indices of an operator's inputs that are weights. `Gather` is handled elsewhere, because its table is a
/// weight only if its indices are data.
fn weight_positions(operator: &str) -> &'static [usize] {
    match operator {
        "Conv" | "ConvTranspose" | "Gemm" => &[1, 2],
        "MatMul" | "PRelu" => &[1],
        "BatchNormalization" => &[1, 2, 3, 4],
        "LayerNormalization"
        | "SimplifiedLayerNormalization"
        | "RMSNormalization"
        | "InstanceNormalization"
        | "GroupNormalization" => &[1, 2],
        _ => &[],
    }
}

/// The index of the network's main input: the first that no operator uses as a weight, because files list data
/// first.
pub fn main_input(graph: &Graph, inputs: &[&str]) -> usize {
    let names: HashSet<&str> = inputs.iter().copied().collect();
    let mut weights: HashSet<&str> = HashSet::new();
    for node in &graph.nodes {
        let input = |position: usize| node.inputs.get(position).map(String::as_str);
        weights.extend(
            weight_positions(&node.operator)
                .iter()
                .filter_map(|at| input(*at)),
        );
        // An embedding looks up rows of a table by an input.
        if node.operator == "Gather" && input(1).is_some_and(|ids| names.contains(ids)) {
            weights.extend(input(0));
        }
    }
    let main = inputs.iter().position(|name| !weights.contains(name));
    main.unwrap_or(0)
}

/// The `candidates` that are weights. `order` is an execution order of the nodes; `main` is the shape of the
/// network's input; every name that is neither a candidate nor in `constants` is data.
pub fn weight_inputs<'a>(
    graph: &'a Graph,
    order: &[usize],
    candidates: &[(&'a str, &Shape)],
    is_constant: impl Fn(&str) -> bool,
    main: &Shape,
) -> HashSet<&'a str> {
    let mut finder = Finder {
        roles: HashMap::new(),
        groups: Vec::with_capacity(candidates.len()),
        batch: main.sizes().first().copied().unwrap_or(1),
        is_constant,
    };
    for (index, (name, shape)) in candidates.iter().enumerate() {
        finder.roles.insert(name, Role::Candidate(index));
        finder.groups.push(Group {
            parent: index,
            used_as_weight: false,
            used_as_data: false,
            rank: shape.rank(),
            first_size: shape.sizes().first().copied(),
        });
    }
    for index in order {
        finder.visit(&graph.nodes[*index]);
    }
    let groups: Vec<Group> = (0..candidates.len())
        .map(|index| {
            let group = finder.group_of(index);
            finder.groups[group]
        })
        .collect();
    let mut sure = groups.iter();
    let has_weights = sure.any(|group| group.used_as_weight && !group.used_as_data);
    let is_weight = |(candidate, group): &(&(&'a str, &Shape), &Group)| {
        // Biases and position tables are added like data; they count in files that list weights as inputs.
        let shape = candidate.1;
        let is_like_main = shape.rank() > 1
            && (shape == main || finder.batch > 1 && group.first_size == Some(finder.batch));
        !group.used_as_data && (group.used_as_weight || has_weights && !is_like_main)
    };
    let weights = candidates.iter().zip(&groups).filter(is_weight);
    weights.map(|((name, _), _)| *name).collect()
}

/// Which graph inputs a tensor depends on.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// The tensor depends on no graph input.
    Constant,
    /// The tensor depends only on graph inputs of the group with this index, which may be weights.
    Candidate(usize),
    /// The tensor depends on the network's data.
    Data,
}

/// Graph inputs that are combined with each other before anything else, such as the two parts of a normalised
/// weight. Either all of them are weights, or all are data.
#[derive(Clone, Copy)]
struct Group {
    /// The group that this one was merged into, or its own index.
    parent: usize,
    used_as_weight: bool,
    used_as_data: bool,
    rank: usize,
    first_size: Option<u64>,
}

/// Finds the weights among the graph inputs by following their use from node to node.
struct Finder<'a, F> {
    roles: HashMap<&'a str, Role>,
    groups: Vec<Group>,
    /// The batch size of the network's input.
    batch: u64,
    is_constant: F,
}

impl<'a, F: Fn(&str) -> bool> Finder<'a, F> {
    /// Records how a node uses its inputs, and the role of its outputs.
    fn visit(&mut self, node: &'a Node) {
        let roles: Vec<Role> = node.inputs.iter().map(|name| self.role(name)).collect();
        let output = match node.operator.as_str() {
            "Constant" | "Shape" | "Size" | "ConstantOfShape" | "Range" => Role::Constant,
            "Attention" => {
                roles.iter().for_each(|role| self.mark_data(*role));
                Role::Data
            }
            "Gather" => {
                if let [table, Role::Data, ..] = roles[..] {
                    self.mark_weight(table);
                }
                self.combine(&roles)
            }
            operator => match weight_positions(operator) {
                [] => self.combine(&roles),
                positions => {
                    self.visit_weighted(operator, &roles, positions);
                    Role::Data
                }
            },
        };
        for name in &node.outputs {
            self.roles.insert(name, output);
        }
    }

    /// Marks the inputs of an operator that are weights or data by their position.
    fn visit_weighted(&mut self, operator: &str, roles: &[Role], positions: &[usize]) {
        let is_product = operator == "MatMul";
        // The left factor of a product may be the weight, if the right one is data.
        let left_is_data = !is_product || matches!(roles.get(1), Some(Role::Candidate(_)));
        if let Some(first) = roles.first().filter(|_| left_is_data) {
            self.mark_data(*first);
        }
        for role in positions.iter().filter_map(|position| roles.get(*position)) {
            let Role::Candidate(index) = role else {
                continue;
            };
            let group = self.group_of(*index);
            let group = self.groups[group];
            // Matrices with their own batch are factors of attention.
            match is_product && group.rank > 2 {
                true if group.first_size == Some(self.batch) => self.mark_data(*role),
                true => {}
                false => self.mark_weight(*role),
            }
        }
    }

    /// The role of a tensor, by its name.
    fn role(&self, name: &str) -> Role {
        match self.roles.get(name) {
            Some(role) => *role,
            None if name.is_empty() || (self.is_constant)(name) => Role::Constant,
            None => Role::Data,
        }
    }

    /// The role of a tensor that is computed from tensors with these roles.
    fn combine(&mut self, roles: &[Role]) -> Role {
        if roles.contains(&Role::Data) {
            return Role::Data;
        }
        let mut combined = Role::Constant;
        for role in roles {
            combined = match (combined, *role) {
                (Role::Candidate(a), Role::Candidate(b)) => Role::Candidate(self.merge(a, b)),
                (Role::Constant, other) => other,
                (known, _) => known,
            };
        }
        combined
    }

    /// Merges two groups and returns the index of the result.
    fn merge(&mut self, a: usize, b: usize) -> usize {
        let (a, b) = (self.group_of(a), self.group_of(b));
        let other = self.groups[b];
        self.groups[b].parent = a;
        let group = &mut self.groups[a];
        group.used_as_weight |= other.used_as_weight;
        group.used_as_data |= other.used_as_data;
        group.rank = group.rank.max(other.rank);
        a
    }

    /// The index of the group into which a group was merged.
    fn group_of(&mut self, mut index: usize) -> usize {
        while self.groups[index].parent != index {
            let above = self.groups[index].parent;
            self.groups[index].parent = self.groups[above].parent;
            index = above;
        }
        index
    }

    fn mark_weight(&mut self, role: Role) {
        if let Role::Candidate(index) = role {
            let group = self.group_of(index);
            self.groups[group].used_as_weight = true;
        }
    }

    fn mark_data(&mut self, role: Role) {
        if let Role::Candidate(index) = role {
            let group = self.group_of(index);
            self.groups[group].used_as_data = true;
        }
    }
}
