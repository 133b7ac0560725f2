//! How `tune` fares: `cargo run --release -p sweetspot-benchmarks --bin tune [SEEDS [KNOB [FIRST]]]`.
//!
//! Ten minutes of training in virtual time on each of the twelve published curves and on a hundred random
//! workloads, and a training whose load changes in the middle. What is true is known: the same job without
//! noise, from start to end at every setting. FIRST takes other seeds and other random workloads, so that what
//! was mended with some of them can be judged by others.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

use std::ops::Range;

use anyhow::{Context, Result};
use sweetspot_benchmarks::{GPUS, NETWORKS, OBJECTIVES};
use sweetspot_control::tune::{LoadOutcome, TuneKnob, TuneRequest, TunedJob};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::{Variant, Workload, find_gpu, find_workload};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::{JobSequence, tune};

const JOB: Seconds = Seconds::new(600.0);

fn main() -> Result<()> {
    let seeds: u64 = match std::env::args().nth(1) {
        Some(text) => text.parse().context("a number of seeds")?,
        None => 3,
    };
    let knob: TuneKnob = match std::env::args().nth(2) {
        Some(text) => text.parse()?,
        None => TuneKnob::PowerCap,
    };
    let first: u64 = match std::env::args().nth(3) {
        Some(text) => text.parse().context("the first seed")?,
        None => 0,
    };
    let seeds = first..first + seeds;
    let mut published = Tally::default();
    for gpu in GPUS {
        for network in NETWORKS {
            let job = job(gpu, &[network])?;
            each(
                &job,
                knob,
                seeds.clone(),
                &mut published,
                &format!("{gpu} {network}"),
            )?;
        }
    }
    published.print("12 published curves");
    let mut random = Tally::default();
    for number in first..first + 100 {
        let (name, job) = random_job(number)?;
        each(&job, knob, first..first + 1, &mut random, &name)?;
    }
    random.print("100 random workloads");
    let mut changes = Tally::default();
    for gpu in GPUS {
        for pair in [
            ["resnet50", "vgg19"],
            ["inception_v4", "alexnet"],
            ["resnet152", "inception_v3"],
        ] {
            changing(&job(gpu, &pair)?, knob, seeds.clone(), &mut changes)?;
        }
    }
    changes.print("load changes in the middle");
    Ok(())
}

fn job(gpu: &str, networks: &[&str]) -> Result<JobSequence> {
    let gpu = find_gpu(gpu)?;
    let study = gpu.1.study.clone();
    let workloads: Result<Vec<Workload>, _> = networks
        .iter()
        .map(|network| find_workload(network, study.as_deref(), &Variant::default()))
        .collect();
    Ok(JobSequence::from_profiles(
        gpu,
        workloads?,
        JOB * (1.0 / networks.len() as f64),
    )?)
}

/// A workload that no study ran.
fn random_job(number: u64) -> Result<(String, JobSequence)> {
    let seed = Seed::new(9).label("random workload").number(number);
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let boards = [
        "tesla_v100_sxm2_16gb",
        "quadro_rtx_6000",
        "titan_x_pascal",
        "gtx_2080ti",
        "nvidia_h200",
        "tesla_p40",
    ];
    let name = boards[(number % boards.len() as u64) as usize];
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
    let job = JobSequence::from_profiles(gpu, vec![workload], JOB)?;
    Ok((format!("{name} random {number}"), job))
}

fn request(objective: Objective, knob: TuneKnob, seed: u64) -> TuneRequest {
    TuneRequest {
        knob,
        question: Criteria::from(objective),
        strategy: StrategyName::Guided,
        budget: Ratio::new(0.05),
        retune_every: None,
        seed,
    }
}

/// Time, energy and items of every place, without noise.
fn truth(job: &JobSequence, workload: usize, tuned: &TunedJob) -> Result<Vec<Outcome>> {
    let outcomes = tuned.settings.iter().map(|settings| {
        let (time, energy, items) = job.outcome_at(workload, *settings)?;
        let mut outcome = Outcome::new(time, energy);
        outcome.items = Some(items);
        Ok(outcome)
    });
    outcomes.collect()
}

fn each(
    job: &JobSequence,
    knob: TuneKnob,
    seeds: Range<u64>,
    tally: &mut Tally,
    name: &str,
) -> Result<()> {
    let mut known: Option<Vec<Outcome>> = None;
    for objective in OBJECTIVES {
        for seed in seeds.clone() {
            let tuned = tune(&request(objective, knob, seed), job, None, &mut |_, _| {})?;
            let outcomes = match &known {
                Some(outcomes) => outcomes,
                None => known.insert(truth(job, 0, &tuned)?),
            };
            tally.add(&tuned, &tuned.tuned.loads[0], outcomes, objective, name)?;
            if tuned.tuned.loads.len() > 1 {
                tally.false_alarms += 1;
            }
        }
    }
    Ok(())
}

fn changing(job: &JobSequence, knob: TuneKnob, seeds: Range<u64>, tally: &mut Tally) -> Result<()> {
    for objective in [Objective::Edp, Objective::Energy] {
        for seed in seeds.clone() {
            let tuned = tune(&request(objective, knob, seed), job, None, &mut |_, _| {})?;
            let outcomes = truth(job, 1, &tuned)?;
            let changed = tuned.begins[1];
            let Some(load) = tuned.tuned.loads.get(1) else {
                println!(
                    "not noticed: {} {objective} {:?}",
                    tuned.workload,
                    tuned.choice().map(|c| &tuned.labels[c])
                );
                tally.missed += 1;
                continue;
            };
            tally.add(&tuned, load, &outcomes, objective, &tuned.workload)?;
            let after = load
                .found_at
                .map_or(f64::INFINITY, |at| (at - changed).get());
            tally.after_change.push(after);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Tally {
    cases: usize,
    within: usize,
    found: Vec<f64>,
    evaluations: Vec<f64>,
    costs: Vec<f64>,
    costs_against_choice: Vec<f64>,
    energy_held: usize,
    time_held: usize,
    claims: usize,
    widths: Vec<f64>,
    gave_up: usize,
    false_alarms: usize,
    missed: usize,
    after_change: Vec<f64>,
    whole_held: usize,
    wholes: usize,
}

impl Tally {
    fn add(
        &mut self,
        tuned: &TunedJob,
        load: &LoadOutcome,
        outcomes: &[Outcome],
        objective: Objective,
        name: &str,
    ) -> Result<()> {
        self.cases += 1;
        let reference = &outcomes[tuned.reference];
        let value = |outcome: &Outcome| objective.value(outcome, reference);
        let best = outcomes
            .iter()
            .map(value)
            .collect::<Result<Vec<f64>, _>>()?;
        let optimum = (0..best.len())
            .min_by(|a, b| best[*a].total_cmp(&best[*b]))
            .unwrap_or(0);
        let place = load.choice.unwrap_or(tuned.reference);
        let regret = best[place] / best[optimum] - 1.0;
        if regret <= 0.01 {
            self.within += 1;
        } else if std::env::var_os("VERBOSE").is_some() {
            println!(
                "{name} {objective}: chose {}, best {}, regret {:.2} %, {} evaluations, reference {:.4}, found {:?}",
                tuned.labels[place],
                tuned.labels[optimum],
                regret * 100.0,
                load.evaluations,
                best[tuned.reference] / best[optimum] - 1.0,
                load.found_at,
            );
            if std::env::var_os("VERBOSE").is_some_and(|much| much == "2") {
                for window in tuned
                    .tuned
                    .windows
                    .iter()
                    .filter(|window| window.begin < Seconds::new(70.0))
                {
                    let rate = window.items_per_second.unwrap_or(f64::NAN);
                    let truth = &outcomes[window.point];
                    let items = truth.items.unwrap_or(f64::NAN);
                    println!(
                        "    {:?} {} {:.1} to {:.1}: time {:+.2} %, energy {:+.2} % off, noise {:.2} %, {:.2} %, true value {:.4}",
                        window.purpose,
                        tuned.labels[window.point],
                        window.begin.get(),
                        window.end.get(),
                        100.0 * (items / rate / truth.time.get() - 1.0),
                        100.0
                            * (window.power.get() * items
                                / rate
                                / truth.energy.unwrap_or_default().get()
                                - 1.0),
                        100.0 * window.noise.time,
                        100.0 * window.noise.energy,
                        best[window.point] / best[optimum] - 1.0,
                    );
                }
            }
        }
        if tuned.tuned.gave_up.is_some() {
            self.gave_up += 1;
        }
        if let (Some(since), Some(at)) = (load.steady_since, load.found_at) {
            self.found.push((at - since).get());
        }
        self.evaluations.push(load.evaluations as f64);
        let energy = tuned.energy.unwrap_or_default();
        if let Some(cost) = load.exploring_cost {
            self.costs.push((cost.energy / energy).get());
        }
        if let Some(cost) = load.exploring_cost_against_choice {
            let share = (cost.energy / energy).get();
            self.costs_against_choice.push(share);
            if share > 0.03 && std::env::var_os("VERBOSE").is_some() {
                println!(
                    "{name} {objective}: exploring cost {:.2} %, {} evaluations, chose {}",
                    share * 100.0,
                    load.evaluations,
                    tuned.labels[place]
                );
            }
        }
        if let Some(claim) = load.savings {
            let own = &outcomes[place];
            let saved = 1.0
                - own.energy.unwrap_or_default().get() / reference.energy.unwrap_or_default().get();
            let lost = (own.time / reference.time).get() - 1.0;
            self.claims += 1;
            let holds = |share: sweetspot_control::tune::RatioInterval, value: f64| {
                share.low.get() <= value && value <= share.high.get()
            };
            self.energy_held += usize::from(holds(claim.energy_saved, saved));
            self.time_held += usize::from(holds(claim.time_lost, lost));
            if !holds(claim.energy_saved, saved) && std::env::var_os("VERBOSE").is_some() {
                println!(
                    "{name} {objective}: claims {:?}, true {saved:.4}",
                    claim.energy_saved
                );
            }
            self.widths
                .push((claim.energy_saved.high - claim.energy_saved.low).get());
            if let (Some(whole), 1) = (load.total_savings, tuned.tuned.loads.len()) {
                let true_saved = 1.0 - energy.get() / reference.energy.unwrap_or_default().get();
                self.wholes += 1;
                self.whole_held += usize::from(holds(whole.energy_saved, true_saved));
            }
        }
        Ok(())
    }

    fn print(&self, title: &str) {
        let share = |count: usize, of: usize| 100.0 * count as f64 / of.max(1) as f64;
        println!("{title}: {} jobs", self.cases);
        println!(
            "  within 1 % of the optimum    {:.1} %",
            share(self.within, self.cases)
        );
        println!(
            "  evaluations                  {}",
            spread(&self.evaluations, 1.0)
        );
        println!(
            "  found after [s]              {}",
            spread(&self.found, 1.0)
        );
        println!("  exploring, of the job's energy [%]");
        println!(
            "    against the reference      {}",
            spread(&self.costs, 100.0)
        );
        println!(
            "    against the choice         {}",
            spread(&self.costs_against_choice, 100.0)
        );
        // Of several loads there is no one claim for the whole job.
        let whole = match self.wholes {
            0 => String::new(),
            wholes => format!("whole job {:.1} %, ", share(self.whole_held, wholes)),
        };
        println!(
            "  interval of the saving holds the true one: energy {:.1} %, time {:.1} %, {}width {} points",
            share(self.energy_held, self.claims),
            share(self.time_held, self.claims),
            whole,
            spread(&self.widths, 100.0)
        );
        if !self.after_change.is_empty() || self.missed > 0 {
            println!(
                "  tuned again after the change [s]  {}; not noticed {}",
                spread(&self.after_change, 1.0),
                self.missed
            );
        }
        println!(
            "  gave up {}, tuned again without a cause {}",
            self.gave_up, self.false_alarms
        );
    }
}

fn spread(values: &[f64], scale: f64) -> String {
    let mut sorted: Vec<f64> = values.iter().map(|value| value * scale).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (share * (sorted.len().max(1) - 1) as f64).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    };
    format!(
        "median {:.2}, 95 % {:.2}, most {:.2}",
        at(0.5),
        at(0.95),
        at(1.0)
    )
}
