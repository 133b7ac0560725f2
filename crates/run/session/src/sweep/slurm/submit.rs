//! Submits runs, on the nodes that are asked for.

use super::arrays::{divide, spread_node};
use super::executor::{Execution, wanted};
use super::options::partition;
use super::script::array_job;
use super::{Placement, SlurmError};
use crate::SessionError;
use crate::observer::Observer;

/// Runs and the node that is asked for; `None` if Slurm chooses.
type PlacedRuns = (Option<String>, Vec<u64>);

impl Execution<'_> {
    /// Submits missing runs, as many as there is room for, and returns whether none is missing any more.
    pub(super) fn submit_missing(
        &mut self,
        observer: &mut dyn Observer,
    ) -> Result<bool, SessionError> {
        let is_waiting = !self.tracker.is_idle();
        // An adaptive plan decides about the next round when this one is complete; a limit on jobs holds for all arrays
        // together.
        let is_in_rounds = self.outline.plan.is_adaptive() || self.sweep.options.max_jobs.is_some();
        if is_waiting && (is_in_rounds || !self.is_due) {
            return Ok(false);
        }
        let mut runs = wanted(self.outline, self.points);
        runs.retain(|run| !self.tracker.is_active(*run) && !self.tracker.is_cancelled(*run));
        if runs.is_empty() {
            return Ok(true);
        }
        let per_job = self.sweep.jobs(self.outline, runs.len()).runs_per_job;
        for (node, runs) in self.place(&runs)? {
            for blocks in divide(&runs, per_job, self.sweep.limits.array_size) {
                let open: usize = self
                    .tracker
                    .open_arrays()
                    .map(|array| array.blocks.len())
                    .sum();
                let has_room = open == 0 || open + blocks.len() <= self.sweep.limits.job_count / 2;
                if !has_room {
                    return Ok(false);
                }
                // The limit on jobs holds for each array alone, so that a node has one at a time.
                let has_array = self.tracker.open_arrays().any(|array| array.node == node);
                if self.sweep.options.max_jobs.is_some() && has_array {
                    break;
                }
                if let Err(problem) = self.submit(blocks, node.clone(), observer) {
                    return self.refused(problem, node.as_deref(), observer);
                }
            }
        }
        Ok(false)
    }

    /// Decides what to do about a job that Slurm does not accept: without another node, and without jobs that make room
    /// when they end, the sweep cannot go on.
    fn refused(
        &mut self,
        problem: SlurmError,
        node: Option<&str>,
        observer: &mut dyn Observer,
    ) -> Result<bool, SessionError> {
        if problem.is_outage() {
            return Err(problem.into());
        }
        if self.sweep.options.placement() == Placement::Spread
            && let Some(node) = node
            && self.nodes.len() > 1
        {
            observer.note(&format!("no runs are made on {node}: {problem}"));
            self.nodes.retain(|known| known != node);
            self.is_due = true;
            return self.submit_missing(observer);
        }
        match self.tracker.is_idle() {
            true => Err(problem.into()),
            false => {
                observer.note(&format!("{problem}; trying again when jobs have ended"));
                Ok(false)
            }
        }
    }

    /// The runs for each node that is asked for.
    fn place(&mut self, runs: &[u64]) -> Result<Vec<PlacedRuns>, SessionError> {
        match self.sweep.options.placement() {
            Placement::Any => return Ok(vec![(None, runs.to_vec())]),
            Placement::Pinned => return Ok(vec![(self.pinned.clone(), runs.to_vec())]),
            Placement::Spread => {}
        }
        let up = self.slurm.nodes(partition(&self.words).as_deref())?;
        match self.nodes.is_empty() {
            true => self.nodes = up,
            false => self.nodes.retain(|node| up.contains(node)),
        }
        if let Some(max) = self.sweep.options.max_jobs {
            self.nodes.truncate(max.get());
        }
        if self.nodes.is_empty() {
            return Err(SlurmError::NoNodes.into());
        }
        let mut placed: Vec<PlacedRuns> = self
            .nodes
            .iter()
            .map(|node| (Some(node.clone()), Vec::new()))
            .collect();
        for run in runs {
            let Some(task) = self.outline.plan.task(*run) else {
                continue;
            };
            let node = spread_node(task.configuration, task.repeat, placed.len());
            placed[node].1.push(*run);
        }
        placed.retain(|(_, runs)| !runs.is_empty());
        Ok(placed)
    }

    /// Submits an array. If nobody knows whether Slurm has accepted it, it stays written down: its jobs are then found by
    /// their name, or count as lost.
    fn submit(
        &mut self,
        blocks: Vec<Vec<u64>>,
        node: Option<String>,
        observer: &mut dyn Observer,
    ) -> Result<(), SlurmError> {
        let number = self.tracker.arrays().len() as u32 + 1;
        let mut max = self.sweep.options.max_jobs.map(std::num::NonZeroUsize::get);
        if self.sweep.options.placement() == Placement::Spread {
            max = max.map(|max| (max / self.nodes.len().max(1)).max(1));
        }
        let mut array = self.ledger.begin(number, blocks, node)?;
        let job = array_job(
            &self.folder,
            &self.ledger,
            &array,
            &self.sweep.program,
            max,
            &self.words,
        );
        match self.slurm.submit(&job) {
            Ok(job) => array.job = Some(job),
            Err(problem @ SlurmError::Unanswered { .. }) => {
                observer.note(&format!("{problem}; its jobs are looked for in the queue"));
            }
            Err(problem) => {
                self.ledger.forget(&array);
                return Err(problem);
            }
        }
        self.ledger.update(&array)?;
        tracing::info!(
            job = array.job,
            jobs = array.blocks.len(),
            "array submitted"
        );
        self.tracker.add(array);
        Ok(())
    }

    /// Withdraws arrays for nodes that are down, so that their runs are made on others.
    pub(super) fn withdraw_stranded(&mut self, observer: &mut dyn Observer) {
        let Ok(up) = self.slurm.nodes(partition(&self.words).as_deref()) else {
            return;
        };
        let is_stranded =
            |node: &Option<String>| node.as_ref().is_some_and(|node| !up.contains(node));
        let stranded: Vec<(u32, Option<u64>)> = self
            .tracker
            .open_arrays()
            .filter(|array| is_stranded(&array.node))
            .map(|array| (array.number, array.job))
            .collect();
        for (number, job) in stranded {
            let jobs: Vec<u64> = job.into_iter().collect();
            if self.slurm.cancel(&jobs).is_err() {
                continue;
            }
            if let Some(array) = self.tracker.withdraw(number) {
                let node = array.node.clone().unwrap_or_default();
                let _ = self.ledger.update(array);
                observer.note(&format!("{node} is down: its runs are made on other nodes"));
            }
        }
    }
}
