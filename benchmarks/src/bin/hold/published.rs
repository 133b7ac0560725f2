//! The jobs of table 2 of batch_sizer_2021, and the power readings by which the paper's algorithms decide.

use anyhow::{Context, Result};
use sweetspot_control::hold::{CapOn, DeviceKnob, HoldConfig, HoldMode};
use sweetspot_papers::batch_sizer_2021::tables::read_jobs;
use sweetspot_quantity::{Megahertz, Ratio, Seconds, Watts};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome, Sensor};

use super::{CLOCKS, SIZES, hold_config, server};

/// The paper's algorithm, in three interpretations.
const BATCH_MODES: [HoldMode; 3] = [HoldMode::Paper, HoldMode::Text, HoldMode::Windowed];
/// The number of images in each data set of the paper.
const IMAGES: u64 = 10_000;
/// The time after which the readings of a fixed setting count, in seconds.
const SETTLED: f64 = 2.0;

/// The sensor that a control algorithm reads: the card's own readings for the paper's algorithms.
fn sensor(mode: HoldMode) -> Sensor {
    match mode.follows_paper() {
        true => Sensor::Instant,
        false => Sensor::Averaged,
    }
}

/// Runs the jobs of table 2 under every mode.
pub fn run_jobs() -> Result<()> {
    for job in read_jobs()? {
        let server = server(job.network, &job.dataset)?;
        print!(
            "{:2} {:15} {:8} {:4.0} W",
            job.job,
            job.network,
            job.dataset,
            job.power_cap.get()
        );
        for mode in HoldMode::ALL {
            let config = hold_config(mode, job.power_cap, &SIZES);
            let conditions = Conditions {
                sensor: sensor(mode),
                ..Conditions::steady(Seconds::new(600.0), 1)
            };
            let held = server.hold(config, &conditions)?;
            let s = &held.summary;
            print!(
                " | {mode} {:.0}/s {:.1} % w{}",
                s.items_per_s,
                100.0 * s.violation_share.map_or(f64::NAN, |share| share.get()),
                s.settle_windows
                    .map_or("-".to_owned(), |windows| windows.to_string()),
            );
        }
        println!();
    }
    Ok(())
}

/// A setting that stays the same, with its items per second and its highest reading in watts.
struct FixedSetting {
    items_per_s: f64,
    highest: f64,
}

/// Measures a setting that stays the same: a batch size, and a core clock if one is given.
fn measure_fixed(server: &SimulatedServer, batch: u64, clock: Option<f64>) -> Result<FixedSetting> {
    let knob = match clock {
        Some(clock) => DeviceKnob::CoreClock(vec![Megahertz::new(clock)]),
        None => DeviceKnob::None,
    };
    let mode = match clock {
        Some(_) => HoldMode::Dvfs,
        None => HoldMode::Windowed,
    };
    let config = HoldConfig {
        fixed_batch: batch,
        ..HoldConfig::new(mode, Watts::new(1000.0), vec![batch], knob)
    };
    let conditions = Conditions {
        sensor: Sensor::Instant,
        keep_readings: true,
        ..Conditions::steady(Seconds::new(60.0), 1)
    };
    let held = server.hold(config, &conditions)?;
    let settled = held
        .readings
        .iter()
        .filter(|read| read.from.get() >= SETTLED);
    let highest = settled.map(|read| read.power.get()).fold(0.0, f64::max);
    Ok(FixedSetting {
        items_per_s: held.summary.items_per_s,
        highest,
    })
}

/// Prints the highest reading and the throughput of every batch size, and of every clock at a batch of 16, for each job.
pub fn print_peaks() -> Result<()> {
    let mut gains = Vec::new();
    for job in read_jobs()? {
        let server = server(job.network, &job.dataset)?;
        let cap = job.power_cap.get();
        println!("{:2} {} {} {cap:.0} W", job.job, job.network, job.dataset);
        let mut best = [0.0_f64; 2];
        let settings = SIZES.map(|size| (size, None)).into_iter();
        for (batch, clock) in settings.chain(CLOCKS.map(|clock| (16, Some(clock)))) {
            let fixed = measure_fixed(&server, batch, clock)?;
            let name = clock.map_or(format!("batch {batch}"), |clock| format!("{clock} MHz"));
            let mark = if fixed.highest > cap { "over" } else { "" };
            println!(
                "   {name:>9} {:7.1}/s {:6.1} W {mark}",
                fixed.items_per_s, fixed.highest
            );
            let best = &mut best[usize::from(clock.is_some())];
            if fixed.highest <= cap {
                *best = best.max(fixed.items_per_s);
            }
        }
        let gain = 100.0 * (best[0] / best[1] - 1.0);
        println!("   best batch over best clock: {gain:+.1} %");
        gains.push((gain, job.job));
    }
    print_gains("best batch over best clock", &gains);
    Ok(())
}

/// The sensor with this name.
pub fn find_sensor(name: &str) -> Result<Sensor> {
    match name.to_lowercase().as_str() {
        "instant" => Ok(Sensor::Instant),
        "buffered" => Ok(Sensor::Buffered),
        "averaged" => Ok(Sensor::Averaged),
        _ => anyhow::bail!("give a sensor: instant, buffered or averaged"),
    }
}

/// Compares the paper's algorithms with DVFS over ten minutes and over the paper's 10,000 images. The arguments are the
/// sensor that both read, alpha and the seed.
pub fn compare_with_dvfs(arguments: &[String]) -> Result<()> {
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let sensor = find_sensor(argument(0).unwrap_or("instant"))?;
    let alpha = Ratio::new(argument(1).unwrap_or("0.8").parse()?);
    let seed = argument(2).unwrap_or("1").parse()?;
    let mut gains = [const { Vec::new() }; 6];
    for job in read_jobs()? {
        let server = server(job.network, &job.dataset)?;
        let run = |mode: HoldMode| {
            let config = HoldConfig {
                alpha,
                ..hold_config(mode, job.power_cap, &SIZES)
            };
            let conditions = Conditions {
                sensor,
                ..Conditions::steady(Seconds::new(600.0), seed)
            };
            server.hold(config, &conditions)
        };
        let dvfs = run(HoldMode::Dvfs)?;
        print!(
            "{:2} {:14} {:8} {:3.0} W dvfs {:6.1}/s {:4.0} MHz {:4.1} % over",
            job.job,
            job.network,
            job.dataset,
            job.power_cap.get(),
            dvfs.summary.items_per_s,
            dvfs.last.core_clock.map_or(f64::NAN, Megahertz::get),
            over(&dvfs)
        );
        for (index, mode) in BATCH_MODES.into_iter().enumerate() {
            let held = run(mode)?;
            let gain = held.summary.items_per_s / dvfs.summary.items_per_s - 1.0;
            let whole = speed_of_images(&held)? / speed_of_images(&dvfs)? - 1.0;
            gains[index].push((100.0 * gain, job.job));
            gains[3 + index].push((100.0 * whole, job.job));
            print!(
                " | {mode} {:+.1} ({:+.1}) % batch {} changes {} {:.1} % over",
                100.0 * gain,
                100.0 * whole,
                held.last.batch,
                held.summary.changes,
                over(&held)
            );
        }
        println!();
    }
    for (index, gains) in gains.iter().enumerate() {
        let (mode, over) = (BATCH_MODES[index % 3], ["ten minutes", "10,000 images"]);
        print_gains(&format!("{mode}, {}", over[index / 3]), gains);
    }
    Ok(())
}

/// Prints in how many jobs there is a gain, and the largest gain and loss.
fn print_gains(name: &str, gains: &[(f64, u64)]) {
    let ahead = gains.iter().filter(|(gain, _)| *gain > 0.0).count();
    let by_gain = |a: &&(f64, u64), b: &&(f64, u64)| a.0.total_cmp(&b.0);
    let ends = (gains.iter().max_by(by_gain), gains.iter().min_by(by_gain));
    if let (Some(highest), Some(lowest)) = ends {
        println!(
            "{name}: ahead in {ahead} of {}, most {:+.1} % in job {}, least {:+.1} % in job {}",
            gains.len(),
            highest.0,
            highest.1,
            lowest.0,
            lowest.1
        );
    }
}

/// The share of readings above the cap after settling, in percent.
fn over(held: &HoldOutcome) -> f64 {
    let share = held.summary.violation_share;
    100.0 * share.map_or(f64::NAN, |share| share.get())
}

/// The items per second of the first 10,000 images.
fn speed_of_images(held: &HoldOutcome) -> Result<f64> {
    let mut items = 0;
    let done = held.latencies.iter().find(|(_, _, count)| {
        items += count;
        items >= IMAGES
    });
    let (at, ..) = done.context("the job has fewer than 10,000 images")?;
    Ok(items as f64 / at.get())
}

/// Prints the readings of figure 2: Inception v3 on Caltech with batches of 32, 128 and 512.
pub fn print_figure_2() -> Result<()> {
    for (network, dataset, batch) in [
        ("inception_v3", "caltech", 32),
        ("inception_v3", "caltech", 128),
        ("inception_v3", "caltech", 512),
        ("mobilenet_v2", "imagenet", 16),
    ] {
        let server = server(network, dataset)?;
        let config = HoldConfig {
            cap_on: CapOn::Reading,
            ..HoldConfig::robust(Watts::new(1000.0), vec![batch])
        };
        let conditions = Conditions {
            sensor: Sensor::Instant,
            keep_readings: true,
            ..Conditions::steady(Seconds::new(12.0), 1)
        };
        let held = server.hold(config, &conditions)?;
        let settled = held
            .readings
            .iter()
            .filter(|read| read.from.get() >= SETTLED);
        let powers: Vec<f64> = settled.map(|read| read.power.get()).collect();
        let mut sorted = powers.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64) as usize];
        println!(
            "{network} {dataset} batch {batch}: lowest {:.0} W, median {:.0} W, highest {:.0} W",
            at(0.0),
            at(0.5),
            at(1.0)
        );
        let shown = powers.iter().take(60).map(|power| format!("{power:.0}"));
        println!("  {}", shown.collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
