//! Decides from the queue and from the results which runs are under way, which are lost, and which were cancelled.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::ledger::ArrayRecord;
use super::queue::{JobState, QueuedTask};

/// How long the result of a job that has ended may take to become visible: file systems that several machines share show
/// new files late.
const RESULT_DELAY: Duration = Duration::from_secs(5);

/// The same for a job that Slurm calls completed: its result must be somewhere.
const COMPLETED_DELAY: Duration = Duration::from_secs(60);

/// A run whose job ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// The run.
    pub id: u64,
    /// How often it was submitted so far.
    pub attempts: u32,
    /// Slurm's word for how the job ended; `None` if Slurm has forgotten it.
    pub state: Option<String>,
    /// The node on which the job ran; empty if that is unknown.
    pub node: String,
    /// The number of the array and of the job in it.
    pub job: (u32, usize),
}

/// The jobs in the queue, by number.
struct TaskIndex<'a>(HashMap<(u64, Option<usize>), &'a QueuedTask>);

impl<'a> TaskIndex<'a> {
    fn new(queue: &'a [QueuedTask]) -> Self {
        let tasks = queue.iter();
        Self(tasks.map(|task| ((task.job, task.index), task)).collect())
    }

    /// A task of an array: its own line, or the line of those that were cancelled together.
    fn find(&self, array: Option<u64>, index: usize) -> Option<&'a QueuedTask> {
        let array = array?;
        let own = self.0.get(&(array, Some(index)));
        own.or_else(|| self.0.get(&(array, None))).copied()
    }
}

/// The state of all jobs of a study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSummary {
    /// The number of jobs that run.
    pub running: usize,
    /// The number of jobs that wait.
    pub pending: usize,
    /// Why they wait: Slurm's reasons, the most frequent first.
    pub reasons: Vec<String>,
    /// The runs whose jobs ended without a result.
    pub lost: Vec<LostRun>,
}

/// Follows all arrays of a study.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    arrays: Vec<ArrayRecord>,
    /// How often each run was submitted.
    attempts: HashMap<u64, u32>,
    /// The last array of each run, and its job in it. A run that is lost is not here.
    jobs: HashMap<u64, (usize, usize)>,
    /// When the result of a job that has ended was first missed.
    missing_since: HashMap<u64, Duration>,
    /// The runs whose jobs somebody has cancelled.
    cancelled: HashSet<u64>,
}

impl Tracker {
    /// Adds an array that was submitted. The runs of one that was withdrawn are not under way.
    pub fn add(&mut self, array: ArrayRecord) {
        let number = self.arrays.len();
        let blocks = array.blocks.iter().filter(|_| !array.withdrawn);
        for (index, block) in blocks.enumerate() {
            for run in block {
                self.jobs.insert(*run, (number, index));
                self.missing_since.remove(run);
                *self.attempts.entry(*run).or_default() += 1;
            }
        }
        self.arrays.push(array);
    }

    /// Takes up what an earlier sweep has submitted. Whoever resumes a sweep wants all its runs: those whose jobs somebody
    /// has cancelled are not under way, and for those whose jobs have ended without a result the attempts are counted anew.
    /// Returns the number of cancelled runs.
    pub fn resume(&mut self, queue: &[QueuedTask], is_stored: impl Fn(u64) -> bool) -> usize {
        self.find_numbers(queue);
        let tasks = TaskIndex::new(queue);
        let (arrays, attempts) = (&self.arrays, &mut self.attempts);
        let before = self.jobs.len();
        self.jobs.retain(|run, (array, index)| {
            let task = tasks.find(arrays[*array].job, *index);
            let word = match task.map(|task| &task.state) {
                _ if is_stored(*run) => return true,
                Some(JobState::Pending | JobState::Running) => return true,
                Some(JobState::Ended(word)) => word.as_str(),
                None => "",
            };
            attempts.insert(*run, 0);
            word != "CANCELLED"
        });
        before - self.jobs.len()
    }

    /// All arrays that were submitted.
    pub fn arrays(&self) -> &[ArrayRecord] {
        &self.arrays
    }

    /// The arrays that may have jobs in the queue.
    pub fn open_arrays(&self) -> impl Iterator<Item = &ArrayRecord> {
        let mut open: Vec<usize> = self.jobs.values().map(|(array, _)| *array).collect();
        open.sort_unstable();
        open.dedup();
        open.into_iter().filter_map(|array| self.arrays.get(array))
    }

    /// Whether a run is under way: its job exists, or its result may become visible yet.
    pub fn is_active(&self, run: u64) -> bool {
        self.jobs.contains_key(&run)
    }

    /// Whether no run is under way.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Whether somebody has cancelled the job of a run.
    pub fn is_cancelled(&self, run: u64) -> bool {
        self.cancelled.contains(&run)
    }

    /// The number of runs whose jobs somebody has cancelled.
    pub fn cancelled(&self) -> usize {
        self.cancelled.len()
    }

    /// Takes note that the executor itself has cancelled an array: its runs may be submitted again.
    pub fn withdraw(&mut self, number: u32) -> Option<&ArrayRecord> {
        let position = self
            .arrays
            .iter()
            .position(|array| array.number == number)?;
        self.arrays[position].withdrawn = true;
        self.jobs.retain(|run, (array, _)| {
            let stays = *array != position;
            if !stays && let Some(attempts) = self.attempts.get_mut(run) {
                *attempts = attempts.saturating_sub(1);
            }
            stays
        });
        self.arrays.get(position)
    }

    /// Compares what was submitted with the queue, which was read before the results were. `is_stored` says whether a run
    /// has a result.
    pub fn update(
        &mut self,
        queue: &[QueuedTask],
        is_stored: impl Fn(u64) -> bool,
        now: Duration,
    ) -> QueueSummary {
        self.find_numbers(queue);
        let tasks = TaskIndex::new(queue);
        let mut summary = QueueSummary::default();
        let mut reasons: Vec<(String, usize)> = Vec::new();
        let mut counted: HashSet<(usize, usize)> = HashSet::new();
        let mut ended = Vec::new();
        for (run, job) in &self.jobs {
            if is_stored(*run) {
                ended.push((*run, None));
                continue;
            }
            let array = &self.arrays[job.0];
            let task = tasks.find(array.job, job.1);
            match task.map(|task| &task.state) {
                Some(JobState::Running) => {
                    self.missing_since.remove(run);
                    summary.running += usize::from(counted.insert(*job));
                }
                Some(JobState::Pending) => {
                    self.missing_since.remove(run);
                    if counted.insert(*job) {
                        summary.pending += 1;
                        let reason = task.map(|task| task.reason.clone()).unwrap_or_default();
                        match reasons.iter_mut().find(|(known, _)| *known == reason) {
                            Some((_, count)) => *count += 1,
                            None => reasons.push((reason, 1)),
                        }
                    }
                }
                Some(JobState::Ended(_)) | None => {
                    let state = match task.map(|task| &task.state) {
                        Some(JobState::Ended(word)) => Some(word.clone()),
                        _ => None,
                    };
                    let delay = match state.as_deref() {
                        Some("COMPLETED") => COMPLETED_DELAY,
                        _ => RESULT_DELAY,
                    };
                    let since = *self.missing_since.entry(*run).or_insert(now);
                    if now.saturating_sub(since) >= delay {
                        let node = task.map(|task| task.node.clone()).unwrap_or_default();
                        ended.push((
                            *run,
                            Some(LostRun {
                                id: *run,
                                attempts: self.attempts.get(run).copied().unwrap_or(0),
                                state,
                                node,
                                job: (array.number, job.1),
                            }),
                        ));
                    }
                }
            }
        }
        self.close(ended, &mut summary);
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        summary.reasons = reasons.into_iter().map(|(reason, _)| reason).collect();
        summary
    }

    /// Takes out the runs that are stored, lost or cancelled.
    fn close(&mut self, ended: Vec<(u64, Option<LostRun>)>, summary: &mut QueueSummary) {
        for (run, lost) in ended {
            self.jobs.remove(&run);
            self.missing_since.remove(&run);
            match lost {
                None => {}
                Some(lost) if lost.state.as_deref() == Some("CANCELLED") => {
                    self.cancelled.insert(run);
                }
                Some(lost) => summary.lost.push(lost),
            }
        }
        summary.lost.sort_by_key(|lost| lost.id);
    }

    /// Finds the numbers of arrays whose submitter ended before it knew them, by their names.
    pub fn find_numbers(&mut self, queue: &[QueuedTask]) {
        for array in self.arrays.iter_mut().filter(|array| array.job.is_none()) {
            let found = queue.iter().find(|task| task.name == array.name);
            array.job = found.map(|task| task.job);
        }
    }
}

#[cfg(test)]
mod tests;
