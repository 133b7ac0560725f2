//! Measures how fast the simulator is: `cargo run --release -p sweetspot-benchmarks --bin simulator`.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::num::NonZeroUsize;
use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_benchmarks::{GPUS, NETWORKS};
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_session::{Sweep, SweepOptions};
use sweetspot_sim::{
    Chip, Job, JobRequest, Limits, ScaledWork, State, Trace, Variant, Variation, find_gpu,
    find_workload, run,
};
use sweetspot_study::{Definition, Point, RunEnding, Study};

const HOUR: f64 = 3600.0;

fn main() -> Result<()> {
    measure_twelve_sweeps()?;
    for network in NETWORKS {
        measure_virtual_hour(network)?;
    }
    Ok(())
}

/// Runs all sweeps of power_capping_2022 on one thread and on two.
fn measure_twelve_sweeps() -> Result<()> {
    const TARGET: f64 = 5.0;
    let mut times = Vec::new();
    let mut results = Vec::new();
    for threads in [1, 2] {
        let begun = Instant::now();
        let mut studies = Vec::new();
        for gpu in GPUS {
            for network in NETWORKS {
                let options = SweepOptions {
                    threads: NonZeroUsize::new(threads).context("at least one thread")?,
                    ..SweepOptions::default()
                };
                let sweep = Sweep::prepare(&Definition::simulated(gpu, network))?;
                studies.push(sweep.run(None, &options, &mut ())?);
            }
        }
        times.push(begun.elapsed().as_secs_f64());
        results.push(studies);
    }
    let runs: usize = results[0]
        .iter()
        .flat_map(|study| &study.points)
        .map(|point| point.runs.len())
        .sum();
    let simulated: f64 = results[0]
        .iter()
        .flat_map(|study| &study.points)
        .flat_map(Point::results)
        .map(|run| run.time.get())
        .sum();
    let ends = |studies: &[Study]| -> Vec<RunEnding> {
        let points = studies.iter().flat_map(|study| &study.points);
        let runs = points.flat_map(|point| &point.runs);
        runs.map(|run| run.end.clone()).collect()
    };
    let is_identical = ends(&results[0]) == ends(&results[1]);
    println!(
        "twelve sweeps: {runs} runs, {:.0} virtual hours: {:.3} s on 1 thread, {:.3} s on 2 ({:.2} times as fast); target {TARGET} s, {:.0} times faster; identical results: {is_identical}",
        simulated / HOUR,
        times[0],
        times[1],
        times[0] / times[1],
        TARGET / times[1],
    );
    Ok(())
}

/// Simulates an hour of training under a cap with 20 ms samples, and compares it with fixed steps of a millisecond.
fn measure_virtual_hour(network: &str) -> Result<()> {
    const TARGET_MS: f64 = 10.0;
    let (name, gpu) = find_gpu("v100")?;
    let workload = find_workload(network, gpu.study.as_deref(), &Variant::default())?;
    let work = ScaledWork::on(&workload.profile, &name, &gpu, |_| None)?;
    let chip = Chip::new(&gpu);
    let limits = chip.limits(Watts::new(200.0), None, None);
    let job = |items| {
        let request = JobRequest {
            batch: None,
            items: Some(items),
        };
        Job::new(&workload.profile, &work, &gpu, request, Variation::NONE)
    };
    let trial = run(
        &chip,
        &mut chip.rest_state(),
        &limits,
        &job(10_000)?,
        &mut (),
    );
    let items = (HOUR / (trial.time.get() / 10_000.0)) as u64;
    let job = job(items)?;

    let mut best = f64::INFINITY;
    let (mut samples, mut energy, mut time) = (0, 0.0, 0.0);
    for _ in 0..5 {
        let begun = Instant::now();
        let mut trace = Trace::every(Seconds::new(0.020));
        let outcome = run(&chip, &mut chip.rest_state(), &limits, &job, &mut trace);
        best = best.min(begun.elapsed().as_secs_f64());
        (samples, energy, time) = (
            trace.watts().len(),
            outcome.energy.get(),
            outcome.time.get(),
        );
    }

    let begun = Instant::now();
    let (plain_time, plain_energy) = simulate_in_millisecond_steps(&chip, &limits, &job);
    let plain = begun.elapsed().as_secs_f64();
    println!(
        "a virtual hour of {network}, {samples} samples: {:.2} ms; target {TARGET_MS} ms, {:.1} times faster; {:.0} times faster than steps of 1 ms, which differ by {:.3} % in time and {:.3} % in energy",
        1e3 * best,
        TARGET_MS / (1e3 * best),
        plain / best,
        100.0 * (plain_time / time - 1.0),
        100.0 * (plain_energy / energy - 1.0),
    );
    Ok(())
}

fn simulate_in_millisecond_steps(chip: &Chip, limits: &Limits, job: &Job) -> (f64, f64) {
    let mut state: State = chip.rest_state();
    let mut time = 0.0;
    let (iteration, count) = job.iterations();
    for _ in 0..count {
        for phase in iteration {
            let mut left = Ratio::new(1.0);
            while left > Ratio::ZERO {
                let step = chip.step(&mut state, limits, &phase.load, left, Seconds::new(0.001));
                left -= step.done;
                time += step.time.get();
            }
        }
    }
    (time, state.energy().get())
}
