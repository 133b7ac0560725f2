//! `tune` on several GPUs of one job: one setting for all GPUs against one for each.

use anyhow::Result;
use sweetspot_benchmarks::mixes::{
    GpuMix, pascal_and_maxwell, random_mix, unequal_pair, unequally_cooled_pair,
};
use sweetspot_control::tune::{SettingsScope, TuneKnob, TuneRequest, TuneSpace, TunedJob};
use sweetspot_decide::search::StrategyName;
use sweetspot_decide::{Criteria, Objective};
use sweetspot_quantity::{Ratio, Seconds};
use sweetspot_sim::Variant;
use sweetspot_virtual_time::{JobSequence, tune};

/// The length of a job.
const JOB_TIME: Seconds = Seconds::new(1200.0);
/// The times that a job may lose.
const LIMITS: [&str; 3] = ["time<=+1%", "time<=+5%", "time<=+10%"];
/// Both ways of tuning a job take the same time if they differ by at most this share.
const EQUAL_TIME: f64 = 0.01;

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
        cases.push((name, job(pascal_and_maxwell(network)?)?));
    }
    for (gpu, network) in [("v100", "resnet50"), ("quadro_rtx_6000", "vgg19")] {
        for slow_first in [false, true] {
            let name = format!(
                "2 x {gpu}, {} 10 % slower, {network}",
                if slow_first { "first" } else { "second" }
            );
            let mut mix = unequal_pair(gpu, network, &Variant::default())?;
            if slow_first {
                mix.gpus.reverse();
            }
            cases.push((name, job(mix)?));
        }
        let name = format!("2 x {gpu}, second in air that is 35 degrees hotter, {network}");
        cases.push((name, job(unequally_cooled_pair(gpu, network)?)?));
    }
    print_comparisons("unlike and unequal GPUs", &compare_all(cases, knob, first)?);
    let cases: Result<Vec<_>> = (first..first + mixes)
        .map(|number| {
            let mix = random_mix(number)?;
            Ok((format!("{number}: {}", mix.names()), job(mix)?))
        })
        .collect();
    print_comparisons("random mixes", &compare_all(cases?, knob, first)?);
    Ok(())
}

/// A job of [`JOB_TIME`] on a mix of GPUs.
fn job(mix: GpuMix) -> Result<JobSequence> {
    let GpuMix { gpus, workload } = mix;
    Ok(JobSequence::on_gpus(gpus, vec![workload], JOB_TIME)?)
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
