//! How well a cap is held, in virtual time: `cargo run --release -p sweetspot-benchmarks --bin hold [PART]`.
//!
//! Parts: `jobs`, `caps`, `joint`, `sets`, `others`, `decision`; all of them where none is named.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_control::hold::{
    CompletedBatch, DeviceKnob, HoldConfig, HoldEvent, HoldMode, HoldNotice, Holder, PowerReading,
};
use sweetspot_papers::batch_sizer_2021::tables::batch_sizer_2021_jobs;
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::Variant;
use sweetspot_stats::Seed;
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome, Sensor};

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
/// A size that draws more than this part of a cap may or may not keep it.
const CLEARLY: f64 = 0.995;
const SENSORS: [Sensor; 2] = [Sensor::Averaged, Sensor::Buffered];

fn main() -> Result<()> {
    let part = std::env::args().nth(1);
    let is_asked = |name: &str| part.as_deref().is_none_or(|part| part == name);
    if is_asked("jobs") {
        jobs()?;
    }
    if is_asked("caps") {
        let step = std::env::args().nth(2).and_then(|step| step.parse().ok());
        every_cap(HoldMode::Robust, &SIZES, step.unwrap_or(1))?;
    }
    if is_asked("caps") || is_asked("joint") {
        every_cap(HoldMode::Joint, &SIZES, 5)?;
    }
    if is_asked("sets") {
        every_cap(
            HoldMode::Robust,
            &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            7,
        )?;
        every_cap(HoldMode::Robust, &[4, 100], 7)?;
        every_cap(HoldMode::Robust, &[16], 7)?;
        every_cap(HoldMode::Robust, &[1, 3, 10, 30, 100, 300], 7)?;
        let dense: Vec<u64> = (1..=256).collect();
        every_cap(HoldMode::Robust, &dense, 19)?;
    }
    if is_asked("others") {
        let seed = std::env::args().nth(2).and_then(|seed| seed.parse().ok());
        others(seed.unwrap_or(1))?;
    }
    if let Some("one") = part.as_deref() {
        return one();
    }
    if is_asked("decision") {
        decision()?;
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

fn terms(mode: HoldMode, cap: Watts, sizes: &[u64]) -> HoldConfig {
    let clocks = CLOCKS.iter().map(|clock| Megahertz::new(*clock));
    let knob = match mode.is_batch_only() {
        true => DeviceKnob::None,
        false => DeviceKnob::CoreClock(clocks.collect()),
    };
    HoldConfig::new(mode, cap, sizes.to_vec(), knob)
}

/// GPU NETWORK CAP MODE SENSOR SIZES SEED: every change.
fn one() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [gpu, network, cap, mode, sensor, sizes, seed] = arguments.as_slice() else {
        anyhow::bail!("GPU NETWORK CAP MODE SENSOR SIZES SEED");
    };
    let server = SimulatedServer::new(gpu, network, &Variant::default())?;
    let sizes: Vec<u64> = sizes.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let of_name = |one: &&HoldMode| one.name() == mode;
    let mode = HoldMode::ALL.iter().find(of_name).context("a mode")?;
    let conditions = Conditions {
        sensor: SENSORS[usize::from(sensor == "Buffered")],
        ..Conditions::steady(Seconds::new(600.0), seed.parse()?)
    };
    for (size, fixed) in sizes.iter().zip(fixed(&server, &sizes)?) {
        println!("{size:5}: {:7.1}/s {:6.2} W", fixed.rate, fixed.most);
    }
    let held = server.hold(terms(*mode, cap.parse()?, &sizes), &conditions)?;
    for (at, windows, setting) in held.changes.iter().take(60) {
        println!("{:8.2} s window {windows}: {setting:?}", at.get());
    }
    println!("{:?}\n{:#?}", held.notices, held.summary);
    Ok(())
}

/// The jobs of table 2 under every mode.
fn jobs() -> Result<()> {
    for job in batch_sizer_2021_jobs()? {
        let server = server(job.network, &job.dataset)?;
        print!(
            "{:2} {:15} {:8} {:4.0} W",
            job.job,
            job.network,
            job.dataset,
            job.power_cap.get()
        );
        for mode in HoldMode::ALL {
            let terms = terms(mode, job.power_cap, &SIZES);
            let held = server.hold(terms, &Conditions::steady(Seconds::new(600.0), 1))?;
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

/// A size alone: items a second, and the highest mean of a second.
struct Fixed {
    rate: f64,
    most: f64,
}

fn fixed(server: &SimulatedServer, sizes: &[u64]) -> Result<Vec<Fixed>> {
    let alone = |size: &u64| {
        let terms = HoldConfig::robust(Watts::new(1000.0), vec![*size]);
        let held = server.hold(terms, &Conditions::steady(Seconds::new(300.0), 1))?;
        let s = held.summary;
        Ok(Fixed {
            rate: s.items_per_s,
            // A size that does not fit into memory keeps no cap.
            most: s.largest_mean.map_or(f64::INFINITY, Watts::get),
        })
    };
    sizes.iter().map(alone).collect()
}

#[derive(Default)]
struct Worst {
    runs: u32,
    infeasible: u32,
    unsettled: u32,
    windows: u64,
    late_changes: u64,
    violation: f64,
    over: u32,
    rate: f64,
    short: u32,
    said: u32,
}

/// Every cap from 50 to 250 W on every network with either sensor.
fn every_cap(mode: HoldMode, sizes: &[u64], step: usize) -> Result<()> {
    let begun = Instant::now();
    let mut worst = Worst {
        rate: f64::INFINITY,
        ..Worst::default()
    };
    for network in NETWORKS {
        for dataset in DATASETS {
            let server = server(network, dataset)?;
            let fixed = fixed(&server, sizes)?;
            for (sensor, cap) in SENSORS
                .iter()
                .flat_map(|sensor| (50..=250).step_by(step).map(move |cap| (sensor, cap)))
            {
                let terms = terms(mode, Watts::new(f64::from(cap)), sizes);
                let conditions = Conditions {
                    sensor: *sensor,
                    ..Conditions::steady(Seconds::new(900.0), 1)
                };
                let held = server.hold(terms, &conditions)?;
                let found = look(&mut worst, &held, &fixed, f64::from(cap), mode);
                if let Some(found) = found {
                    println!("  {mode} {network} {dataset} {cap} W {sensor:?}: {found}");
                }
            }
        }
    }
    let what = format!("{mode}, {} sizes, caps in steps of {step} W", sizes.len());
    print_worst(&what, &worst, begun);
    Ok(())
}

fn print_worst(what: &str, worst: &Worst, begun: Instant) {
    println!(
        "{what}: {} runs in {:.1} s, {} infeasible; settled within {} windows, {} later; changes in the last half {}; violation at most {:.2} %, {} at or over 1 %; throughput at least {:.1} % of the best fixed size, {} below 97 %; said more than once in {}",
        worst.runs,
        begun.elapsed().as_secs_f64(),
        worst.infeasible,
        worst.windows,
        worst.unsettled,
        worst.late_changes,
        100.0 * worst.violation,
        worst.over,
        100.0 * worst.rate,
        worst.short,
        worst.said,
    );
}

/// Other GPUs, with caps, sizes and sensors as chance has them.
fn others(seed: u64) -> Result<()> {
    const CAPS: u64 = 12;
    let begun = Instant::now();
    let mut worst = Worst {
        rate: f64::INFINITY,
        ..Worst::default()
    };
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
        let chance = Seed::new(seed).label(gpu).label(network);
        let sizes = match chance.label("sizes").uniform() {
            below if below < 0.5 => SIZES.to_vec(),
            below if below < 0.75 => vec![1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64],
            _ => vec![2, 5, 12, 30, 75],
        };
        let Ok(server) = SimulatedServer::new(gpu, network, &Variant::default()) else {
            continue;
        };
        let fixed = fixed(&server, &sizes)?;
        let powers = || {
            fixed
                .iter()
                .map(|fixed| fixed.most)
                .filter(|most| most.is_finite())
        };
        let (least, most) = (
            powers().fold(f64::INFINITY, f64::min),
            powers().fold(0.0, f64::max),
        );
        for number in 0..CAPS {
            let chance = chance.number(number);
            let cap = least + (most - least) * (1.1 * chance.label("cap").uniform() - 0.05);
            let conditions = Conditions {
                sensor: SENSORS[usize::from(chance.label("sensor").uniform() < 0.5)],
                ..Conditions::steady(Seconds::new(600.0), number)
            };
            let terms = terms(HoldMode::Robust, Watts::new(cap), &sizes);
            let held = server.hold(terms, &conditions)?;
            if let Some(found) = look(&mut worst, &held, &fixed, cap, HoldMode::Robust) {
                println!(
                    "  {gpu} {network} {cap:.4}W robust {:?} {} {number}: {found}",
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
    print_worst("robust, other GPUs", &worst, begun);
    Ok(())
}

fn look(
    worst: &mut Worst,
    held: &HoldOutcome,
    fixed: &[Fixed],
    cap: f64,
    mode: HoldMode,
) -> Option<String> {
    let s = &held.summary;
    let mut found = Vec::new();
    worst.runs += 1;
    match s.settle_windows {
        Some(windows) if windows <= 15 => worst.windows = worst.windows.max(windows),
        other => {
            worst.unsettled += 1;
            found.push(format!("settled after {other:?} windows"));
        }
    }
    let half = s.time.get() / 2.0;
    let late = held.changes.iter().filter(|(at, ..)| at.get() > half);
    let late = late.count() as u64;
    worst.late_changes = worst.late_changes.max(late);
    if late > 4 {
        found.push(format!("{late} changes in the last half"));
    }
    let said =
        |notice: &&(Seconds, HoldNotice)| matches!(notice.1, HoldNotice::CapInfeasible { .. });
    if held.notices.iter().filter(said).count() > 1 {
        worst.said += 1;
        found.push("said infeasible more than once".to_owned());
    }
    let best = fixed
        .iter()
        .filter(|fixed| fixed.most <= CLEARLY * cap)
        .map(|fixed| fixed.rate)
        .fold(0.0, f64::max);
    let share = s.violation_share.map_or(0.0, |share| share.get());
    if best == 0.0 && mode.is_batch_only() {
        worst.infeasible += 1;
    } else if best > 0.0 {
        worst.violation = worst.violation.max(share);
        if share >= 0.01 {
            worst.over += 1;
            found.push(format!("{:.2} % over the cap", 100.0 * share));
        }
        let rate = s.items_per_s / best;
        worst.rate = worst.rate.min(rate);
        if rate < 0.97 {
            worst.short += 1;
            let clear = |one: &&Fixed| one.rate == best && one.most <= CLEARLY * cap;
            let drawn = fixed.iter().find(clear).map_or(0.0, |one| one.most);
            found.push(format!(
                "{:.1} % of the best, which draws {drawn:.1} W, at {:?}",
                100.0 * rate,
                held.last
            ));
        }
    }
    (!found.is_empty()).then(|| found.join(", "))
}

/// How long a decision takes: windows of ten batches with a reading after each.
fn decision() -> Result<()> {
    for (mode, sizes) in [
        (HoldMode::Robust, SIZES.to_vec()),
        (HoldMode::Robust, (1..=256).collect()),
        (HoldMode::Joint, SIZES.to_vec()),
        (HoldMode::Joint, (1..=256).collect()),
        (HoldMode::Windowed, SIZES.to_vec()),
    ] {
        let mut holder = Holder::new(terms(mode, Watts::new(150.0), &sizes))?;
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
        // The machine takes its own breaks: a handful of steps is left out.
        let of = |share: f64| 1e6 * times[(share * (times.len() - 1) as f64) as usize];
        println!(
            "a step of {mode} with {} sizes: {:.2} us in the middle, {:.2} us for 99.99 of 100; target 20 us",
            sizes.len(),
            of(0.5),
            of(0.9999)
        );
    }
    Ok(())
}
