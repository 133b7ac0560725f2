//! Compares `hold --knob auto` with the best fixed combination of batch size and device setting, found by trying all.

use std::time::Instant;

use anyhow::Result;
use sweetspot_control::hold::{DeviceKnob, HoldConfig, HoldMode, fine_batches};
use sweetspot_quantity::{Megahertz, Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, Variant, find_gpu};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{Conditions, HoldOutcome};

/// A GPU with caps in watts, and networks that its study measured in inference.
struct Case {
    gpu: &'static str,
    caps: &'static [f64],
    networks: &'static [&'static str],
}

const CASES: [Case; 3] = [
    Case {
        gpu: "nvidia_h200",
        caps: &[300.0, 400.0, 500.0, 600.0],
        networks: &[
            "resnet50@h200",
            "alexnet@h200",
            "googlenet@h200",
            "inception_v3@h200",
            "mobilenet_v2@h200",
            "resnet101@batch_sizer_2021",
        ],
    },
    Case {
        gpu: "tesla_p40",
        caps: &[130.0, 150.0, 180.0],
        networks: &[
            "googlenet",
            "inception_v3",
            "mobilenet_v1",
            "nasnet_mobile",
            "resnet50",
            "resnet152",
        ],
    },
    Case {
        gpu: "tesla_p100",
        caps: &[130.0, 160.0, 200.0],
        networks: &["alexnet", "googlenet", "resnet50", "vgg16"],
    },
];

/// The length of a hold, and of the run of a fixed combination.
const HOLD_TIME: Seconds = Seconds::new(300.0);
const FIXED_TIME: Seconds = Seconds::new(60.0);
/// The caps of the device that are tried, as shares of the cap.
const CAP_SHARES: [f64; 6] = [1.0, 0.9975, 0.995, 0.99, 0.98, 0.95];
/// The number of core clocks that are tried.
const CLOCKS: usize = 12;
/// The latency bound, as a multiple of the latency of this batch size at the cap.
const LATENCY_FACTOR: f64 = 1.5;
const LATENCY_BATCH: u64 = 24;

/// The hold and the fixed combinations must meet these.
struct Limits {
    cap: Watts,
    latency: Option<Seconds>,
}

/// Runs all cases with and without the right to set the device, and with and without a latency bound.
pub fn run(seed: u64) -> Result<()> {
    let begun = Instant::now();
    let (mut runs, mut lowest, mut longest) = (0, f64::INFINITY, 0);
    let mut missed = 0;
    let only = std::env::args().nth(3);
    for case in CASES {
        if only.as_ref().is_some_and(|only| only != case.gpu) {
            continue;
        }
        let (_, profile) = find_gpu(case.gpu)?;
        for network in case.networks {
            let variant = Variant {
                mode: Some(Mode::Infer),
                ..Variant::default()
            };
            let server = SimulatedServer::new(case.gpu, network, &variant)?;
            for cap in case.caps.iter().copied().map(Watts::new) {
                for (may_set, has_bound) in
                    [(true, false), (true, true), (false, false), (false, true)]
                {
                    let bound = || latency_at(&server, cap, may_set, seed);
                    let limits = Limits {
                        cap,
                        latency: has_bound.then(bound).transpose()?,
                    };
                    let label = format!(
                        "{} {network} {cap}{}{}",
                        case.gpu,
                        if may_set { "" } else { ", batch size only" },
                        limits.latency.map_or(String::new(), |bound| format!(
                            ", p99 at most {:.1} ms",
                            1e3 * bound.get()
                        ))
                    );
                    let Some(best) = best_fixed(&server, &profile, &limits, may_set, seed)? else {
                        println!("  {label}: no combination meets the limits");
                        continue;
                    };
                    let mut config = automatic(&profile, cap, may_set, fine_batches(256));
                    config.latency_p99 = limits.latency;
                    let held = server.hold(config, &Conditions::steady(HOLD_TIME, seed))?;
                    let share = settled_rate(&held) / best;
                    let above = violation(&held);
                    let windows = held.summary.settle_windows.unwrap_or(u64::MAX);
                    (runs, lowest) = (runs + 1, share.min(lowest));
                    longest = longest.max(windows);
                    if share < 0.99 || above >= 0.01 || windows > 20 {
                        missed += 1;
                        println!(
                            "  {label}: {:.1} % of {best:.0}/s at {:?}, {:.2} % above the cap, settled after {windows} windows",
                            100.0 * share,
                            held.last,
                            100.0 * above
                        );
                    }
                }
            }
        }
    }
    println!(
        "auto: {runs} runs in {:.1} s; throughput at least {:.1} % of the best fixed combination; settled within {longest} windows; {missed} below 99 %, 1 % of the time above the cap, or later than 20 windows",
        begun.elapsed().as_secs_f64(),
        100.0 * lowest
    );
    Ok(())
}

/// The configuration that `--knob auto` chooses.
fn automatic(profile: &GpuProfile, cap: Watts, may_set: bool, sizes: Vec<u64>) -> HoldConfig {
    let range = (profile.cap.min, profile.cap.max);
    match may_set && range.0 <= cap {
        true => HoldConfig::with_device_cap(cap, sizes, range),
        false => HoldConfig::robust(cap, sizes),
    }
}

/// The highest rate of a fixed combination that meets the limits; `None` if none does.
fn best_fixed(
    server: &SimulatedServer,
    profile: &GpuProfile,
    limits: &Limits,
    may_set: bool,
    seed: u64,
) -> Result<Option<f64>> {
    let mut knobs = vec![DeviceKnob::None];
    if may_set {
        let caps = CAP_SHARES.map(|share| limits.cap * share);
        let caps = caps.into_iter().filter(|cap| *cap >= profile.cap.min);
        knobs.extend(caps.map(|cap| DeviceKnob::PowerCap(vec![cap])));
        let (low, high) = (profile.core.min.get(), profile.core.max.get());
        let clock = |n: usize| low + (high - low) * n as f64 / (CLOCKS - 1) as f64;
        let clocks = (CLOCKS / 3..CLOCKS).map(clock).map(Megahertz::new);
        knobs.extend(clocks.map(|clock| DeviceKnob::CoreClock(vec![clock])));
    }
    let mut best: Option<f64> = None;
    for knob in knobs {
        for size in fine_batches(256) {
            let mode = match knob {
                DeviceKnob::None => HoldMode::Robust,
                _ => HoldMode::Joint,
            };
            let config = HoldConfig::new(mode, limits.cap, vec![size], knob.clone());
            let fixed = server.hold(config, &Conditions::steady(FIXED_TIME, seed))?;
            let p99 = fixed.latency_p99(FIXED_TIME / 4.0);
            let is_quick = limits
                .latency
                .is_none_or(|bound| p99.is_some_and(|p99| p99 <= bound));
            let rate = settled_rate(&fixed);
            if violation(&fixed) < 0.01 && is_quick && best.is_none_or(|best| rate > best) {
                best = Some(rate);
            }
        }
    }
    Ok(best)
}

/// A latency bound that some batch sizes meet and others do not.
fn latency_at(server: &SimulatedServer, cap: Watts, may_set: bool, seed: u64) -> Result<Seconds> {
    let knob = match may_set {
        true => DeviceKnob::PowerCap(vec![cap]),
        false => DeviceKnob::None,
    };
    let mode = match may_set {
        true => HoldMode::Joint,
        false => HoldMode::Robust,
    };
    let config = HoldConfig::new(mode, cap, vec![LATENCY_BATCH], knob);
    let fixed = server.hold(config, &Conditions::steady(FIXED_TIME, seed))?;
    let p99 = fixed.latency_p99(FIXED_TIME / 4.0);
    Ok(p99.unwrap_or(Seconds::new(1.0)) * LATENCY_FACTOR)
}

/// The share of the time after settling in which the mean power was above the cap.
fn violation(held: &HoldOutcome) -> f64 {
    held.summary
        .violation_share
        .map_or(0.0, |share| share.get())
}

/// The items per second after the setting has settled.
fn settled_rate(held: &HoldOutcome) -> f64 {
    let from = held.summary.settle_time.unwrap_or(held.summary.time / 2.0);
    let after = held.latencies.iter().filter(|(at, ..)| *at > from);
    let items: u64 = after.map(|(_, _, items)| items).sum();
    items as f64 / (held.summary.time - from).get()
}
