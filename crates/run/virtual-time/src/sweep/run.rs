//! Makes the runs of a simulated sweep: every thread computes runs, one thread stores them.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sweetspot_study::{Outline, Point, RunRecord, Store, SweepProgress};

use super::SimulatedSweep;
use crate::SimulationError;

/// The runs of a sweep when it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCounts {
    /// The number of runs that are done.
    pub done: usize,
    /// The number of runs in all, as far as it is known.
    pub planned: usize,
    /// Whether the sweep was interrupted before its end.
    pub interrupted: bool,
}

/// The largest number of runs that wait to be stored: a full queue holds back the computation, so that memory
/// stays bounded.
const QUEUE_LENGTH: usize = 64;

/// Receives each run when it is stored.
type OnRun<'a> = &'a mut dyn FnMut(&SweepProgress<'_>, &RunRecord);

impl SimulatedSweep {
    /// Makes the runs that are missing, and stores them if there is a store. It stops early when `is_interrupted`
    /// returns true; finished runs are kept.
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
            // Runs are made in rounds, so that a configuration that failed is not tried again, whatever the
            // number of threads.
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
                // The queue ends with this scope, so that threads that wait for room in it stop too.
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

/// Stores runs as they arrive. Those that have arrived in the meantime share a commit, because a commit costs far
/// more than a run.
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
