//! `hold` on several GPUs of one job next to the best fixed combination of batch size and caps of the GPUs, and one cap
//! for all GPUs next to one for each: `hold several [SEED]`.
//!
//! The best combination comes from bisection: throughput falls with the time of a batch, and for each time there is a
//! lowest cap of each GPU. The fastest combinations are then simulated as long as a hold.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};
use sweetspot_benchmarks::mixes::{GpuMix, pascal_and_maxwell, random_mix, unequal_pair};
use sweetspot_control::hold::{
    CapDivision, DeviceKnob, HoldConfig, HoldMode, HoldSetting, fine_batches,
};
use sweetspot_control::tune::SettingsScope;
use sweetspot_quantity::{Ratio, Seconds, Watts};
use sweetspot_sim::{Mode, Variant};
use sweetspot_virtual_time::SimulatedServer;
use sweetspot_virtual_time::hold::{CapsOfGpus, Conditions, HoldOutcome};

use crate::fixed::{MAX_EXCESS, excess_share, settled_rate};

/// The length of a hold and of the runs with which it is compared.
const HOLD_TIME: Seconds = Seconds::new(240.0);
/// The total caps, as shares of what the job draws without a cap.
const CAP_SHARES: [f64; 3] = [0.7, 0.8, 0.9];
/// The number of random mixes.
const MIXES: u64 = 20;
/// The number of combinations that are simulated.
const SIMULATED: usize = 3;
/// The steps of a bisection.
const STEPS: usize = 24;
/// The largest batch size.
const LARGEST_BATCH: u64 = 256;
/// The power of a GPU that waits for others in a kernel, relative to computing.
const WAIT_ACTIVITY: Ratio = Ratio::new(0.4);

/// One job with one total cap.
struct Comparison {
    name: String,
    cap: f64,
    /// Items per second of the best fixed combination.
    best: f64,
    same: Held,
    each: Held,
}

/// The results of one hold.
struct Held {
    rate: f64,
    excess: f64,
    last: HoldSetting,
    caps: Vec<Watts>,
}

/// Runs all cases and prints a line for each, and a summary.
pub fn run(arguments: &[String]) -> Result<()> {
    let begun = Instant::now();
    let seed: u64 = arguments.first().map_or(Ok(1), |seed| seed.parse())?;
    let cases = cases(seed)?;
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<()> {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((name, server)) = cases.get(number / CAP_SHARES.len()) else {
                return Ok(());
            };
            let share = CAP_SHARES[number % CAP_SHARES.len()];
            let compared = compare(name, server, share, seed).with_context(|| name.clone())?;
            let mut results = results
                .lock()
                .map_err(|_| anyhow::anyhow!("a thread failed"))?;
            results.push((number, compared));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let failed = |_| anyhow::anyhow!("a thread failed");
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(failed)?)
    })?;
    let mut results = results
        .into_inner()
        .map_err(|_| anyhow::anyhow!("a thread failed"))?;
    results.sort_by_key(|(number, _)| *number);
    let all: Vec<Comparison> = results.into_iter().filter_map(|(_, one)| one).collect();
    let (mixed, named): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.name.starts_with("mix"));
    let (equal, unequal): (Vec<_>, Vec<_>) = named
        .into_iter()
        .partition(|one| one.name.contains("equal"));
    print_comparisons("equal GPUs", &equal);
    print_comparisons("unlike and unequal GPUs", &unequal);
    print_comparisons("random mixes", &mixed);
    println!("seed {seed}, {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// All jobs with their names.
fn cases(seed: u64) -> Result<Vec<(String, SimulatedServer)>> {
    let infer = Variant {
        mode: Some(Mode::Infer),
        ..Variant::default()
    };
    let mut cases = Vec::new();
    for (gpu, network) in [
        ("nvidia_h200", "resnet50@h200"),
        ("nvidia_h200", "mobilenet_v2@h200"),
        ("tesla_p40", "resnet50"),
        ("tesla_p40", "inception_v3"),
    ] {
        let equal = SimulatedServer::new(&format!("{gpu}:2"), network, &infer)?;
        cases.push((format!("2 equal {gpu}, {network}"), equal));
        let unequal = server(unequal_pair(gpu, network, &infer)?)?;
        cases.push((format!("{gpu} and one 10 % slower, {network}"), unequal));
    }
    for network in ["cnn2d", "resnet_gait", "resnet_im"] {
        let name = format!("2 Pascal + 2 Maxwell, {network}");
        cases.push((name, server(pascal_and_maxwell(network)?)?));
    }
    for number in 0..MIXES {
        let mix = random_mix(1000 * seed + number)?;
        let name = format!("mix {number}: {}", mix.names());
        let mut server = server(mix)?;
        // In half of the mixes GPUs wait for others in a kernel.
        if number % 2 == 1 {
            server.wait_activity = WAIT_ACTIVITY;
        }
        cases.push((name, server));
    }
    Ok(cases)
}

fn server(mix: GpuMix) -> Result<SimulatedServer> {
    Ok(SimulatedServer::from_profiles(mix.gpus, mix.workload)?)
}

/// What a job draws at its default caps, with the largest batch that fits into memory.
fn uncapped_power(server: &SimulatedServer) -> Result<Watts> {
    let highest: Vec<Watts> = server.cap_ranges().iter().map(|one| one.highest).collect();
    for batch in [LARGEST_BATCH, 128, 64, 16] {
        if let Some((_, powers)) = server.steady(batch, &highest)? {
            return Ok(powers.into_iter().sum());
        }
    }
    anyhow::bail!("no batch fits into memory")
}

/// Compares both holds of a job with the best fixed combination; `None` if the caps cannot be that low, or if no combination
/// keeps the cap.
fn compare(
    name: &str,
    server: &SimulatedServer,
    share: f64,
    seed: u64,
) -> Result<Option<Comparison>> {
    let range = CapDivision::range(&server.cap_ranges());
    let cap = uncapped_power(server)? * share;
    if cap < range.lowest {
        return Ok(None);
    }
    let held = |scope: SettingsScope| -> Result<Held> {
        let sizes = fine_batches(LARGEST_BATCH);
        let config = HoldConfig::with_device_cap(cap, sizes, (range.lowest, range.highest));
        let conditions = Conditions {
            caps_of_gpus: CapsOfGpus::Divided(scope),
            ..Conditions::steady(HOLD_TIME, seed)
        };
        Ok(results_of(&server.hold(config, &conditions)?))
    };
    let best = best_rate(server, cap, seed)?;
    if best <= 0.0 {
        return Ok(None);
    }
    Ok(Some(Comparison {
        name: name.to_owned(),
        cap: cap.get(),
        best,
        same: held(SettingsScope::Same)?,
        each: held(SettingsScope::Each)?,
    }))
}

fn results_of(held: &HoldOutcome) -> Held {
    Held {
        rate: settled_rate(held),
        excess: excess_share(held),
        last: held.last,
        caps: held
            .caps_of_gpus
            .last()
            .map_or(Vec::new(), |(_, caps)| caps.clone()),
    }
}

/// The items per second of the best fixed combination of batch size and caps.
fn best_rate(server: &SimulatedServer, cap: Watts, seed: u64) -> Result<f64> {
    let mut found: Vec<(f64, u64, Vec<Watts>)> = Vec::new();
    for batch in [
        4,
        8,
        16,
        24,
        32,
        48,
        64,
        96,
        128,
        160,
        192,
        224,
        LARGEST_BATCH,
    ] {
        if let Some((rate, caps)) = best_caps(server, batch, cap)? {
            found.push((rate, batch, caps));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut best = 0.0;
    for (_, batch, caps) in found.into_iter().take(SIMULATED) {
        // A GPU is a little above its cap now and then.
        for below in [1.0, 0.9975, 0.995, 0.99] {
            let caps: Vec<Watts> = caps.iter().map(|own| *own * below).collect();
            let knob = DeviceKnob::PowerCap(vec![caps.iter().copied().sum()]);
            let config = HoldConfig::new(HoldMode::Joint, cap, vec![batch], knob);
            let conditions = Conditions {
                caps_of_gpus: CapsOfGpus::Fixed(caps),
                ..Conditions::steady(HOLD_TIME, seed)
            };
            let run = server.hold(config, &conditions)?;
            if excess_share(&run) < MAX_EXCESS {
                best = f64::max(best, settled_rate(&run));
                break;
            }
        }
    }
    Ok(best)
}

/// The caps with the highest rate at a batch size whose powers stay below the total; `None` if the batch does not fit into
/// memory.
fn best_caps(
    server: &SimulatedServer,
    batch: u64,
    total: Watts,
) -> Result<Option<(f64, Vec<Watts>)>> {
    let ranges = server.cap_ranges();
    let highest: Vec<Watts> = ranges.iter().map(|range| range.highest).collect();
    let lowest: Vec<Watts> = ranges.iter().map(|range| range.lowest).collect();
    let Some((most, _)) = server.steady(batch, &highest)? else {
        return Ok(None);
    };
    let least = server.steady(batch, &lowest)?.map_or(0.0, |(rate, _)| rate);
    let (mut low, mut high, mut caps) = (least, most, lowest.clone());
    for _ in 0..STEPS {
        let rate = 0.5 * (low + high);
        let needed = caps_for(server, batch, rate * (1.0 - 1e-6), (&lowest, &highest))?;
        let powers = server.steady(batch, &needed)?.map(|(_, powers)| powers);
        let power: Watts = powers.into_iter().flatten().sum();
        match power <= total {
            true => (low, caps) = (rate, needed),
            false => high = rate,
        }
    }
    Ok(Some((low, caps)))
}

/// The lowest cap of each GPU with which the job has this rate.
fn caps_for(
    server: &SimulatedServer,
    batch: u64,
    rate: f64,
    (lowest, highest): (&[Watts], &[Watts]),
) -> Result<Vec<Watts>> {
    let mut caps = highest.to_vec();
    for gpu in 0..caps.len() {
        let (mut low, mut high) = (lowest[gpu], highest[gpu]);
        let reaches = |cap: Watts| -> Result<bool> {
            let mut caps = highest.to_vec();
            caps[gpu] = cap;
            let steady = server.steady(batch, &caps)?;
            Ok(steady.is_some_and(|(found, _)| found >= rate))
        };
        if reaches(low)? {
            caps[gpu] = low;
            continue;
        }
        while high - low > Watts::new(0.2) {
            let middle = (low + high) / 2.0;
            match reaches(middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        caps[gpu] = high;
    }
    Ok(caps)
}

/// Prints every comparison and a summary.
fn print_comparisons(title: &str, all: &[&Comparison]) {
    println!("{title}: items/s as a share of the best fixed combination, and time above the cap");
    println!("  cap [W]   best |   same  above |   each  above | batch and caps with each | job");
    for one in all {
        let caps: Vec<String> = one
            .each
            .caps
            .iter()
            .map(|cap| format!("{:.0}", cap.get()))
            .collect();
        println!(
            "{:9.0} {:6.0} | {:5.1} % {:4.2} % | {:5.1} % {:4.2} % | {} at {} | {}",
            one.cap,
            one.best,
            100.0 * one.same.rate / one.best,
            100.0 * one.same.excess,
            100.0 * one.each.rate / one.best,
            100.0 * one.each.excess,
            one.each.last.batch,
            caps.join("/"),
            one.name,
        );
    }
    let shares = |of: fn(&Comparison) -> f64| {
        let mut shares: Vec<f64> = all.iter().map(|one| 100.0 * of(one)).collect();
        shares.sort_by(f64::total_cmp);
        shares
    };
    let same = shares(|one| one.same.rate / one.best);
    let each = shares(|one| one.each.rate / one.best);
    let gain = shares(|one| one.each.rate / one.same.rate - 1.0);
    let (Some(same_least), Some(each_least)) = (same.first(), each.first()) else {
        return;
    };
    let worse = gain.iter().filter(|gain| **gain < -0.5).count();
    let above = |of: fn(&Comparison) -> f64| all.iter().filter(|one| of(one) >= MAX_EXCESS).count();
    println!(
        "{title}: of {} holds, share of the best: same median {:.1} %, least {same_least:.1} %; each median {:.1} %, least {each_least:.1} %, below 97 % {}; each against same: median {:+.1} %, least {:+.1} %, most {:+.1} %, worse by more than 0.5 % {worse}; above the cap for 1 % or more: same {}, each {}\n",
        all.len(),
        same[same.len() / 2],
        each[each.len() / 2],
        each.iter().filter(|share| **share < 97.0).count(),
        gain[gain.len() / 2],
        gain[0],
        gain[gain.len() - 1],
        above(|one| one.same.excess),
        above(|one| one.each.excess),
    );
}
