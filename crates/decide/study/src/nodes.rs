//! Compares the nodes on which the runs of a study were made.

use sweetspot_stats::{Difference, Interval};

use crate::{EnergyOf, Point, RunEnding, RunRecord, Study};

/// The smallest relative difference between nodes that is worth a warning.
const SMALLEST_DIFFERENCE: f64 = 0.005;

/// How a quantity of the runs on one node compares with the same configurations on the other nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeDifference {
    /// The mean relative difference; 0.02 means 2 % more than on the other nodes.
    pub mean: f64,
    /// The 95 % confidence interval of the difference; absent with too few runs.
    pub interval95: Option<Interval>,
    /// Whether the node differs from the others: more than chance explains, and enough to matter.
    pub differs: bool,
}

/// A node on which runs of a study were made.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The name of the node.
    pub node: String,
    /// The number of runs on the node.
    pub runs: usize,
    /// How the time of runs compares with the other nodes; absent if no configuration ran on several nodes.
    pub time: Option<NodeDifference>,
    /// How the energy of runs compares with the other nodes; absent if no configuration ran on several nodes, or if the
    /// energy is unknown.
    pub energy: Option<NodeDifference>,
}

/// A run on a node, relative to the mean of its configuration.
struct Deviation<'a> {
    node: &'a str,
    value: f64,
}

impl Study {
    /// Compares the nodes on which the runs were made, sorted by name; empty if a scheduler did not make them.
    pub fn nodes(&self) -> Vec<NodeResult> {
        let points = || self.points.iter().chain(self.reference_beside_points());
        let mut names: Vec<&str> = points()
            .flat_map(|point| &point.runs)
            .filter_map(node)
            .collect();
        names.sort_unstable();
        let runs = |name: &str| names.iter().filter(|node| **node == name).count();
        let mut nodes = names.clone();
        nodes.dedup();
        let of = self.energy_of();
        let times = deviations(points(), time);
        let energies = deviations(points(), |run| energy(run, of));
        let all = nodes.iter().map(|name| NodeResult {
            node: (*name).to_owned(),
            runs: runs(name),
            time: difference(&times, name, nodes.len()),
            energy: difference(&energies, name, nodes.len()),
        });
        all.collect()
    }

    /// The reference, if it is not among the points.
    fn reference_beside_points(&self) -> Option<&Point> {
        let is_point = |point: &Point| point.configuration == self.reference.configuration;
        (!self.points.iter().any(is_point)).then_some(&self.reference)
    }
}

/// The node of a run.
fn node(run: &RunRecord) -> Option<&str> {
    run.place.as_ref().map(|place| place.node.as_str())
}

/// The time of a successful run.
fn time(run: &RunRecord) -> Option<f64> {
    match &run.end {
        RunEnding::Done(result) => Some(result.time.get()),
        RunEnding::Failed(_) => None,
    }
}

/// The energy of a successful run.
fn energy(run: &RunRecord, of: EnergyOf) -> Option<f64> {
    match &run.end {
        RunEnding::Done(result) => Some(result.energy_of(of)?.value.get()),
        RunEnding::Failed(_) => None,
    }
}

/// Each run relative to the mean of its configuration, where the configuration ran on several nodes. The mean is that of
/// the nodes' means, so that a node with more runs does not count more.
fn deviations<'a>(
    points: impl Iterator<Item = &'a Point>,
    value: impl Fn(&RunRecord) -> Option<f64>,
) -> Vec<Deviation<'a>> {
    let mut all = Vec::new();
    for point in points {
        let runs: Vec<(&str, f64)> = point
            .runs
            .iter()
            .filter_map(|run| Some((node(run)?, value(run).filter(|value| *value > 0.0)?)))
            .collect();
        let mut nodes: Vec<&str> = runs.iter().map(|(node, _)| *node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        if nodes.len() < 2 {
            continue;
        }
        let mean_on = |name: &&str| {
            let values: Vec<f64> = runs
                .iter()
                .filter(|(node, _)| node == name)
                .map(|(_, value)| *value)
                .collect();
            values.iter().sum::<f64>() / values.len() as f64
        };
        let mean = nodes.iter().map(mean_on).sum::<f64>() / nodes.len() as f64;
        all.extend(runs.iter().map(|(node, value)| Deviation {
            node,
            value: value / mean - 1.0,
        }));
    }
    all
}

/// Compares the deviations on a node with those on the other nodes; `nodes` nodes are compared.
fn difference(deviations: &[Deviation<'_>], name: &str, nodes: usize) -> Option<NodeDifference> {
    let (own, others): (Vec<&Deviation<'_>>, Vec<&Deviation<'_>>) =
        deviations.iter().partition(|one| one.node == name);
    let values = |all: &[&Deviation<'_>]| -> Vec<f64> { all.iter().map(|one| one.value).collect() };
    let (own, others) = (values(&own), values(&others));
    let compared = Difference::of(&own, &others)?;
    let is_significant = compared.is_significant_among(nodes) == Some(true);
    Some(NodeDifference {
        mean: compared.mean,
        interval95: compared.interval95,
        differs: is_significant && compared.mean.abs() >= SMALLEST_DIFFERENCE,
    })
}
