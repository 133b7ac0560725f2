//! Makes the runs of a simulated sweep: every thread computes runs, one thread stores them.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sweetspot_study::{Outline, Point, RunRecord, Store, SweepProgress};

use super::SimulatedSweep;
use crate::SimulationError;

/// How many runs a sweep had made when it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCounts {
    /// The number of finished runs.
    pub done: usize,
    /// The number of planned runs; a search may add more.
    pub planned: usize,
    /// Whether the sweep was interrupted before its end.
    pub interrupted: bool,
}

/// The maximum number of finished runs that wait to be stored. If the queue is full, the computing threads wait, so
/// memory stays bounded.
const QUEUE_LENGTH: usize = 64;

/// A function that is called with each run when it is stored.
type OnRun<'a> = &'a mut dyn FnMut(&SweepProgress<'_>, &RunRecord);

impl SimulatedSweep {
    /// Makes the runs that are not stored yet, and stores them if there is a store. The sweep stops early when
    /// `is_interrupted` returns true; finished runs stay stored.
    pub fn run(
        &self,
        outline: &Outline,
        points: &mut [Point],
        store: &mut Option<&mut Store>,
        threads: NonZeroUsize,
        is_interrupted: &(dyn Fn() -> bool + Sync),
        on_run: OnRun<'_>,
    ) -> Result<RunCounts, SimulationError> {
        let energy_of = outline.subject.energy_of;
        let folder = store.as_ref().map(|store| store.folder().to_owned());
        loop {
            // Runs are made in rounds: with any number of threads, a configuration that failed in one round is not
            // tried in the next.
            let (pending, planned) = outline.plan.next_round(points, energy_of);
            let mut counts = RunCounts {
                done: points.iter().map(|point| point.runs.len()).sum(),
                planned,
                interrupted: false,
            };
            if pending.is_empty() {
                return Ok(counts);
            }
            let next = AtomicUsize::new(0);
            let stop = AtomicBool::new(false);
            let compute = |sender: SyncSender<Result<RunRecord, SimulationError>>| {
                while !stop.load(Ordering::Relaxed) && !is_interrupted() {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = pending.get(index) else {
                        return;
                    };
                    let run = self.run_task(outline, *task, folder.as_deref());
                    if sender.send(run).is_err() {
                        return;
                    }
                }
            };
            let (sender, runs) = sync_channel(QUEUE_LENGTH);
            std::thread::scope(|scope| {
                // If the system starts fewer threads, those that started do the work.
                let started = (0..threads.get().min(pending.len()))
                    .map_while(|_| {
                        let sender = sender.clone();
                        std::thread::Builder::new()
                            .spawn_scoped(scope, || compute(sender))
                            .ok()
                    })
                    .count();
                if started == 0 {
                    return Err(SimulationError::NoThread);
                }
                drop(sender);
                // The queue is closed at the end of this scope; threads that wait for room in it then stop too.
                let runs = runs;
                let stored = store_runs(&runs, outline, points, store, on_run, &mut counts);
                stop.store(true, Ordering::Relaxed);
                stored
            })?;
            if is_interrupted() {
                counts.interrupted = true;
                return Ok(counts);
            }
        }
    }
}

/// Stores runs as they arrive. Runs that arrive during a commit share the next commit, because a commit costs far more
/// than a run.
fn store_runs(
    runs: &Receiver<Result<RunRecord, SimulationError>>,
    outline: &Outline,
    points: &mut [Point],
    store: &mut Option<&mut Store>,
    on_run: OnRun<'_>,
    counts: &mut RunCounts,
) -> Result<(), SimulationError> {
    let plan = &outline.plan;
    while let Ok(first) = runs.recv() {
        let mut batch = vec![first?];
        while let Some(more) = runs.try_recv().ok().filter(|_| batch.len() < QUEUE_LENGTH) {
            batch.push(more?);
        }
        let numbered = batch.into_iter().map(|run| (plan.id(run.task), run));
        let numbered: Vec<(u64, RunRecord)> = numbered.collect();
        if let Some(store) = store {
            store.record(&numbered)?;
        }
        for (_, run) in numbered {
            points[run.task.configuration].add(run.clone());
            counts.done += 1;
            let progress = SweepProgress {
                outline,
                points,
                done: counts.done,
                planned: counts.planned,
            };
            on_run(&progress, &run);
        }
    }
    Ok(())
}
