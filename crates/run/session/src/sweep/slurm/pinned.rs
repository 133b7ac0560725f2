//! The node of a study whose runs are all made on one node.

use sweetspot_study::Point;

use super::SlurmError;
use super::commands::Scheduler;
use super::ledger::ArrayRecord;
use super::options::partition;
use super::queue::JobState;

/// Chooses the node for a study that was not pinned before: that of the stored runs, or the first that is up if no run is
/// stored. It is an error if the stored runs were made elsewhere too, or if jobs that may run elsewhere are in the queue.
pub fn choose_node(
    points: &[Point],
    arrays: &[ArrayRecord],
    words: &[String],
    slurm: &mut dyn Scheduler,
) -> Result<String, SlurmError> {
    let runs = points.iter().flat_map(|point| &point.runs);
    let places = runs.map(|run| run.place.as_ref().map(|place| place.node.as_str()));
    let mut nodes: Vec<&str> = places
        .map(|node| node.unwrap_or("the machine of the sweep"))
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let is_local = points
        .iter()
        .flat_map(|point| &point.runs)
        .any(|run| run.place.is_none());
    let node = match nodes[..] {
        [] => {
            let up = slurm.nodes(partition(words).as_deref())?;
            up.into_iter().next().ok_or(SlurmError::NoNodes)?
        }
        [node] if !is_local => node.to_owned(),
        _ => return Err(SlurmError::NotPinned(nodes.join(", "))),
    };
    let is_elsewhere = |array: &&ArrayRecord| array.node.as_ref() != Some(&node);
    let names: Vec<String> = arrays
        .iter()
        .filter(is_elsewhere)
        .map(|array| array.name.clone())
        .collect();
    let queue = slurm.queue(&names)?;
    let exists = |task: &&super::queue::QueuedTask| !matches!(task.state, JobState::Ended(_));
    match queue.iter().filter(exists).count() {
        0 => Ok(node),
        jobs => Err(SlurmError::JobsElsewhere {
            jobs,
            name: names.join(","),
        }),
    }
}
