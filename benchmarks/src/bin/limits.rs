//! The time of a decision about what limits a load, and the CPU time of reading the counters that it needs, relative to
//! their targets.
//!
//! The counters are read on the simulated NVML library: `sweetspot simulate --gpu nvidia_h200 -- limits`. Without a host
//! only the decision is timed.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use sweetspot_control::limit::{LoadEvidence, LoadLimit};
use sweetspot_device::{
    Clock, Device, Moment, MonotonicClock, ThrottleTimes, UnitUse, UnitUseReading,
};
use sweetspot_measure::{LimitReadings, MethodChoice, Recorder};
use sweetspot_quantity::{Ratio, Watts};
use sweetspot_stats::Seed;

/// The longest time that a decision with its sentence may take, in seconds.
const TARGET: f64 = 50e-6;
/// The largest share of a core that reading the counters may take.
const READING_TARGET: f64 = 1e-3;
/// The number of reads of each GPU that are timed.
const READS: u32 = 200;
/// The number of decisions that are timed.
const DECISIONS: u64 = 200_000;

/// Draws a load at random; each value is missing in one of four cases.
fn draw_load(seed: Seed) -> LoadEvidence {
    let value = |label| {
        let seed = seed.label(label);
        (seed.label("known").uniform() < 0.75).then(|| seed.label("value").uniform())
    };
    let share = |label| value(label).map(Ratio::new);
    LoadEvidence {
        power: value("power").map(|share| Watts::new(700.0 * share)),
        power_cap: value("cap").map(|share| Watts::new(200.0 + 500.0 * share)),
        throttled_by_cap: share("capped"),
        throttled_by_heat: share("heat"),
        throttled_by_brake: share("brake"),
        utilisation: share("utilisation"),
        units: UnitUse {
            cores: share("cores"),
            tensor: share("tensor"),
            memory: share("memory"),
        },
    }
}

fn main() -> Result<()> {
    time_decisions();
    time_readings()
}

fn time_decisions() {
    let loads: Vec<LoadEvidence> = (0..1000).map(|n| draw_load(Seed::new(n))).collect();
    let begin = Instant::now();
    for number in 0..DECISIONS {
        let load = &loads[(number % 1000) as usize];
        black_box(LoadLimit::decide(black_box(load)).to_string());
    }
    let each = begin.elapsed().as_secs_f64() / DECISIONS as f64;
    println!(
        "a decision and its sentence: {:.2} us, {:.4} of the target of {:.0} us",
        each * 1e6,
        each / TARGET,
        TARGET * 1e6
    );
}

/// The CPU time of this thread so far, in seconds.
fn cpu_time() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().context("no CPU time")?;
    Ok(nanos.parse::<f64>()? * 1e-9)
}

/// The number of reads in a second that a sampler makes at most: many windows end in every second.
fn reads_per_second(device: &mut dyn Device) -> f64 {
    const SECONDS: u64 = 100;
    const STEP: u64 = 10_000_000;
    let mut recorder = Recorder::new(
        device.descriptor(),
        None,
        MethodChoice::Auto,
        Moment::from_nanos(0),
    );
    let mut reads = 0;
    for step in 0..SECONDS * 1_000_000_000 / STEP {
        let now = Moment::from_nanos(step * STEP);
        recorder.mark(now);
        if recorder.limits_due() <= now {
            recorder.record_limits(LimitReadings {
                at: now,
                throttled: ThrottleTimes::default(),
                units: UnitUseReading::Unsupported,
                power_cap: None,
            });
            reads += 1;
        }
    }
    f64::from(reads) / SECONDS as f64
}

/// Times reads of throttle times, of the use of units (GPM) and of the enforced cap on every GPU of this host.
fn time_readings() -> Result<()> {
    if std::env::var_os("SWEETSPOT_NVML").is_none() {
        println!("no simulated host: reads of the counters are not timed");
        return Ok(());
    }
    for mut gpu in sweetspot_hosts::open_host()?.list()? {
        let device: &mut dyn Device = gpu.as_mut();
        let rate = reads_per_second(device);
        let begin = cpu_time()?;
        let mut known = 0;
        for _ in 0..READS {
            let readings = black_box(LimitReadings::read(device, MonotonicClock.now()));
            known += u32::from(readings.throttled.power_cap.is_some());
            // As between the reads of a sampler, the simulated GPU has to advance.
            std::thread::sleep(Duration::from_millis(20));
        }
        let each = (cpu_time()? - begin) / f64::from(READS);
        let share = each * rate;
        println!(
            "{}: a read of the counters ({known} of {READS} with throttle times): {:.0} us of CPU time; at {rate:.2} reads a second {:.4} % of a core, {:.2} of the target of {:.1} %",
            device.descriptor().name,
            each * 1e6,
            share * 100.0,
            share / READING_TARGET,
            READING_TARGET * 100.0
        );
    }
    Ok(())
}
