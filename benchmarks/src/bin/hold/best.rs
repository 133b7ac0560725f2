//! Compares `hold --knob auto` with the best fixed combination of batch size and device setting, found by trying all:
//! `hold best [SEED [GPU [CAPS NETWORKS]]]`, where caps in watts and networks are separated by commas.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_control::hold::{HoldConfig, fine_batches};
use sweetspot_quantity::{Seconds, Watts};
use sweetspot_sim::{GpuProfile, Mode, Variant, find_gpu};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::Conditions;

use crate::fixed::{
    BelowCap, Combination, FixedCombinations, HOLD_TIME, MAX_EXCESS, Setting, excess_share,
    settled_rate,
};

/// A GPU with caps in watts, and networks in inference.
#[derive(Clone, Debug)]
struct Case {
    gpu: String,
    caps: Vec<f64>,
    networks: Vec<String>,
}

/// The GPUs that are tried by default, with their caps and networks.
const CASES: [(&str, &[f64], &str); 3] = [
    (
        "nvidia_h200",
        &[300.0, 400.0, 500.0, 600.0],
        "resnet50@h200,alexnet@h200,googlenet@h200,inception_v3@h200,mobilenet_v2@h200,resnet101@batch_sizer_2021",
    ),
    (
        "tesla_p40",
        &[130.0, 150.0, 180.0],
        "googlenet,inception_v3,mobilenet_v1,nasnet_mobile,resnet50,resnet152",
    ),
    (
        "tesla_p100",
        &[130.0, 160.0, 200.0],
        "alexnet,googlenet,resnet50,vgg16,resnet101@batch_sizer_2021,inception_v3@batch_sizer_2021",
    ),
];

/// The least throughput, as a share of that of the best fixed combination.
const LEAST_SHARE: f64 = 0.99;
/// The largest number of windows until the setting has settled.
const MOST_WINDOWS: u64 = 20;
/// The latency bound, as a multiple of the latency of this batch size at the cap.
const LATENCY_FACTOR: f64 = 1.5;
const LATENCY_BATCH: u64 = 24;

/// The results of one hold next to the best fixed combination.
struct Comparison {
    /// The items per second, as a share of those of the best fixed combination.
    share: f64,
    /// The share of the time above the cap.
    excess: f64,
    /// The number of windows until the setting has settled.
    windows: u64,
    /// Whether the 99th percentile of the latency after settling is at most the bound.
    is_quick: bool,
}

impl Comparison {
    fn is_met(&self) -> bool {
        self.share >= LEAST_SHARE
            && self.excess < MAX_EXCESS
            && self.windows <= MOST_WINDOWS
            && self.is_quick
    }
}

/// Runs all cases with and without the right to set the device, and with and without a latency bound.
pub fn run(arguments: &[String]) -> Result<()> {
    let begun = Instant::now();
    let seed = arguments.first().map_or(Ok(1), |seed| seed.parse())?;
    let cases = cases(arguments.get(1..).unwrap_or_default())?;
    let jobs: Vec<(usize, &str)> = cases
        .iter()
        .enumerate()
        .flat_map(|(case, named)| named.networks.iter().map(move |name| (case, name.as_str())))
        .collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> Result<()> {
        while let Some((case, network)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compared = compare_network(&cases[*case], network, seed);
            let compared = compared.with_context(|| format!("{} {network}", cases[*case].gpu))?;
            let mut results = results
                .lock()
                .map_err(|_| anyhow::anyhow!("a thread failed"))?;
            results.extend(compared.into_iter().map(|result| (*case, result)));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let failed = |_| anyhow::anyhow!("a thread failed");
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(failed)?)
    })?;
    let results = results
        .lock()
        .map_err(|_| anyhow::anyhow!("a thread failed"))?;
    print_table(&cases, &results);
    println!("seed {seed}, {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The cases that the arguments GPU, CAPS and NETWORKS name.
fn cases(arguments: &[String]) -> Result<Vec<Case>> {
    let split = |names: &str| names.split(',').map(str::to_owned).collect();
    if let [gpu, caps, networks] = arguments {
        return Ok(vec![Case {
            gpu: gpu.clone(),
            caps: caps.split(',').map(str::parse).collect::<Result<_, _>>()?,
            networks: split(networks),
        }]);
    }
    let only = arguments.first();
    let known = CASES.iter().map(|(gpu, caps, networks)| Case {
        gpu: (*gpu).to_owned(),
        caps: caps.to_vec(),
        networks: split(networks),
    });
    Ok(known
        .filter(|case| only.is_none_or(|only| *only == case.gpu))
        .collect())
}

/// Prints one line for each GPU, with and without the right to set it.
fn print_table(cases: &[Case], results: &[(usize, (bool, Comparison))]) {
    println!(
        "{:14} {:12} {:>4} {:>10} {:>14} {:>15} {:>6}",
        "GPU", "sets", "runs", "least rate", "most above cap", "settled within", "missed"
    );
    for (index, case) in cases.iter().enumerate() {
        for may_set in [true, false] {
            let of_row = || {
                let matching = results.iter();
                matching
                    .filter(move |(case, (set, _))| *case == index && *set == may_set)
                    .map(|(_, (_, result))| result)
            };
            println!(
                "{:14} {:12} {:4} {:8.1} % {:12.2} % {:7} windows {:6}",
                case.gpu,
                if may_set {
                    "GPU and batch"
                } else {
                    "batch only"
                },
                of_row().count(),
                100.0 * of_row().map(|r| r.share).fold(f64::INFINITY, f64::min),
                100.0 * of_row().map(|r| r.excess).fold(0.0, f64::max),
                of_row().map(|r| r.windows).max().unwrap_or(0),
                of_row().filter(|r| !r.is_met()).count(),
            );
        }
    }
}

/// Compares all holds of one network on one GPU; each result says whether the hold may set the device.
fn compare_network(case: &Case, network: &str, seed: u64) -> Result<Vec<(bool, Comparison)>> {
    let (_, profile) = find_gpu(&case.gpu)?;
    let variant = Variant {
        mode: Some(Mode::Infer),
        ..Variant::default()
    };
    let server = SimulatedServer::new(&case.gpu, network, &variant)?;
    let fixed = FixedCombinations::new(&server, &profile, seed)?;
    let mut results = Vec::new();
    for cap in case.caps.iter().copied().map(Watts::new) {
        for may_set in [true, false] {
            let setting = match may_set {
                true => Setting::Cap(cap),
                false => Setting::Nothing,
            };
            let p99 = fixed.latency_of(setting, LATENCY_BATCH)?;
            let bound = p99.context("no batch was completed")? * LATENCY_FACTOR;
            let mut below = fixed.below(cap, may_set)?;
            for bound in [None, Some(bound)] {
                let label = format!(
                    "{} {network} {cap}{}{}",
                    case.gpu,
                    if may_set { "" } else { ", batch size only" },
                    bound.map_or(String::new(), |bound: Seconds| format!(
                        ", p99 at most {:.1} ms",
                        1e3 * bound.get()
                    ))
                );
                let mut config = automatic(&profile, cap, may_set);
                config.latency_p99 = bound;
                let compared = compare(&label, &server, config, &mut below, seed)?;
                results.extend(compared.map(|compared| (may_set, compared)));
            }
        }
    }
    Ok(results)
}

/// Compares one hold with the best fixed combination; `None` if no combination meets the limits.
fn compare(
    label: &str,
    server: &SimulatedServer,
    config: HoldConfig,
    below: &mut BelowCap,
    seed: u64,
) -> Result<Option<Comparison>> {
    let bound = config.latency_p99;
    let Some(best) = below.best(bound)? else {
        println!("  {label}: no combination meets the limits");
        return Ok(None);
    };
    let held = server.hold(config, &Conditions::steady(HOLD_TIME, seed))?;
    let from = held.summary.settle_time.unwrap_or(HOLD_TIME / 2.0);
    let p99 = held.latency_p99(from);
    let result = Comparison {
        share: settled_rate(&held) / best.rate,
        excess: excess_share(&held),
        windows: held.summary.settle_windows.unwrap_or(u64::MAX),
        is_quick: bound.is_none_or(|bound| p99.is_some_and(|p99| p99 <= bound)),
    };
    if !result.is_met() {
        let Combination {
            setting,
            batch,
            rate,
            ..
        } = best;
        println!(
            "  {label}: {:.1} % of {rate:.0}/s (batch {batch}, {setting:?}) at batch {} {:?} {:?}, {:.2} % above the cap, settled after {} windows{}",
            100.0 * result.share,
            held.last.batch,
            held.last.power_cap,
            held.last.core_clock,
            100.0 * result.excess,
            result.windows,
            if result.is_quick { "" } else { ", too slow" },
        );
    }
    Ok(Some(result))
}

/// The configuration that `--knob auto` chooses.
fn automatic(profile: &GpuProfile, cap: Watts, may_set: bool) -> HoldConfig {
    let range = (profile.cap.min, profile.cap.max);
    let sizes = fine_batches(256);
    match may_set && range.0 <= cap {
        true => HoldConfig::with_device_cap(cap, sizes, range),
        false => HoldConfig::robust(cap, sizes),
    }
}
