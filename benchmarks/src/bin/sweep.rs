//! How fast sweeps are: `cargo run --release -p sweetspot-benchmarks --bin sweep` after `cargo build --release`.
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
    stored_sweeps()?;
    besides_the_command()
}

/// power_capping_2022 on the V100, kept with its samples, twice.
fn stored_sweeps() -> Result<()> {
    const TARGET: f64 = 5.0;
    let folder = tempfile::tempdir()?;
    let mut kept = Vec::new();
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
        kept.push((ends, samples(&folder.path().join(round))?));
    }
    let (runs, bytes) = (
        kept[0].0.len(),
        kept[0].1.iter().map(Vec::len).sum::<usize>(),
    );
    let hours: f64 = kept[0].0.iter().map(seconds).sum::<f64>() / 3600.0;
    println!(
        "{runs} runs, {hours:.0} hours of GPU time, kept with {:.0} MB of 20 ms samples: {:.2} s and {:.2} s on 2 threads; target {TARGET} s, {:.1} times faster than that; same bits: {}",
        bytes as f64 / 1e6,
        times[0],
        times[1],
        TARGET / times[1],
        kept[0] == kept[1],
    );
    Ok(())
}

fn seconds(end: &RunEnding) -> f64 {
    match end {
        RunEnding::Done(run) => run.time.get(),
        RunEnding::Failed(_) => 0.0,
    }
}

/// Every file of samples, by name.
fn samples(folder: &Path) -> Result<Vec<Vec<u8>>> {
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

/// What a run takes besides its command's own time and the settling, on a simulated host: the difference
/// between a long and a short sweep, so that beginning and end do not count.
fn besides_the_command() -> Result<()> {
    const TARGET_MS: f64 = 30.0;
    const SETTLE: f64 = 0.3;
    let program = std::env::current_exe()?.with_file_name("sweetspot");
    if !program.exists() {
        bail!(
            "{} is not there: cargo build --release first",
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
    let besides = 1e3 * (each - SETTLE);
    println!(
        "a run on a simulated host takes {besides:.1} ms besides its command and the {SETTLE} s of settling; target {TARGET_MS} ms, {:.1} times less than that",
        TARGET_MS / besides,
    );
    Ok(())
}
