//! Evaluates how well `hold` respects a cap, in virtual time:
//! `cargo run --release -p sweetspot-benchmarks --bin hold [PART]`.
//!
//! Parts: `jobs`, `caps`, `joint`, `sets`, `others`, `best`, `several`, `decision`; without a part, all of them run. `one` shows a single
//! hold. About batch_sizer_2021: `dvfs [SENSOR] [ALPHA] [SEED]` compares the paper's algorithms with its baseline, `peaks` shows the
//! highest reading of every batch size and clock in its jobs, and `figure-2` the readings of that figure.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod best;
mod evaluation;
mod fixed;
mod published;
mod several;

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_control::hold::{
    CompletedBatch, DeviceKnob, HoldConfig, HoldEvent, HoldMode, Holder, PowerReading, fine_batches,
};
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::Variant;
use sweetspot_stats::Seed;
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, Sensor};

use evaluation::{WorstResults, measure_fixed_sizes};

const CLOCKS: [f64; 10] = [
    544.0, 632.0, 734.0, 835.0, 949.0, 1063.0, 1189.0, 1303.0, 1430.0, 1531.0,
];
const SIZES: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
const NETWORKS: [&str; 10] = [
    "googlenet",
    "inception_v2",
    "inception_v3",
    "mobilenet_v1",
    "mobilenet_v2",
    "nasnet_mobile",
    "pnasnet_mobile",
    "resnet50",
    "resnet101",
    "resnet152",
];
const DATASETS: [&str; 2] = ["imagenet", "caltech"];
const SENSORS: [Sensor; 2] = [Sensor::Averaged, Sensor::Buffered];

fn main() -> Result<()> {
    let part = std::env::args().nth(1);
    let is_requested = |name: &str| part.as_deref().is_none_or(|part| part == name);
    if is_requested("jobs") {
        published::run_jobs()?;
    }
    match part.as_deref() {
        Some("dvfs") => {
            let arguments: Vec<String> = std::env::args().skip(2).collect();
            return published::compare_with_dvfs(&arguments);
        }
        Some("peaks") => return published::print_peaks(),
        Some("figure-2") => return published::print_figure_2(),
        _ => {}
    }
    if is_requested("caps") {
        let step = std::env::args().nth(2).and_then(|step| step.parse().ok());
        run_every_cap(HoldMode::Robust, &SIZES, step.unwrap_or(1))?;
    }
    if is_requested("caps") || is_requested("joint") {
        run_every_cap(HoldMode::Joint, &SIZES, 5)?;
    }
    if is_requested("sets") {
        run_every_cap(
            HoldMode::Robust,
            &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            7,
        )?;
        run_every_cap(HoldMode::Robust, &[4, 100], 7)?;
        run_every_cap(HoldMode::Robust, &[16], 7)?;
        run_every_cap(HoldMode::Robust, &[1, 3, 10, 30, 100, 300], 7)?;
        let dense: Vec<u64> = (1..=256).collect();
        run_every_cap(HoldMode::Robust, &dense, 19)?;
    }
    if is_requested("others") {
        let seed = std::env::args().nth(2).and_then(|seed| seed.parse().ok());
        run_other_gpus(seed.unwrap_or(1))?;
    }
    if is_requested("best") {
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        best::run(&arguments)?;
    }
    if is_requested("several") {
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        several::run(&arguments)?;
    }
    if let Some("one") = part.as_deref() {
        return run_one_hold();
    }
    if is_requested("decision") {
        measure_decisions()?;
    }
    Ok(())
}

fn server(network: &str, dataset: &str) -> Result<SimulatedServer> {
    let variant = Variant {
        dataset: Some(dataset.to_owned()),
        ..Variant::default()
    };
    Ok(SimulatedServer::new("tesla_p40", network, &variant)?)
}

fn hold_config(mode: HoldMode, cap: Watts, sizes: &[u64]) -> HoldConfig {
    let clocks = CLOCKS.iter().map(|clock| Megahertz::new(*clock));
    let knob = match mode.is_batch_only() {
        true => DeviceKnob::None,
        false => DeviceKnob::CoreClock(clocks.collect()),
    };
    HoldConfig::new(mode, cap, sizes.to_vec(), knob)
}

/// Runs one hold with the arguments GPU NETWORK CAP MODE SENSOR SIZES SEED, and prints every change of setting.
fn run_one_hold() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [gpu, network, cap, mode, sensor, sizes, seed] = arguments.as_slice() else {
        anyhow::bail!("give the arguments GPU NETWORK CAP MODE SENSOR SIZES SEED");
    };
    let server = SimulatedServer::new(gpu, network, &Variant::default())?;
    let sizes: Vec<u64> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let has_name = |known: &&HoldMode| known.name() == mode;
    let mode = HoldMode::ALL.iter().find(has_name);
    let mode = mode.context("unknown mode")?;
    let conditions = Conditions {
        sensor: published::find_sensor(sensor)?,
        ..Conditions::steady(Seconds::new(600.0), seed.parse()?)
    };
    for (size, fixed) in sizes.iter().zip(measure_fixed_sizes(&server, &sizes)?) {
        println!("{size:5}: {:7.1}/s {:6.2} W", fixed.rate, fixed.max_power);
    }
    let held = server.hold(hold_config(*mode, cap.parse()?, &sizes), &conditions)?;
    for (at, windows, setting) in held.changes.iter().take(60) {
        println!("{:8.2} s window {windows}: {setting:?}", at.get());
    }
    println!("{:?}\n{:#?}", held.notices, held.summary);
    Ok(())
}

/// Runs every cap from 50 to 250 W on every network with both sensors.
fn run_every_cap(mode: HoldMode, sizes: &[u64], step: usize) -> Result<()> {
    let begun = Instant::now();
    let mut worst = WorstResults::new();
    for network in NETWORKS {
        for dataset in DATASETS {
            let server = server(network, dataset)?;
            let fixed = measure_fixed_sizes(&server, sizes)?;
            for (sensor, cap) in SENSORS
                .iter()
                .flat_map(|sensor| (50..=250).step_by(step).map(move |cap| (sensor, cap)))
            {
                let config = hold_config(mode, Watts::new(f64::from(cap)), sizes);
                let conditions = Conditions {
                    sensor: *sensor,
                    ..Conditions::steady(Seconds::new(900.0), 1)
                };
                let held = server.hold(config, &conditions)?;
                let problems = worst.add(&held, &fixed, f64::from(cap), mode);
                if let Some(problems) = problems {
                    println!("  {mode} {network} {dataset} {cap} W {sensor:?}: {problems}");
                }
            }
        }
    }
    let title = format!("{mode}, {} sizes, caps in steps of {step} W", sizes.len());
    worst.print(&title, begun);
    Ok(())
}

/// Runs all GPUs and networks with random caps, sizes and sensors.
fn run_other_gpus(seed: u64) -> Result<()> {
    const CAPS_PER_JOB: u64 = 12;
    let begun = Instant::now();
    let mut worst = WorstResults::new();
    let gpus: Vec<String> = sweetspot_sim::gpus()?
        .into_iter()
        .map(|gpu| gpu.0)
        .collect();
    let networks: BTreeSet<String> = sweetspot_sim::workloads()?
        .into_iter()
        .map(|workload| workload.name)
        .collect();
    for (gpu, network) in gpus
        .iter()
        .flat_map(|gpu| networks.iter().map(move |network| (gpu, network)))
    {
        let draws = Seed::new(seed).label(gpu).label(network);
        let sizes = match draws.label("sizes").uniform() {
            below if below < 0.5 => SIZES.to_vec(),
            below if below < 0.75 => vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            _ => vec![2, 5, 12, 30, 75],
        };
        let Ok(server) = SimulatedServer::new(gpu, network, &Variant::default()) else {
            continue;
        };
        let fixed = measure_fixed_sizes(&server, &sizes)?;
        let powers = || {
            fixed
                .iter()
                .map(|fixed| fixed.max_power)
                .filter(|power| power.is_finite())
        };
        let (low, high) = (
            powers().fold(f64::INFINITY, f64::min),
            powers().fold(0.0, f64::max),
        );
        for number in 0..CAPS_PER_JOB {
            let draws = draws.number(number);
            let cap = low + (high - low) * (1.1 * draws.label("cap").uniform() - 0.05);
            let conditions = Conditions {
                sensor: SENSORS[usize::from(draws.label("sensor").uniform() < 0.5)],
                ..Conditions::steady(Seconds::new(600.0), number)
            };
            let config = hold_config(HoldMode::Robust, Watts::new(cap), &sizes);
            let held = server.hold(config, &conditions)?;
            if let Some(problems) = worst.add(&held, &fixed, cap, HoldMode::Robust) {
                println!(
                    "  {gpu} {network} {cap:.4}W robust {:?} {} {number}: {problems}",
                    conditions.sensor,
                    sizes
                        .iter()
                        .map(u64::to_string)
                        .collect::<Vec<_>>()
                        .join(","),
                );
            }
        }
    }
    worst.print("robust, other GPUs", begun);
    Ok(())
}

/// Measures the time of a decision, in windows of ten batches with a power reading after each batch.
fn measure_decisions() -> Result<()> {
    let dense: Vec<u64> = (1..=256).collect();
    let cap = Watts::new(150.0);
    let range = (Watts::new(100.0), Watts::new(400.0));
    let of_mode = |mode: HoldMode, sizes: &[u64]| {
        let name = format!("{mode} with {} sizes", sizes.len());
        (name, hold_config(mode, cap, sizes))
    };
    for (name, config) in [
        of_mode(HoldMode::Robust, &SIZES),
        of_mode(HoldMode::Robust, &dense),
        of_mode(HoldMode::Joint, &SIZES),
        of_mode(HoldMode::Joint, &dense),
        of_mode(HoldMode::Windowed, &SIZES),
        (
            "auto".to_owned(),
            HoldConfig::with_device_cap(cap, fine_batches(256), range),
        ),
    ] {
        let mut holder = Holder::new(config)?;
        let mut times = Vec::new();
        let steps = 200_000_u32;
        for step in 0..steps {
            let now = 0.1 * f64::from(step);
            let size = holder.setting().batch;
            let done = CompletedBatch {
                size,
                items: size,
                duration: Seconds::new(0.1),
                latency: None,
            };
            let reading = PowerReading {
                from: Seconds::new(now - 1.0),
                to: Seconds::new(now),
                power: Watts::new(100.0 + 10.0 * (size as f64).log2()),
            };
            for event in [
                HoldEvent::BatchCompleted(done),
                HoldEvent::PowerRead(reading),
            ] {
                let begun = Instant::now();
                std::hint::black_box(holder.step(Seconds::new(now), event));
                times.push(begun.elapsed().as_secs_f64());
            }
        }
        times.sort_by(f64::total_cmp);
        // The operating system interrupts a few steps, so the highest ones are left out.
        let quantile = |share: f64| 1e6 * times[(share * (times.len() - 1) as f64) as usize];
        println!(
            "a step of {name}: median {:.2} us, 99.99 % {:.2} us; target 50 us",
            quantile(0.5),
            quantile(0.9999)
        );
    }
    Ok(())
}
