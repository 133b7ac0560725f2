//! Studies on a scheduler that the tests play: what is lost, delayed or limited needs no cluster and no minutes.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use sweetspot_study::{Definition, RunPlace, Task, write_task};

use super::*;
use crate::sweep::slurm::SlurmOptions;
use crate::sweep::slurm::commands::JobRequest;
use crate::sweep::slurm::queue::{JobState, Limits, QueuedTask};
use crate::sweep::{Sweep, SweepOptions};

/// An array that was submitted.
struct FakeArray {
    name: String,
    node: Option<String>,
    blocks: Vec<Vec<u64>>,
    states: Vec<JobState>,
    /// How often the queue was looked at since.
    looks: usize,
}

/// What becomes of a run, by its number and its attempt from 1, once its job runs.
type Fate = fn(u64, u32) -> &'static str;

/// A scheduler whose jobs wait for one look at the queue, run during the next, and are then over.
struct FakeSlurm {
    sweep: Sweep,
    study: PathBuf,
    fate: Fate,
    reason: &'static str,
    attempts: HashMap<u64, u32>,
    arrays: Vec<FakeArray>,
    options: Vec<Vec<String>>,
    /// The largest number of arrays of a node that were open together.
    most_open: usize,
}

impl FakeSlurm {
    fn new(study: &Path, fate: Fate) -> Self {
        Self {
            sweep: Sweep::prepare(&definition()).unwrap(),
            study: study.to_owned(),
            fate,
            reason: "Priority",
            attempts: HashMap::new(),
            arrays: Vec::new(),
            options: Vec::new(),
            most_open: 0,
        }
    }

    /// Makes the runs of a job, and returns how it ended.
    fn make(&mut self, number: usize, block: usize) -> JobState {
        let node = self.arrays[number].node.clone();
        let node = node.unwrap_or_else(|| "n9".to_owned());
        let mut word = "COMPLETED";
        for run in self.arrays[number].blocks[block].clone() {
            let attempt = self.attempts.entry(run).or_default();
            *attempt += 1;
            word = (self.fate)(run, *attempt);
            if word != "COMPLETED" {
                break;
            }
            let task = self.sweep.outline.plan.task(run).unwrap();
            let place = RunPlace {
                node: node.clone(),
                job: Some(format!("{number}_{block}")),
                gpus: Vec::new(),
            };
            let record = record_of(&self.sweep, task, &self.study, Some(place));
            write_task(&self.sweep.outline, &self.study, &record).unwrap();
        }
        JobState::Ended(word.to_owned())
    }
}

impl Scheduler for FakeSlurm {
    fn limits(&mut self) -> Result<Limits, SlurmError> {
        Ok(Limits::default())
    }

    fn submit(&mut self, job: &JobRequest) -> Result<u64, SlurmError> {
        let value = |key: &str| {
            let mut options = job.options.iter();
            options.find_map(|option| option.strip_prefix(key).map(str::to_owned))
        };
        let name = value("--job-name=").unwrap();
        let (_, number) = name.rsplit_once('-').unwrap();
        let runs = self.study.join(format!("slurm/{number}.runs"));
        let lines = std::fs::read_to_string(runs).unwrap();
        let blocks: Vec<Vec<u64>> = lines
            .lines()
            .map(|line| line.split(' ').map(|run| run.parse().unwrap()).collect())
            .collect();
        self.arrays.push(FakeArray {
            name,
            node: value("--nodelist="),
            states: vec![JobState::Pending; blocks.len()],
            blocks,
            looks: 0,
        });
        let is_open = |array: &&FakeArray| !matches!(array.states[0], JobState::Ended(_));
        for array in &self.arrays {
            let open = self.arrays.iter().filter(is_open);
            let open = open.filter(|other| other.node == array.node).count();
            self.most_open = self.most_open.max(open);
        }
        self.options.push(job.options.clone());
        Ok(self.arrays.len() as u64)
    }

    fn queue(&mut self, names: &[String]) -> Result<Vec<QueuedTask>, SlurmError> {
        let mut tasks = Vec::new();
        for number in 0..self.arrays.len() {
            if !names.contains(&self.arrays[number].name) {
                continue;
            }
            self.arrays[number].looks += 1;
            for block in 0..self.arrays[number].blocks.len() {
                let state = match self.arrays[number].looks {
                    1 => JobState::Pending,
                    2 => JobState::Running,
                    3 => self.make(number, block),
                    _ => self.arrays[number].states[block].clone(),
                };
                self.arrays[number].states[block] = state.clone();
                tasks.push(QueuedTask {
                    job: number as u64 + 1,
                    index: Some(block),
                    state,
                    node: "n9".to_owned(),
                    name: self.arrays[number].name.clone(),
                    reason: self.reason.to_owned(),
                });
            }
        }
        Ok(tasks)
    }

    fn cancel(&mut self, _: &[u64]) -> Result<(), SlurmError> {
        Ok(())
    }

    fn nodes(&mut self, _: Option<&str>) -> Result<Vec<String>, SlurmError> {
        Ok(vec!["n1".to_owned(), "n2".to_owned()])
    }
}

/// The messages to the user.
#[derive(Default)]
struct Notes(Vec<String>);

impl Observer for Notes {
    fn note(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }
}

/// Two power caps, four runs each.
fn definition() -> Definition {
    Definition {
        power_cap: Some(sweetspot_study::AxisText("150,300".to_owned())),
        repeat: Some(4),
        samples: Some(false),
        ..Definition::simulated("v100", "resnet50")
    }
}

/// The record of a simulated run at a place.
fn record_of(sweep: &Sweep, task: Task, study: &Path, place: Option<RunPlace>) -> RunRecord {
    let (options, mut found) = (SweepOptions::default(), None);
    let mut keep = |record| {
        found = Some(record);
        Ok(())
    };
    sweep
        .run_tasks(&[task], study, &options, &mut Notes::default(), &mut keep)
        .unwrap();
    RunRecord {
        place,
        ..found.unwrap()
    }
}

/// What a study came to on a scheduler.
struct Made {
    done: Result<(), SessionError>,
    points: Vec<Point>,
    notes: Vec<String>,
}

/// Makes all runs of the study on a scheduler; arrays have two jobs at most. The nodes in `stored` made the first runs
/// before, one each.
fn make_runs(slurm: &mut FakeSlurm, options: SlurmOptions, stored: &[&str]) -> Made {
    let outline = slurm.sweep.outline.clone();
    let mut store = Store::create(&slurm.study, &outline).unwrap();
    let mut points = outline.empty_points(outline.subject.energy_of);
    for (run, node) in stored.iter().enumerate() {
        let place = RunPlace {
            node: (*node).to_owned(),
            job: None,
            gpus: Vec::new(),
        };
        let task = outline.plan.task(run as u64).unwrap();
        let record = record_of(&slurm.sweep, task, &slurm.study, Some(place));
        store.record(&[(run as u64, record.clone())]).unwrap();
        points[task.configuration].add(record);
    }
    let sweep = SlurmSweep {
        options,
        program: PathBuf::from("sweetspot"),
        node: None,
        cancels: false,
        limits: Limits {
            array_size: 2,
            ..Limits::default()
        },
    };
    let (signals, mut notes) = (SignalSource::listen().unwrap(), Notes::default());
    let done = sweep.run_with(
        slurm,
        &signals,
        &outline,
        &mut points,
        &mut store,
        &mut notes,
    );
    Made {
        done,
        points,
        notes: notes.0,
    }
}

/// One run for each job.
fn one_by_one() -> SlurmOptions {
    SlurmOptions {
        runs_per_job: NonZeroUsize::new(1),
        ..SlurmOptions::default()
    }
}

/// The number of runs that ended well, of all that are stored.
fn successful(made: &Made) -> (usize, usize) {
    let runs = || made.points.iter().flat_map(|point| &point.runs);
    let is_done = |run: &&RunRecord| matches!(run.end, RunEnding::Done(_));
    (runs().filter(is_done).count(), runs().count())
}

#[test]
fn lost_runs_are_made_again_up_to_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("st");
    let outline = Sweep::prepare(&definition()).unwrap().outline;
    let others = (0..8)
        .filter(|run| outline.plan.task(*run).unwrap().configuration != outline.plan.reference);
    let others: Vec<u64> = others.collect();
    // The seed of the study is fixed, and so are the numbers of its runs.
    const SLOW: u64 = 2;
    const PREEMPTED: u64 = 4;
    assert!(
        others.contains(&SLOW) && others.contains(&PREEMPTED),
        "{others:?}"
    );
    let mut slurm = FakeSlurm::new(&study, |run, attempt| match (run, attempt) {
        (SLOW, _) => "TIMEOUT",
        (PREEMPTED, 1) => "PREEMPTED",
        _ => "COMPLETED",
    });
    let options = SlurmOptions {
        resubmissions: Some(1),
        ..one_by_one()
    };
    let made = make_runs(&mut slurm, options, &[]);
    made.done.as_ref().unwrap();
    assert_eq!(successful(&made), (7, 8));
    for (run, attempts) in [(SLOW, 2), (PREEMPTED, 2), (0, 1)] {
        assert_eq!(slurm.attempts[&run], attempts, "run {run}");
    }
    let notes = made.notes.join("\n");
    for expected in [
        "run 4 is submitted again: its job was preempted on n9 after 1 attempt",
        "run 2 is submitted again: its job reached its time limit on n9 after 1 attempt",
    ] {
        assert!(notes.contains(expected), "{notes}");
    }
    let failed = made.points.iter().flat_map(|point| &point.runs);
    let failures: Vec<&Failure> = failed
        .filter_map(|run| match &run.end {
            RunEnding::Failed(failure) => Some(failure),
            RunEnding::Done(_) => None,
        })
        .collect();
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].status, Status::Timeout);
    assert!(failures[0].reason.contains("after 2 attempts"));
}

#[test]
fn arrays_are_as_large_as_the_site_allows_and_a_node_has_one_at_a_time_under_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let mut slurm = FakeSlurm::new(&folder.path().join("st"), |_, _| "COMPLETED");
    let options = SlurmOptions {
        placement: Some(Placement::Spread),
        max_jobs: NonZeroUsize::new(2),
        ..one_by_one()
    };
    let made = make_runs(&mut slurm, options, &[]);
    made.done.as_ref().unwrap();
    assert_eq!(successful(&made), (8, 8));
    let sizes: Vec<usize> = slurm
        .arrays
        .iter()
        .map(|array| array.blocks.len())
        .collect();
    assert_eq!(sizes, [2, 2, 2, 2]);
    let limited = |options: &Vec<String>| options.contains(&"--array=0-1%1".to_owned());
    assert!(slurm.options.iter().all(limited), "{:?}", slurm.options);
    assert_eq!(slurm.most_open, 1);
}

#[test]
fn jobs_that_may_wait_for_ever_are_told_with_the_reason_of_slurm() {
    let folder = tempfile::tempdir().unwrap();
    let mut slurm = FakeSlurm::new(&folder.path().join("st"), |_, _| "COMPLETED");
    slurm.reason = "PartitionTimeLimit";
    let made = make_runs(&mut slurm, one_by_one(), &[]);
    made.done.as_ref().unwrap();
    assert_eq!(successful(&made), (8, 8));
    let told = made.notes.iter().filter(|note| {
        note.starts_with("8 jobs wait in the queue: Slurm's reason is PartitionTimeLimit")
    });
    assert_eq!(told.count(), 1, "{:?}", made.notes);
}

#[test]
fn a_study_that_was_not_pinned_is_pinned_to_the_node_of_its_runs() {
    let pinned = SlurmOptions {
        placement: Some(Placement::Pinned),
        ..one_by_one()
    };
    for (stored, node) in [(&["n7", "n7"][..], "n7"), (&[], "n1")] {
        let folder = tempfile::tempdir().unwrap();
        let mut slurm = FakeSlurm::new(&folder.path().join("st"), |_, _| "COMPLETED");
        let made = make_runs(&mut slurm, pinned.clone(), stored);
        made.done.as_ref().unwrap();
        assert_eq!(successful(&made), (8, 8));
        let is_there = |array: &FakeArray| array.node.as_deref() == Some(node);
        assert!(slurm.arrays.iter().all(is_there));
        let ledger = Ledger::new(&slurm.study, &slurm.sweep.outline.identity());
        assert_eq!(ledger.executor().unwrap().unwrap().1.as_deref(), Some(node));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut slurm = FakeSlurm::new(&folder.path().join("st"), |_, _| "COMPLETED");
    let made = make_runs(&mut slurm, pinned, &["n7", "n8"]);
    let problem = made.done.unwrap_err().to_string();
    assert!(problem.contains("were made on n7, n8"), "{problem}");
    assert!(slurm.arrays.is_empty());
}
