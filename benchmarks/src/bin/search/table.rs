//! The table of docs/explanation/search.md: how many evaluations each strategy needs until its choice is within 1 % of
//! the optimum.

use anyhow::{Context, Result};
use sweetspot_benchmarks::OBJECTIVES;
use sweetspot_decide::search::{
    EarlierResults, Evaluation, KnobKind, Noise, Prior, Proposal, SearchOptions, SearchSpace,
    Strategy, StrategyName,
};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_stats::Seed;

use super::NOISE;
use super::other_strategies::{GaussianProcess, RandomSearch};
use sweetspot_benchmarks::curves::{Curve, measured_curves, published_curves, random_curve};

/// The largest number of evaluations of a search.
const MAX_EVALUATIONS: usize = 16;
/// The regret up to which a choice counts as found.
const GOOD_REGRET: f64 = 0.01;
/// The numbers of evaluations after which the shares are printed.
const SHARES_AT: [usize; 3] = [3, 5, 8];
/// The number of random workloads for each seed.
const RANDOM_CURVES: u64 = 5;

/// What is compared.
#[derive(Clone, Copy, PartialEq)]
enum Contender {
    GuidedCold,
    GuidedWithPrior,
    Named(StrategyName),
    Random,
    GaussianProcess,
}

impl Contender {
    const ALL: [Self; 7] = [
        Self::GuidedCold,
        Self::GuidedWithPrior,
        Self::Named(StrategyName::Exhaustive),
        Self::Named(StrategyName::Linear),
        Self::Named(StrategyName::Golden),
        Self::Random,
        Self::GaussianProcess,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::GuidedCold => "guided",
            Self::GuidedWithPrior => "guided with prior",
            Self::Named(StrategyName::Exhaustive) => "exhaustive (StEP)",
            Self::Named(StrategyName::Linear) => "linear (Zeus)",
            Self::Named(StrategyName::Golden) => "golden (DEPO)",
            Self::Named(StrategyName::Guided) => "guided",
            Self::Random => "random",
            Self::GaussianProcess => "Gaussian process",
        }
    }
}

/// Curves of one kind.
struct CurveSet {
    label: String,
    curves: Vec<Curve>,
    /// Whether a point has one recorded value, so that its noise is part of what is searched.
    is_recorded: bool,
    seeds: u64,
    /// What a search of each curve learns from.
    priors: Vec<Prior>,
}

/// The regret after each evaluation of one search that does not stop, and what it is at the search's own stop.
struct SearchResult {
    label: String,
    regrets: Vec<f64>,
    stopped: Option<(usize, f64)>,
}

/// Prints the table and the failures of `guided`.
pub fn print(seeds: u64) -> Result<()> {
    println!(
        "{:20} {:18} {:>8} {:>7} {:>7} {:>7} {:>7} {:>12}",
        "curves", "strategy", "searches", "median", "at 3", "at 5", "at 8", "mean regret"
    );
    let mut failures = Vec::new();
    for set in curve_sets(seeds)? {
        for contender in Contender::ALL {
            let mut results = Vec::new();
            for (number, curve) in set.curves.iter().enumerate() {
                for objective in OBJECTIVES {
                    for seed in 1..=set.seeds {
                        results.push(set.search(number, curve, objective, contender, seed)?);
                    }
                }
            }
            print_row(&set.label, contender.name(), &results);
            for result in &results {
                if let Some((evaluations, regret)) = result.stopped
                    && regret > GOOD_REGRET
                {
                    failures.push(format!(
                        "{}, {}: {:.1} % after {evaluations}",
                        contender.name(),
                        result.label,
                        100.0 * regret
                    ));
                }
            }
        }
    }
    println!(
        "\n{} searches of guided ended more than 1 % above the optimum:",
        failures.len()
    );
    for failure in failures {
        println!("  {failure}");
    }
    Ok(())
}

fn print_row(label: &str, name: &str, results: &[SearchResult]) {
    let count = results.len() as f64;
    let at = |result: &SearchResult, evaluations: usize| {
        let last = result.regrets.len().min(evaluations);
        result.regrets[last - 1]
    };
    let within = |evaluations: usize| {
        let good = |result: &&SearchResult| at(result, evaluations) <= GOOD_REGRET;
        100.0 * results.iter().filter(good).count() as f64 / count
    };
    // The number of evaluations from which the choice stays within 1 %.
    let mut needed: Vec<usize> = results
        .iter()
        .map(|result| {
            let bad = result
                .regrets
                .iter()
                .rposition(|regret| *regret > GOOD_REGRET);
            bad.map_or(1, |bad| match bad + 1 == result.regrets.len() {
                true => usize::MAX,
                false => bad + 2,
            })
        })
        .collect();
    needed.sort_unstable();
    let median = match needed[needed.len() / 2] {
        usize::MAX => "never".to_owned(),
        evaluations => evaluations.to_string(),
    };
    let regrets = results.iter().map(|result| at(result, SHARES_AT[1]));
    let [three, five, eight] = SHARES_AT.map(within);
    println!(
        "{label:20} {name:18} {:>8} {median:>7} {three:>5.1} % {five:>5.1} % {eight:>5.1} % {:>8.2} % at 5",
        results.len(),
        100.0 * regrets.sum::<f64>() / count,
    );
}

fn curve_sets(seeds: u64) -> Result<Vec<CurveSet>> {
    let mut sets = Vec::new();
    let published = published_curves()?;
    let same_gpu = |a: &Curve, b: &Curve| a.name.split(' ').next() == b.name.split(' ').next();
    sets.push(CurveSet {
        label: "published".to_owned(),
        priors: leave_one_out(&published, same_gpu),
        curves: published,
        is_recorded: false,
        seeds,
    });
    for gpu in ["v100", "p100"] {
        match measured_curves(gpu)? {
            Some(curves) => sets.push(CurveSet {
                label: format!("measured {gpu}"),
                priors: leave_one_out(&curves, |_, _| true),
                curves,
                is_recorded: true,
                seeds: 1,
            }),
            None => println!("measured {gpu}: ../shared/measured_zeus is absent, skipped"),
        }
    }
    let random: Vec<Curve> = (0..RANDOM_CURVES * seeds).map(random_curve).collect();
    sets.push(CurveSet {
        label: "random workloads".to_owned(),
        priors: leave_one_out(&random, |_, _| true),
        curves: random,
        is_recorded: false,
        seeds: 1,
    });
    Ok(sets)
}

/// The prior of each curve, learnt from the other curves that are related to it.
fn leave_one_out(curves: &[Curve], is_related: impl Fn(&Curve, &Curve) -> bool) -> Vec<Prior> {
    let results: Vec<EarlierResults> = curves.iter().map(earlier_results).collect();
    let mut related: Vec<(Vec<usize>, Prior)> = Vec::new();
    let prior = |number: usize| {
        let own: Vec<usize> = (0..curves.len())
            .filter(|other| is_related(&curves[number], &curves[*other]))
            .collect();
        let known = related.iter().position(|(known, _)| *known == own);
        let known = known.unwrap_or_else(|| {
            let results: Vec<EarlierResults> =
                own.iter().map(|other| results[*other].clone()).collect();
            let prior = Prior::learn(&[KnobKind::PowerCap], &results);
            related.push((own.clone(), prior));
            related.len() - 1
        });
        let place = own.iter().position(|other| *other == number);
        related[known].1.without(place.unwrap_or(usize::MAX))
    };
    (0..curves.len()).map(prior).collect()
}

fn earlier_results(curve: &Curve) -> EarlierResults {
    EarlierResults {
        points: curve.caps.iter().map(|cap| vec![*cap]).collect(),
        outcomes: curve.points.clone(),
        reference: curve.caps.len() - 1,
    }
}

impl CurveSet {
    fn search(
        &self,
        number: usize,
        curve: &Curve,
        objective: Objective,
        contender: Contender,
        seed: u64,
    ) -> Result<SearchResult> {
        let reference = curve.points.last().context("the curve has no points")?;
        let (values, best) = super::objective_values(&curve.points, reference, objective)?;
        let start = |acceptable_regret: f64| -> Result<Box<dyn Strategy>> {
            let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &curve.caps)?;
            let options = SearchOptions {
                seed,
                is_replay: self.is_recorded,
                max_evaluations: MAX_EVALUATIONS,
                acceptable_regret,
                prior: match contender {
                    Contender::GuidedWithPrior => self.priors[number].clone(),
                    _ => Prior::default(),
                },
                ..SearchOptions::default()
            };
            let order = Seed::new(seed).label("order").label(&curve.name);
            Ok(match contender {
                Contender::GuidedCold | Contender::GuidedWithPrior => {
                    StrategyName::Guided.start(space, &objective.into(), options)
                }
                Contender::Named(name) => name.start(space, &objective.into(), options),
                Contender::Random => Box::new(RandomSearch::new(space, objective, order)),
                Contender::GaussianProcess => Box::new(GaussianProcess::new(space, objective)),
            })
        };
        let regrets_of = |strategy: &mut dyn Strategy| {
            let choices = self.run(curve, strategy, seed);
            let regret = |choice: usize| values[choice] / best - 1.0;
            choices.into_iter().map(regret).collect::<Vec<f64>>()
        };
        let default = SearchOptions::default().acceptable_regret;
        let is_guided = matches!(
            contender,
            Contender::GuidedCold | Contender::GuidedWithPrior
        );
        let stopped = match is_guided {
            true => {
                let regrets = regrets_of(&mut *start(default)?);
                regrets.last().map(|regret| (regrets.len(), *regret))
            }
            false => None,
        };
        Ok(SearchResult {
            label: format!("{} {objective}", curve.name),
            regrets: regrets_of(&mut *start(0.0)?),
            stopped,
        })
    }

    /// Runs a search to its end, and returns its choice after each evaluation.
    fn run(&self, curve: &Curve, strategy: &mut dyn Strategy, seed: u64) -> Vec<usize> {
        let mut choices = Vec::new();
        while let Proposal::Evaluate(point) = strategy.ask() {
            let draw = Seed::new(seed)
                .label(&curve.name)
                .number(point as u64)
                .number(choices.len() as u64);
            let noisy = |label: &str| match self.is_recorded {
                true => 1.0,
                false => 1.0 + NOISE * draw.label(label).normal(),
            };
            let mut outcome: Outcome = curve.points[point].clone();
            outcome.time = outcome.time * noisy("time");
            outcome.energy = outcome.energy.map(|energy| energy * noisy("energy"));
            outcome.items = Some(1.0);
            strategy.tell(
                point,
                Evaluation::Measured {
                    outcome: Box::new(outcome),
                    noise: (!self.is_recorded).then_some(Noise::equal(NOISE)),
                },
            );
            let choice = strategy.recommend();
            choices.push(choice.map_or(curve.caps.len() - 1, |choice| choice.point));
            if choices.len() == MAX_EVALUATIONS {
                break;
            }
        }
        choices
    }
}
