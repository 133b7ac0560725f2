//! Evaluates `tune`: `cargo run --release -p sweetspot-benchmarks --bin tune [SEEDS [KNOB [FIRST [RANDOM [SECONDS]]]]]`.
//!
//! Tunes ten minutes of training in virtual time on each of the twelve published curves and on a hundred random
//! workloads, and trainings whose load changes halfway. The true results are known: the same job without noise, from start
//! to end at every setting. FIRST chooses other seeds and other random workloads, so that a change that was developed with
//! some of them can be checked with others. RANDOM is the number of seeds for each random workload, 1 if it is not given.
//! SECONDS is the length of a job at the reference, 600 if it is not given: what exploring costs weighs more in a short job.
//!
//! `--bin tune several [FIRST [MIXES [KNOB]]]` compares one setting for all GPUs of a job with one for each, on unlike GPUs.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod several;
mod statistics;

use std::ops::Range;

use anyhow::{Context, Result};
use sweetspot_benchmarks::{GPUS, NETWORKS, OBJECTIVES};
use sweetspot_control::tune::{SettingsScope, TuneKnob, TuneRequest, TuneSpace};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_device::Settings;
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{Variant, Workload, find_gpu, find_workload};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::{JobSequence, tune};

use statistics::{Case, TuneStatistics};

/// The length of a job at the reference, unless it is given.
const JOB_TIME: Seconds = Seconds::new(600.0);

fn main() -> Result<()> {
    if std::env::args().nth(1).as_deref() == Some("several") {
        let number = |index: usize, usual: u64| match std::env::args().nth(index) {
            Some(text) => text.parse().context("FIRST and MIXES must be numbers"),
            None => Ok(usual),
        };
        let knob = match std::env::args().nth(4) {
            Some(text) => text.parse()?,
            None => TuneKnob::PowerCap,
        };
        return several::compare_settings(number(2, 0)?, number(3, 20)?, knob);
    }
    let seeds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("SEEDS must be a number")?,
        None => 3,
    };
    let knob: TuneKnob = match std::env::args().nth(2) {
        Some(text) => text.parse()?,
        None => TuneKnob::PowerCap,
    };
    let first: u64 = match std::env::args().nth(3) {
        Some(text) => text.parse().context("FIRST must be a number")?,
        None => 0,
    };
    let random_seeds: u64 = match std::env::args().nth(4) {
        Some(text) => text.parse().context("RANDOM must be a number")?,
        None => 1,
    };
    let time = match std::env::args().nth(5) {
        Some(text) => Seconds::new(text.parse().context("SECONDS must be a number")?),
        None => JOB_TIME,
    };
    let seeds = first..first + seeds;
    let mut published = TuneStatistics::default();
    for gpu in GPUS {
        for network in NETWORKS {
            let job = job(gpu, &[network], time)?;
            tune_steady_load(
                &job,
                knob,
                seeds.clone(),
                &mut published,
                &format!("{gpu} {network}"),
            )?;
        }
    }
    published.print("12 published curves");
    let mut random = TuneStatistics::default();
    for number in first..first + 100 {
        let (name, job) = random_job(number, time)?;
        let seeds = first..first + random_seeds;
        tune_steady_load(&job, knob, seeds, &mut random, &name)?;
    }
    random.print("100 random workloads");
    let mut changes = TuneStatistics::default();
    for gpu in GPUS {
        for pair in [
            ["resnet50", "vgg19"],
            ["inception_v4", "alexnet"],
            ["resnet152", "inception_v3"],
        ] {
            tune_changing_load(&job(gpu, &pair, time)?, knob, seeds.clone(), &mut changes)?;
        }
    }
    changes.print("load changes halfway");
    Ok(())
}

fn job(gpu: &str, networks: &[&str], time: Seconds) -> Result<JobSequence> {
    let gpu = find_gpu(gpu)?;
    let study = gpu.1.study.clone();
    let workloads: Result<Vec<Workload>, _> = networks
        .iter()
        .map(|network| find_workload(network, study.as_deref(), &Variant::default()))
        .collect();
    Ok(JobSequence::from_profiles(
        gpu,
        workloads?,
        time * (1.0 / networks.len() as f64),
    )?)
}

/// A random workload on one of six GPUs.
fn random_job(number: u64, time: Seconds) -> Result<(String, JobSequence)> {
    let seed = Seed::new(9).label("random workload").number(number);
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let gpus = [
        "tesla_v100_sxm2_16gb",
        "quadro_rtx_6000",
        "titan_x_pascal",
        "gtx_2080ti",
        "nvidia_h200",
        "tesla_p40",
    ];
    let name = gpus[(number % gpus.len() as u64) as usize];
    let gpu = find_gpu(name)?;
    let mut workload = find_workload("resnet50", Some("power_capping_2022"), &Variant::default())?;
    let item = draw("item", 0.5e-3, 8e-3);
    let host = draw("host", 0.02, 0.35);
    let core = draw("core", 0.15, 0.9);
    workload.profile.memory.per_item = workload.profile.memory.per_item * 0.1;
    let on = &mut workload.profile.on[0];
    on.gpu = gpu.0.clone();
    on.host = Seconds::new(item * host);
    on.core = Seconds::new(item * (1.0 - host) * core);
    on.memory = Seconds::new(item * (1.0 - host) * (1.0 - core));
    on.switching = Ratio::new(draw("switching", 0.6, 1.35));
    let job = JobSequence::from_profiles(gpu, vec![workload], time)?;
    Ok((format!("{name} random {number}"), job))
}

fn request(objective: Objective, knob: TuneKnob, seed: u64) -> TuneRequest {
    TuneRequest {
        knob,
        settings: SettingsScope::default(),
        criteria: Criteria::from(objective),
        strategy: StrategyName::Guided,
        budget: Ratio::new(0.05),
        retune_every: None,
        seed,
    }
}

/// The true time, energy and items at each of these settings, without noise.
fn true_outcomes(
    job: &JobSequence,
    workload: usize,
    settings: &[Settings],
) -> Result<Vec<Outcome>> {
    let outcomes = settings.iter().map(|settings| {
        let (time, energy, items) = job.outcome_at(workload, *settings)?;
        let mut outcome = Outcome::new(time, energy);
        outcome.items = Some(items);
        Ok(outcome)
    });
    outcomes.collect()
}

/// The true outcomes of all settings of a tuned job, and those of every power cap and every core clock.
struct TrueOutcomes {
    tuned: Vec<Outcome>,
    caps_and_clocks: Vec<Outcome>,
}

impl TrueOutcomes {
    fn new(job: &JobSequence, workload: usize, settings: &[Settings]) -> Result<Self> {
        let devices = job.descriptors();
        let mut all = TuneSpace::new(&devices, TuneKnob::PowerCap)?.settings;
        all.extend(TuneSpace::new(&devices, TuneKnob::CoreClock)?.settings);
        Ok(Self {
            tuned: true_outcomes(job, workload, settings)?,
            caps_and_clocks: true_outcomes(job, workload, &all)?,
        })
    }
}

/// Tunes a job with a steady load for every objective and seed.
fn tune_steady_load(
    job: &JobSequence,
    knob: TuneKnob,
    seeds: Range<u64>,
    statistics: &mut TuneStatistics,
    name: &str,
) -> Result<()> {
    let mut known: Option<TrueOutcomes> = None;
    for objective in OBJECTIVES {
        for seed in seeds.clone() {
            let tuned = tune(&request(objective, knob, seed), job, None, &mut |_, _| {})?;
            let outcomes = match &known {
                Some(outcomes) => outcomes,
                None => known.insert(TrueOutcomes::new(job, 0, &tuned.settings)?),
            };
            let case = Case {
                name,
                objective,
                tuned: &tuned,
                load: &tuned.tuned.loads[0],
                outcomes: &outcomes.tuned,
                caps_and_clocks: &outcomes.caps_and_clocks,
            };
            statistics.add(&case)?;
            if tuned.tuned.loads.len() > 1 {
                statistics.false_alarms += 1;
            }
        }
    }
    Ok(())
}

/// Tunes a job whose load changes halfway.
fn tune_changing_load(
    job: &JobSequence,
    knob: TuneKnob,
    seeds: Range<u64>,
    statistics: &mut TuneStatistics,
) -> Result<()> {
    for objective in [Objective::Edp, Objective::Energy] {
        for seed in seeds.clone() {
            let tuned = tune(&request(objective, knob, seed), job, None, &mut |_, _| {})?;
            let outcomes = TrueOutcomes::new(job, 1, &tuned.settings)?;
            let changed = tuned.begins[1];
            let Some(load) = tuned.tuned.loads.get(1) else {
                println!(
                    "not noticed: {} {objective} {:?}",
                    tuned.workload,
                    tuned.choice().map(|c| &tuned.labels[c])
                );
                statistics.missed_changes += 1;
                continue;
            };
            let case = Case {
                name: &tuned.workload,
                objective,
                tuned: &tuned,
                load,
                outcomes: &outcomes.tuned,
                caps_and_clocks: &outcomes.caps_and_clocks,
            };
            statistics.add(&case)?;
            let after = load
                .found_at
                .map_or(f64::INFINITY, |at| (at - changed).get());
            statistics.times_after_change.push(after);
        }
    }
    Ok(())
}
