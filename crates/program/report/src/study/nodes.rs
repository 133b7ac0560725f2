//! The nodes on which the runs of a study were made.

use sweetspot_document::study as document;
use sweetspot_study::{NodeDifference, Study};

use crate::table::Table;

/// The table that compares the nodes; `None` if the runs were made on fewer than two.
pub(crate) fn nodes_table(study: &Study) -> Option<Table> {
    let nodes = study.nodes();
    if nodes.len() < 2 {
        return None;
    }
    let mut table = Table::new(&[
        "Node",
        "Runs",
        "Time vs others\n[%]",
        "Energy vs others\n[%]",
    ]);
    for node in nodes {
        table.push(vec![
            node.node,
            node.runs.to_string(),
            difference_cell(node.time),
            difference_cell(node.energy),
        ]);
    }
    Some(table)
}

/// A difference with its interval.
fn difference_cell(difference: Option<NodeDifference>) -> String {
    let Some(difference) = difference else {
        return "-".to_owned();
    };
    let percent = |value: f64| format!("{:+.1}", 100.0 * value);
    match difference.interval95 {
        Some(interval) => format!(
            "{} ({} to {})",
            percent(difference.mean),
            percent(interval.low),
            percent(interval.high)
        ),
        None => percent(difference.mean),
    }
}

/// Warns about nodes that differ from the others; `None` if none does.
pub(crate) fn node_warning(study: &Study) -> Option<String> {
    let describe = |name: &str, what: &str, difference: Option<NodeDifference>| {
        let difference = difference.filter(|difference| difference.differs)?;
        let percent = 100.0 * difference.mean;
        let more = if percent > 0.0 { "more" } else { "less" };
        Some(format!("{name} needs {:.1} % {more} {what}", percent.abs()))
    };
    let mut found = Vec::new();
    for node in study.nodes() {
        found.extend(describe(&node.node, "time", node.time));
        found.extend(describe(&node.node, "energy", node.energy));
    }
    (!found.is_empty()).then(|| {
        format!(
            "The nodes differ: for the same settings {}. Compare settings on one node (--nodes pinned), or with equal shares of all nodes (--nodes spread).",
            found.join(", ")
        )
    })
}

/// The nodes in the document of a study.
pub(super) fn nodes_json(study: &Study) -> Vec<document::Node> {
    let difference = |difference: NodeDifference| document::NodeDifference {
        mean: difference.mean,
        ci95: difference
            .interval95
            .map(|interval| [interval.low, interval.high]),
        differs: difference.differs,
    };
    let nodes = study.nodes().into_iter().map(|node| document::Node {
        node: node.node,
        runs: node.runs,
        time: node.time.map(difference),
        energy: node.energy.map(difference),
    });
    nodes.collect()
}

#[cfg(test)]
mod tests {
    use sweetspot_study::{AxisText, Definition, RunEnding, RunPlace};
    use sweetspot_virtual_time::SimulatedSweep;

    use super::*;

    /// A simulated study on four nodes, of which n3 needs this many times the time of the others.
    fn study_on_nodes(slowdown: f64) -> Study {
        let definition = Definition {
            power_cap: Some(AxisText("150,200,250,300".to_owned())),
            repeat: Some(8),
            ..Definition::simulated("v100", "resnet50")
        };
        let prepared = SimulatedSweep::prepare(&definition).unwrap();
        let outline = prepared.outline;
        let mut points = outline.empty_points(outline.subject.energy_of);
        for task in outline.plan.pending(&points, outline.subject.energy_of) {
            let mut run = prepared.sweep.run_task(&outline, task, None).unwrap();
            let node = format!("n{}", 1 + (task.configuration + task.repeat as usize) % 4);
            if let RunEnding::Done(result) = &mut run.end
                && node == "n3"
            {
                result.time = result.time * slowdown;
            }
            run.place = Some(RunPlace {
                node,
                job: None,
                gpus: Vec::new(),
            });
            points[task.configuration].add(run);
        }
        outline.into_study(points).unwrap()
    }

    #[test]
    fn a_slower_node_is_warned_about_and_equal_nodes_are_not() {
        assert_eq!(node_warning(&study_on_nodes(1.0)), None);
        let study = study_on_nodes(1.1);
        let slower: Vec<NodeDifference> = study
            .nodes()
            .iter()
            .filter(|node| node.node == "n3")
            .filter_map(|node| node.time)
            .collect();
        assert!(
            slower[0].differs && (slower[0].mean - 0.1).abs() < 0.01,
            "{slower:?}"
        );
        let warning = node_warning(&study).unwrap();
        assert!(
            warning.starts_with("The nodes differ: for the same settings ")
                && warning.contains("n3 needs")
                && warning.contains("% more time")
                && warning.contains("--nodes spread"),
            "{warning}"
        );
        assert!(nodes_table(&study).is_some());
    }
}
