//! Evaluates recommendations: `cargo run --release -p sweetspot-benchmarks --bin recommendations [SEEDS]`.
//!
//! Prints how often a change is recommended where no setting has an effect, how often settings that are truly equal are
//! not named as ties, how good the recommendations for the 48 published cases are, and how many different settings are
//! recommended over 20 seeds, each beside the rule that takes the best mean.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use sweetspot_benchmarks::curves::{Curve, published_curves, random_curve};
use sweetspot_benchmarks::{OBJECTIVES, percentage};
use sweetspot_decide::{
    Candidate, Choice, Comparison, LinePosition, Objective, Outcome, Standing, Tariff,
};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::{Seed, differ};

/// The noise of a run, as a share of time and energy: the simulator's default, and more.
const NOISE: [f64; 3] = [0.003, 0.01, 0.03];
/// The noise of a run where settings run only once or twice.
const NOISE_OF_FEW_RUNS: [f64; 6] = [0.003, 0.01, 0.03, 0.05, 0.1, 0.2];
/// The number of runs of each setting.
const RUNS: u64 = 5;

fn main() -> Result<()> {
    let seeds = std::env::args()
        .nth(1)
        .map_or(Ok(200), |text| text.parse())?;
    without_effect(seeds, RUNS, &NOISE)?;
    for runs in [1, 2] {
        without_effect(seeds.div_ceil(4), runs, &NOISE_OF_FEW_RUNS)?;
    }
    plateaus(seeds.min(100))?;
    let published = published_curves()?;
    for noise in &NOISE[..2] {
        curves("published", &published, *noise, RUNS)?;
    }
    for runs in [1, 2] {
        curves("published", &published, NOISE[0], runs)?;
    }
    // The rule for ties and the line model were chosen by what they give on the published curves; these were not looked at.
    let random: Vec<Curve> = (100..112).map(random_curve).collect();
    for noise in &NOISE[..2] {
        curves("random", &random, *noise, RUNS)?;
    }
    Ok(())
}

/// Studies of 31 settings that are all alike.
fn without_effect(seeds: u64, runs: u64, noises: &[f64]) -> Result<()> {
    println!(
        "31 settings without effect, {runs} runs each, {seeds} seeds, objectives energy and edp:"
    );
    let alike = vec![Outcome::new(Seconds::new(100.0), Joules::new(20_000.0)); 31];
    for (order, is_ordered) in [("caps", true), ("settings without order", false)] {
        for noise in noises.iter().copied() {
            let (mut changed, mut missed, mut missed_share, mut by_mean) = (0, 0, 0.0, 0);
            for seed in 0..seeds {
                let candidates = candidates(&alike, noise, runs, seed);
                let comparison = compare(&candidates, is_ordered);
                for objective in [Objective::Energy, Objective::Edp] {
                    let choice = comparison.recommend(&objective.into(), None)?;
                    changed += u64::from(is_change(&choice));
                    missed += u64::from(choice.may_be_best.len() < 31);
                    missed_share += (31 - choice.may_be_best.len()) as f64 / 31.0;
                    let best = comparison.best_mean(objective, &[])?;
                    let values = |point: usize| -> Vec<f64> {
                        let runs = candidates[point].runs.iter();
                        runs.filter_map(|run| objective.value(run, &alike[30]).ok())
                            .collect()
                    };
                    // Each setting is tested on its own, at 5 %.
                    let is_significant = differ(&values(best), &values(30)) == Some(true);
                    by_mean += u64::from(best != 30 && is_significant);
                }
            }
            let all = (2 * seeds) as f64;
            println!(
                "  {order}, noise {}: change recommended {} (best mean, tested alone: {}), a tie missed {}, ties missed {}",
                percentage(noise),
                percentage(changed as f64 / all),
                percentage(by_mean as f64 / all),
                percentage(missed as f64 / all),
                percentage(missed_share / all),
            );
        }
    }
    Ok(())
}

/// Studies of jobs that do not reach the upper caps, which are therefore all equally fast.
fn plateaus(seeds: u64) -> Result<()> {
    println!(
        "published curves with at least 3 caps that do not bind, objective time, {} seeds:",
        seeds.div_ceil(5)
    );
    for noise in &NOISE[..2] {
        let (mut missed, mut changed, mut all) = (0, 0, 0);
        for curve in published_curves()? {
            let fastest = curve.points.iter().map(|point| point.time.get());
            let fastest = fastest.fold(f64::INFINITY, f64::min);
            let is_tied = |point: &usize| curve.points[*point].time.get() < fastest * (1.0 + 1e-9);
            let ties: Vec<usize> = (0..curve.points.len()).filter(is_tied).collect();
            if ties.len() < 3 {
                continue;
            }
            for seed in 0..seeds.div_ceil(5) {
                let comparison = compare(&candidates(&curve.points, *noise, RUNS, seed), true);
                let choice = comparison.recommend(&Objective::Time.into(), None)?;
                missed += u64::from(ties.iter().any(|tie| !choice.may_be_best.contains(tie)));
                changed += u64::from(is_change(&choice));
                all += 1;
            }
        }
        println!(
            "  noise {}: {all} studies, change recommended {}, a tie missed {}",
            percentage(*noise),
            percentage(changed as f64 / all as f64),
            percentage(missed as f64 / all as f64),
        );
    }
    Ok(())
}

/// Studies of curves with a known best setting, for all objectives.
fn curves(name: &str, curves: &[Curve], noise: f64, runs: u64) -> Result<()> {
    const SEEDS: u64 = 20;
    /// A recommendation with more regret is listed.
    const MAX_REGRET: f64 = 0.015;
    let (mut regrets, mut of_means, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut different, mut different_means, mut found, mut failures) = (0, 0, 0, Vec::new());
    for curve in curves {
        for objective in OBJECTIVES {
            let reference = curve.points.last().context("a curve is empty")?;
            let costs: Vec<f64> = curve
                .points
                .iter()
                .map(|point| objective.value(point, reference))
                .collect::<Result<_, _>>()?;
            let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
            let (mut chosen, mut by_mean) = (BTreeSet::new(), BTreeSet::new());
            for seed in 0..SEEDS {
                let comparison = compare(&candidates(&curve.points, noise, runs, seed), true);
                let choice = comparison.recommend(&objective.into(), None)?;
                let point = match is_change(&choice) {
                    true => choice.candidate,
                    false => curve.points.len() - 1,
                };
                let mean = comparison.best_mean(objective, &[])?;
                chosen.insert(point);
                by_mean.insert(mean);
                let regret = costs[point] / least - 1.0;
                if regret > MAX_REGRET {
                    failures.push(format!(
                        "{} {objective} seed {seed}: {} W, {}",
                        curve.name,
                        curve.caps[point],
                        percentage(regret)
                    ));
                }
                regrets.push(regret);
                of_means.push(costs[mean] / least - 1.0);
                sizes.push(choice.may_be_best.len());
                found += usize::from(choice.may_be_best.iter().any(|one| costs[*one] == least));
            }
            different += chosen.len();
            different_means += by_mean.len();
        }
    }
    let cases = (curves.len() * OBJECTIVES.len()) as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let within = |values: &[f64]| {
        let good = values.iter().filter(|regret| **regret <= MAX_REGRET);
        good.count() as f64 / values.len() as f64
    };
    sizes.sort_unstable();
    println!(
        "{name}: {cases} cases, noise {}, {runs} runs each, {SEEDS} seeds:",
        percentage(noise)
    );
    println!(
        "  regret at most {}: {} (best mean: {}); mean regret {} (best mean: {})",
        percentage(MAX_REGRET),
        percentage(within(&regrets)),
        percentage(within(&of_means)),
        percentage(mean(&regrets)),
        percentage(mean(&of_means)),
    );
    println!(
        "  settings that may be best: median {}, most {}; the best is among them in {}",
        sizes[sizes.len() / 2],
        sizes[sizes.len() - 1],
        percentage(found as f64 / regrets.len() as f64)
    );
    println!(
        "  different settings over {SEEDS} seeds, mean of the cases: {:.1} (best mean: {:.1})",
        different as f64 / cases,
        different_means as f64 / cases
    );
    for failure in failures {
        println!("  over: {failure}");
    }
    Ok(())
}

/// Whether a setting other than the reference is recommended.
fn is_change(choice: &Choice) -> bool {
    let margin = choice.against_reference;
    margin.is_some_and(|margin| margin.standing == Standing::Better)
}

/// Noisy runs of the settings of a curve.
fn candidates(points: &[Outcome], noise: f64, runs: u64, seed: u64) -> Vec<Candidate> {
    let seed = Seed::new(seed)
        .label("recommendations")
        .number((noise * 1e6) as u64);
    let candidate = |(number, point): (usize, &Outcome)| {
        let runs = (0..runs).map(|run| {
            let [time, energy] = seed.number(number as u64).number(run).normals();
            Outcome {
                time: point.time * (1.0 + noise * time),
                energy: point.energy.map(|value| value * (1.0 + noise * energy)),
                items: Some(100_000.0),
                ..point.clone()
            }
        });
        Candidate::of(runs.collect::<Vec<_>>())
    };
    points.iter().enumerate().map(candidate).collect()
}

/// Compares settings with the last of them.
fn compare(candidates: &[Candidate], is_ordered: bool) -> Comparison {
    let comparison = Comparison::new(candidates, candidates.last(), Tariff::NONE);
    if !is_ordered {
        return comparison;
    }
    let last = (candidates.len() - 1) as f64;
    let places = (0..candidates.len()).map(|number| LinePosition {
        line: 0,
        position: Some(number as f64 / last),
    });
    comparison.with_places(places.collect())
}
