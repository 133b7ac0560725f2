//! Behaves like a training program: iterations on one GPU, or on several that exchange gradients.

use std::io::Write;
use std::time::{Duration, Instant};

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_sim::{GradientExchange, Job, Phase};

use super::marks::PhaseMarks;
use super::progress::ProgressPrinter;
use super::rank::Rank;
use super::{Amount, Finished, StandInError, seconds};

/// Runs a job with a single rank.
pub fn run_alone(
    rank: &Rank<'_>,
    amount: Amount,
    printer: &mut ProgressPrinter<'_, impl Write>,
) -> Result<Finished, StandInError> {
    let job = &rank.job;
    let batch = job.batch;
    let (iteration, count) = job.iterations();
    if let Amount::For(time) = amount {
        return run_for_time(rank, time, printer);
    }
    let started = rank.on_gpu.gpu.with_gpu(|live| live.now())?;
    let mut end = started;
    let mut done_before = 0;
    let mut progress = None;
    for (phases, iterations) in [(job.startup(), 1), (iteration, count), (job.last(), 1)] {
        if phases.is_empty() || iterations == 0 {
            continue;
        }
        rank.grant_iterations(phases, iterations)?;
        let is_work = !std::ptr::eq(phases, job.startup());
        let (at, reached) = rank.finish(|done| {
            let iterations = if is_work { done - done_before } else { 0 };
            printer.update(iterations, (iterations * batch).min(job.items))
        })?;
        if !is_work {
            done_before = reached.done;
        }
        (end, progress) = (at, Some(reached));
    }
    Ok(Finished {
        items: job.items,
        time: seconds(end - started),
        energy: progress.map_or(Joules::ZERO, |progress| progress.energy),
        p99: None,
    })
}

/// Runs a job with a single rank for a given time.
fn run_for_time(
    rank: &Rank<'_>,
    time: Seconds,
    printer: &mut ProgressPrinter<'_, impl Write>,
) -> Result<Finished, StandInError> {
    /// More iterations than any run can do.
    const UNLIMITED_ITERATIONS: u64 = u64::MAX / 4;
    /// So short that the end of no phase is missed and that lines are printed near the end of a step.
    const LONGEST_PAUSE: Duration = Duration::from_millis(20);
    let (iteration, _) = rank.job.iterations();
    let iteration = if iteration.is_empty() {
        rank.job.last()
    } else {
        iteration
    };
    let started = rank.grant_iterations(iteration, UNLIMITED_ITERATIONS)?;
    loop {
        let (now, progress) = rank.poll()?;
        let left = time - seconds(now - started);
        if left <= Seconds::ZERO {
            return Ok(Finished {
                items: progress.done * rank.job.batch,
                time: seconds(now - started),
                energy: progress.energy,
                p99: None,
            });
        }
        printer.update(progress.done, progress.done * rank.job.batch)?;
        let left = Duration::from_secs_f64(left.get().max(0.0005));
        std::thread::sleep(left.min(LONGEST_PAUSE));
    }
}

/// Runs several ranks: an iteration begins when the slowest rank has finished the one before and gradients
/// have been exchanged.
pub fn run_together(
    ranks: &[Rank<'_>],
    amount: Amount,
    exchange: GradientExchange,
    printer: &mut ProgressPrinter<'_, impl Write>,
) -> Result<Finished, StandInError> {
    let (_, count) = ranks[0].job.iterations();
    let batch = ranks[0].job.batch * ranks.len() as u64;
    let all: u64 = ranks.iter().map(|rank| rank.job.items).sum();
    let started = ranks[0].on_gpu.gpu.with_gpu(|live| live.now())?;
    let mut end = started;
    let mut energies = vec![Joules::ZERO; ranks.len()];
    let mut expected = Duration::ZERO;
    let marks: Vec<&PhaseMarks> = ranks.iter().map(|rank| &rank.marks).collect();
    let mut run_iteration =
        |phases: &dyn Fn(&Job) -> Vec<Phase>, is_startup: bool| -> Result<u64, StandInError> {
            let mut began = started;
            for rank in ranks {
                let mut phases = phases(&rank.job);
                if !is_startup {
                    phases.push(exposed_exchange(&rank.job, &phases, exchange));
                }
                let granted = rank.grant_iterations(&phases, 1)?;
                began = began.max(granted);
            }
            let this_started = Instant::now();
            for (rank, energy) in ranks.iter().zip(&mut energies) {
                let (at, progress) = rank.await_iteration(this_started + expected)?;
                end = end.max(at);
                *energy = progress.energy;
            }
            PhaseMarks::mark_together(&marks, end);
            // The next iteration takes as long as this one did, not counting the time until its end was noticed. The startup
            // says nothing about it.
            let taken = Duration::from_nanos(end.saturating_sub(began));
            expected = if is_startup {
                Duration::ZERO
            } else {
                taken.mul_f64(0.97)
            };
            Ok(end)
        };
    if !ranks[0].job.startup().is_empty() {
        run_iteration(&|job| job.startup().to_vec(), true)?;
    }
    let mut items = 0;
    let mut done = 0;
    let mut now = started;
    loop {
        let is_over = match amount {
            Amount::For(time) => seconds(now - started) >= time,
            _ => done >= count,
        };
        if is_over {
            break;
        }
        now = run_iteration(&|job| job.iterations().0.to_vec(), false)?;
        done += 1;
        items = done * batch;
        for rank in ranks {
            rank.marks.progress(rank.job.batch);
        }
        printer.update(done, items)?;
    }
    if !matches!(amount, Amount::For(_)) {
        if !ranks[0].job.last().is_empty() {
            now = run_iteration(&|job| job.last().to_vec(), false)?;
        }
        for rank in ranks {
            rank.marks.progress(rank.job.items - done * rank.job.batch);
        }
        items = all;
    }
    Ok(Finished {
        items,
        time: seconds(now - started),
        energy: energies.into_iter().sum(),
        p99: None,
    })
}

/// The exchange of gradients that follows these phases of an iteration. It uses the default clock, because the live clock
/// is not known before the iteration ends.
fn exposed_exchange(job: &Job, phases: &[Phase], exchange: GradientExchange) -> Phase {
    let exposed = exchange.exposed_after(job.backward_time(phases));
    Phase {
        name: job.phase_names().len(),
        load: job.exchange(exposed, exchange.activity),
    }
}
