//! `tune` on several GPUs of one job: one setting for all GPUs against one for each.

use anyhow::Result;
use sweetspot_control::tune::{SettingsScope, TuneKnob, TuneRequest, TuneSpace, TunedJob};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Criteria, Objective};
use sweetspot_quantity::{Celsius, Ratio, Seconds};
use sweetspot_sim::{GpuProfile, Variant, Workload, find_gpu, find_workload};
use sweetspot_stats::Seed;
use sweetspot_virtual_time::{JobSequence, tune};

/// The length of a job.
const JOB_TIME: Seconds = Seconds::new(1200.0);
/// The times that a job may lose.
const LIMITS: [&str; 3] = ["time<=+1%", "time<=+5%", "time<=+10%"];
/// Both ways of tuning a job take the same time if they differ by at most this share.
const EQUAL_TIME: f64 = 0.01;

/// How much hotter the air of an unequally cooled GPU is.
const HOTTER: Celsius = Celsius::new(35.0);

/// The results of one job at one limit, as shares of the time and energy at the reference.
struct Comparison {
    name: String,
    limit: &'static str,
    /// Time and energy with one setting for all GPUs.
    same: (f64, f64),
    /// Time and energy with a setting for each GPU.
    each: (f64, f64),
    /// The least energy that one setting for all GPUs can have in the time of `each`.
    best_same: f64,
    /// The energy of the whole jobs, trials included, for each item.
    whole: (f64, f64),
    settings: String,
}

/// Compares one setting for all GPUs with one for each, on unlike GPUs, unequal GPUs and random mixes. `first` chooses
/// other seeds and other random mixes.
pub fn compare_settings(first: u64, mixes: u64, knob: TuneKnob) -> Result<()> {
    let mut cases = vec![];
    for network in ["cnn2d", "resnet_gait", "resnet_im"] {
        let name = format!("2 Pascal + 2 Maxwell, {network}");
        cases.push((name, pascal_and_maxwell(network)?));
    }
    for (gpu, network) in [("v100", "resnet50"), ("quadro_rtx_6000", "vgg19")] {
        for slow_first in [false, true] {
            let name = format!(
                "2 x {gpu}, {} 10 % slower, {network}",
                if slow_first { "first" } else { "second" }
            );
            cases.push((name, unequal_pair(gpu, network, slow_first)?));
        }
        let name = format!("2 x {gpu}, second in air that is 35 degrees hotter, {network}");
        cases.push((name, unequally_cooled_pair(gpu, network)?));
    }
    print_comparisons("unlike and unequal GPUs", &compare_all(cases, knob, first)?);
    let cases: Result<Vec<_>> = (first..first + mixes).map(random_mix).collect();
    print_comparisons("random mixes", &compare_all(cases?, knob, first)?);
    Ok(())
}

/// The two kinds of boards of multi_gpu_2018 in one job.
fn pascal_and_maxwell(network: &str) -> Result<JobSequence> {
    let (pascal, maxwell) = (find_gpu("titan_x_pascal")?, find_gpu("titan_x_maxwell")?);
    let gpus = vec![pascal.clone(), pascal, maxwell.clone(), maxwell];
    let workload = find_workload(network, Some("multi_gpu_2018"), &Variant::default())?;
    Ok(JobSequence::on_gpus(gpus, vec![workload], JOB_TIME)?)
}

/// A GPU that takes longer for the same work at the same clocks and power: `speed` is a share of its usual speed.
fn slower(
    (name, profile): (String, GpuProfile),
    speed: f64,
    workload: &mut Workload,
) -> (String, GpuProfile) {
    let slow = format!("{name} at {speed:.3}");
    let on = &mut workload.profile.on;
    if let Some(mut own) = on.iter().find(|own| own.gpu == name).cloned() {
        own.gpu.clone_from(&slow);
        own.core = own.core * (1.0 / speed);
        own.memory = own.memory * (1.0 / speed);
        on.push(own);
    }
    (slow, profile)
}

/// Two GPUs of one model, of which one is 10 % slower.
fn unequal_pair(gpu: &str, network: &str, slow_first: bool) -> Result<JobSequence> {
    let gpu = find_gpu(gpu)?;
    let study = gpu.1.study.clone();
    let mut workload = find_workload(network, study.as_deref(), &Variant::default())?;
    let mut gpus = vec![gpu.clone(), slower(gpu, 0.9, &mut workload)];
    if slow_first {
        gpus.reverse();
    }
    Ok(JobSequence::on_gpus(gpus, vec![workload], JOB_TIME)?)
}

/// Two GPUs of one model, of which one is in the hot air of others: more of its power leaks.
fn unequally_cooled_pair(gpu: &str, network: &str) -> Result<JobSequence> {
    let gpu = find_gpu(gpu)?;
    let workload = find_workload(network, gpu.1.study.as_deref(), &Variant::default())?;
    let mut hot = gpu.clone();
    let thermal = &mut hot.1.thermal;
    thermal.ambient = thermal.ambient + HOTTER;
    thermal.at_default_cap = thermal.at_default_cap + HOTTER;
    Ok(JobSequence::on_gpus(vec![gpu, hot], vec![workload], JOB_TIME)?)
}

/// Two to eight GPUs of one to three models, whose speeds differ by up to 15 %, with a random workload.
fn random_mix(number: u64) -> Result<(String, JobSequence)> {
    let seed = Seed::new(11).label("random mix").number(number);
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let models = [
        "tesla_v100_sxm2_16gb",
        "quadro_rtx_6000",
        "titan_x_pascal",
        "titan_x_maxwell",
        "gtx_2080ti",
        "tesla_p40",
        "tesla_p100",
    ];
    let kinds = draw("kinds", 1.0, 4.0) as usize;
    let count = (draw("count", 2.0, 9.0) as usize).max(kinds);
    let kind = |index: usize| {
        let drawn = draw(&format!("kind {}", index % kinds), 0.0, models.len() as f64);
        models[drawn as usize]
    };
    let mut workload = random_workload(seed, kind(0), &models)?;
    let mut gpus = Vec::new();
    for index in 0..count {
        let speed = draw(&format!("speed {index}"), 0.85, 1.0);
        gpus.push(slower(find_gpu(kind(index))?, speed, &mut workload));
    }
    let names: Vec<&str> = gpus.iter().map(|(name, _)| name.as_str()).collect();
    let name = format!("{number}: {}", names.join(", "));
    Ok((name, JobSequence::on_gpus(gpus, vec![workload], JOB_TIME)?))
}

/// A workload with random shares of host, core and memory time on its first GPU.
fn random_workload(seed: Seed, gpu: &str, models: &[&str]) -> Result<Workload> {
    let draw = |label: &str, low: f64, high: f64| low + (high - low) * seed.label(label).uniform();
    let mut workload = find_workload("resnet50", Some("power_capping_2022"), &Variant::default())?;
    let item = draw("item", 0.5e-3, 8e-3);
    let host = draw("host", 0.02, 0.25);
    let core = draw("core", 0.3, 0.9);
    workload.profile.memory.per_item = workload.profile.memory.per_item * 0.1;
    let mut on = workload.profile.on[0].clone();
    on.host = Seconds::new(item * host);
    on.switching = Ratio::new(draw("switching", 0.7, 1.3));
    let first = find_gpu(gpu)?.1;
    let arithmetic = |gpu: &GpuProfile| gpu.core.units as f64 * gpu.core.default.get();
    workload.profile.on = Vec::new();
    for model in models {
        let (name, profile) = find_gpu(model)?;
        let own = &mut on.clone();
        own.gpu = name;
        let core_time = item * (1.0 - host) * core * arithmetic(&first) / arithmetic(&profile);
        let bandwidth = first.memory.bandwidth / profile.memory.bandwidth;
        own.core = Seconds::new(core_time);
        own.memory = Seconds::new(item * (1.0 - host) * (1.0 - core)) * bandwidth;
        workload.profile.on.push(own.clone());
    }
    Ok(workload)
}

/// Tunes every job with every limit in both ways.
fn compare_all(
    cases: Vec<(String, JobSequence)>,
    knob: TuneKnob,
    seed: u64,
) -> Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    for (name, job) in cases {
        for limit in LIMITS {
            comparisons.push(compare(&name, &job, (limit, knob), seed)?);
        }
    }
    Ok(comparisons)
}

/// Tunes one job in both ways, and finds the true results of both choices.
fn compare(
    name: &str,
    job: &JobSequence,
    (limit, knob): (&'static str, TuneKnob),
    seed: u64,
) -> Result<Comparison> {
    let space = TuneSpace::new(&job.descriptors(), knob)?;
    let reference = job.outcome_at_each(0, &space.of_gpus[space.space.reference()])?;
    let share = |outcome: (Seconds, sweetspot_quantity::Joules, f64)| {
        (outcome.0 / reference.0, outcome.1 / reference.1)
    };
    let share = |outcome| {
        let (time, energy) = share(outcome);
        (time.get(), energy.get())
    };
    let tuned = |settings: SettingsScope| -> Result<(TunedJob, (f64, f64))> {
        let request = TuneRequest {
            knob,
            settings,
            criteria: Criteria {
                limits: vec![limit.parse()?],
                ..Criteria::from(Objective::Energy)
            },
            strategy: StrategyName::Guided,
            budget: Ratio::new(0.05),
            retune_every: None,
            seed,
        };
        let tuned = tune(&request, job, None, &mut |_, _| {})?;
        let choice = tuned.choice().unwrap_or(tuned.reference);
        let outcome = job.outcome_at_each(0, &tuned.settings_of_gpus[choice])?;
        Ok((tuned, share(outcome)))
    };
    let (same_job, same) = tuned(SettingsScope::Same)?;
    let (each_job, each) = tuned(SettingsScope::Each)?;
    let mut best_same = f64::INFINITY;
    for settings in &space.of_gpus {
        let (time, energy) = share(job.outcome_at_each(0, settings)?);
        if time <= each.0 + 1e-9 {
            best_same = best_same.min(energy);
        }
    }
    let per_item = |job: &TunedJob| {
        let (energy, items) = job.energy.zip(job.items).unwrap_or_default();
        energy.get() / items / (reference.1.get() / reference.2)
    };
    Ok(Comparison {
        name: name.to_owned(),
        limit,
        same,
        each,
        best_same,
        whole: (per_item(&same_job), per_item(&each_job)),
        settings: match (each_job.choice(), each_job.tuned.notices.last()) {
            (Some(choice), _) if each_job.differing_settings(choice).is_some() => {
                each_job.labels[choice].clone()
            }
            (_, Some((_, notice))) => notice.to_string(),
            (_, None) => String::new(),
        },
    })
}

/// Prints every comparison and how many of them settings for each GPU win.
fn print_comparisons(title: &str, comparisons: &[Comparison]) {
    println!("{title}: time and energy of the choice as shares of the reference, without noise");
    println!(
        "limit        same time  energy | each time  energy | each against same: time  energy  best same | whole job | settings"
    );
    let percent = |value: f64| (value - 1.0) * 100.0;
    for one in comparisons {
        println!(
            "{:<11} {:>+9.2} % {:>+6.2} | {:>+7.2} % {:>+6.2} | {:>+20.2} % {:>+6.2} % {:>+8.2} % | {:>+7.2} % | {} | {}",
            one.limit,
            percent(one.same.0),
            percent(one.same.1),
            percent(one.each.0),
            percent(one.each.1),
            percent(one.each.0 / one.same.0),
            percent(one.each.1 / one.same.1),
            percent(one.each.1 / one.best_same),
            percent(one.whole.1 / one.whole.0),
            one.settings,
            one.name,
        );
    }
    let count = comparisons.len();
    let equal = comparisons
        .iter()
        .filter(|one| one.each.0 <= one.same.0 * (1.0 + EQUAL_TIME))
        .count();
    let saves = comparisons
        .iter()
        .filter(|one| one.each.1 < one.same.1)
        .count();
    let both = comparisons
        .iter()
        .filter(|one| one.each.0 <= one.same.0 * (1.0 + EQUAL_TIME) && one.each.1 < one.same.1)
        .count();
    let beats = comparisons
        .iter()
        .filter(|one| one.each.1 < one.best_same)
        .count();
    let whole = comparisons
        .iter()
        .filter(|one| one.whole.1 < one.whole.0)
        .count();
    println!(
        "{title}: of {count}, at most 1 % longer {equal}, less energy {saves}, both {both}; less energy than the best setting for all of at most the same time {beats}; less energy in the whole job, trials included {whole}"
    );
    let mut savings: Vec<f64> = comparisons
        .iter()
        .map(|one| -percent(one.each.1 / one.same.1))
        .collect();
    savings.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (savings.first(), savings.last()) {
        println!(
            "{title}: energy saved against one setting for all: median {:.1} %, least {least:.1} %, most {most:.1} %\n",
            savings[savings.len() / 2]
        );
    }
}
