//! Measures how fast sweeps are: `cargo run --release -p sweetspot-benchmarks --bin sweep` after `cargo build --release`.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use sweetspot_benchmarks::NETWORKS;
use sweetspot_session::{Sweep, SweepOptions};
use sweetspot_study::{Definition, RunEnding, Store};

fn main() -> Result<()> {
    measure_stored_sweeps()?;
    measure_run_overhead()
}

/// Sweeps power_capping_2022 on the V100 twice, stored with its samples.
fn measure_stored_sweeps() -> Result<()> {
    const TARGET: f64 = 5.0;
    let folder = tempfile::tempdir()?;
    let mut stored = Vec::new();
    let mut times = Vec::new();
    for round in ["first", "second"] {
        let begun = Instant::now();
        let mut ends: Vec<RunEnding> = Vec::new();
        for network in NETWORKS {
            let sweep = Sweep::prepare(&Definition::simulated("v100", network))?;
            let place = folder.path().join(round).join(network);
            let mut store = Store::create(&place, &sweep.outline)?;
            let options = SweepOptions {
                threads: NonZeroUsize::new(2).context("two threads")?,
                ..SweepOptions::default()
            };
            sweep.run(Some(&mut store), &options, &mut ())?;
            ends.extend(store.runs()?.into_iter().map(|(_, run)| run.end));
        }
        times.push(begun.elapsed().as_secs_f64());
        stored.push((ends, read_samples(&folder.path().join(round))?));
    }
    let (runs, bytes) = (
        stored[0].0.len(),
        stored[0].1.iter().map(Vec::len).sum::<usize>(),
    );
    let hours: f64 = stored[0].0.iter().map(seconds).sum::<f64>() / 3600.0;
    println!(
        "{runs} runs, {hours:.0} hours of GPU time, stored with {:.0} MB of 20 ms samples: {:.2} s and {:.2} s on 2 threads; target {TARGET} s, {:.1} times faster; identical results: {}",
        bytes as f64 / 1e6,
        times[0],
        times[1],
        TARGET / times[1],
        stored[0] == stored[1],
    );
    Ok(())
}

fn seconds(end: &RunEnding) -> f64 {
    match end {
        RunEnding::Done(run) => run.time.get(),
        RunEnding::Failed(_) => 0.0,
    }
}

/// Reads every file of samples, in the order of their names.
fn read_samples(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for network in NETWORKS {
        for entry in std::fs::read_dir(folder.join(network).join("samples"))? {
            files.push(entry?.path());
        }
    }
    files.sort();
    files
        .into_iter()
        .map(|file| Ok(std::fs::read(file)?))
        .collect()
}

/// Measures the overhead of a run on a simulated host, without the command and the settle time. It is the difference
/// between a long and a short sweep, so that start and end do not count.
fn measure_run_overhead() -> Result<()> {
    const TARGET_MS: f64 = 30.0;
    const SETTLE: f64 = 0.3;
    let program = std::env::current_exe()?.with_file_name("sweetspot");
    if !program.exists() {
        bail!(
            "{} does not exist: run cargo build --release first",
            program.display()
        );
    }
    let folder = tempfile::tempdir()?;
    let sweep = |repeat: u32| -> Result<(f64, f64)> {
        let study = folder.path().join(repeat.to_string());
        let begun = Instant::now();
        let status = Command::new(&program)
            .args(["simulate", "--gpu", "v100", "--"])
            .arg(&program)
            .args([
                "sweep",
                "--power-cap",
                "160",
                "--reference",
                "power-cap=160",
            ])
            .args([
                "--repeat",
                &repeat.to_string(),
                "--settle",
                &SETTLE.to_string(),
            ])
            .arg("--study")
            .arg(&study)
            .args(["--", "sleep", "0.2"])
            .stdout(Stdio::null())
            .status()?;
        if !status.success() {
            bail!("the sweep failed");
        }
        let wall = begun.elapsed().as_secs_f64();
        let commands = Store::open(&study)?.runs()?;
        Ok((
            wall,
            commands.iter().map(|(_, run)| seconds(&run.end)).sum(),
        ))
    };
    let ((short, short_commands), (long, long_commands)) = (sweep(5)?, sweep(35)?);
    let each = (long - short - (long_commands - short_commands)) / 30.0;
    let overhead_ms = 1e3 * (each - SETTLE);
    println!(
        "a run on a simulated host has an overhead of {overhead_ms:.1} ms besides its command and the settle time of {SETTLE} s; target {TARGET_MS} ms, {:.1} times less",
        TARGET_MS / overhead_ms,
    );
    Ok(())
}
