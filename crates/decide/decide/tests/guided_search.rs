//! The guided strategy: what it finds, and in how many evaluations.

mod common;

use common::search::{capped, caps, outcome, run_search};
use sweetspot_decide::search::{
    Evaluation, KnobKind, Noise, Prior, SearchOptions, SearchSpace, StopReason, StrategyName,
};
use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_stats::Seed;

#[test]
fn few_evaluations_find_a_point_near_the_optimum() {
    let caps = caps(100, 300, 5);
    let objectives = [
        Objective::Energy,
        Objective::Edp,
        Objective::Eds(1.5),
        Objective::Eds(2.0),
    ];
    let (mut good, mut all, mut evaluations) = (0, 0, Vec::new());
    for (number, (full, bound)) in [(280.0, 0.15), (320.0, 0.3), (240.0, 0.2), (300.0, 0.5)]
        .into_iter()
        .enumerate()
    {
        let truth: Vec<Outcome> = caps
            .iter()
            .map(|cap| capped(*cap, full, bound))
            .map(|(time, energy)| outcome(time, energy))
            .collect();
        for objective in objectives {
            let values: Vec<f64> = truth
                .iter()
                .map(|own| objective.value(own, &truth[truth.len() - 1]).unwrap())
                .collect();
            let best = values.iter().copied().fold(f64::INFINITY, f64::min);
            for seed in 0..5 {
                let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
                let options = SearchOptions {
                    seed,
                    ..SearchOptions::default()
                };
                let mut strategy = StrategyName::Guided.start(space, &objective.into(), options);
                let (asked, _) = run_search(&mut *strategy, |point, count| {
                    let draw = Seed::new(seed).number(number as u64).number(count as u64);
                    let noisy = |label: &str| 1.0 + 0.01 * draw.label(label).normal();
                    let own = &truth[point];
                    let time = own.time.get() * noisy("time");
                    let energy = own.energy.unwrap().get() * noisy("energy");
                    Evaluation::Measured {
                        outcome: Box::new(outcome(time, energy)),
                        noise: Some(Noise::equal(0.01)),
                    }
                });
                assert!(asked.len() <= 16);
                evaluations.push(asked.len());
                all += 1;
                let chosen = strategy.recommend().unwrap().point;
                good += usize::from(values[chosen] <= 1.01 * best);
            }
        }
    }
    evaluations.sort_unstable();
    assert!(evaluations[evaluations.len() / 2] <= 5, "{evaluations:?}");
    assert!(good * 100 >= all * 97, "{good} of {all} within 1 %");
}

/// The voltage of this GPU falls to 58 % (as an H200's does): below the knee a cap costs much time, and the least
/// energy lies in a sharp bend.
#[test]
fn an_optimum_in_a_sharp_bend_is_found() {
    let caps = caps(200, 700, 5);
    let voltage = |clock: f64| 0.58 + 0.42 / 0.4 * (clock - 0.6_f64).max(0.0);
    let (mut good, mut all, mut claimed, mut lost) = (0, 0, 0.0, 0.0);
    for (full, bound) in [(460.0, 0.8), (490.0, 0.9), (600.0, 0.95), (640.0, 0.9)] {
        let truth = |cap: f64| {
            let still = 165.0;
            let power = |clock: f64| still + (full - still) * clock * voltage(clock).powi(2);
            let mut clock = 1.0;
            while power(clock) > cap {
                clock -= 0.001;
            }
            let time = 100.0 * (1.0 - bound + bound / clock);
            (time, time * power(clock))
        };
        let least = caps
            .iter()
            .map(|cap| truth(*cap).1)
            .fold(f64::INFINITY, f64::min);
        for seed in 0..5 {
            let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
            let options = SearchOptions {
                seed,
                ..SearchOptions::default()
            };
            let criteria = Objective::Energy.into();
            let mut strategy = StrategyName::Guided.start(space, &criteria, options);
            run_search(&mut *strategy, |point, count| {
                let draw = Seed::new(seed).number(full as u64).number(count as u64);
                let noisy = |label: &str| 1.0 + 0.003 * draw.label(label).normal();
                let (time, energy) = truth(caps[point]);
                Evaluation::measured(outcome(time * noisy("time"), energy * noisy("energy")))
            });
            let answer = strategy.recommend().unwrap();
            let regret = truth(caps[answer.point]).1 / least - 1.0;
            all += 1;
            good += usize::from(regret <= 0.01);
            lost += regret;
            claimed += answer.expected_regret.unwrap();
        }
    }
    assert!(good * 10 >= all * 8, "{good} of {all} within 1 %");
    assert!(lost <= 4.0 * claimed, "claimed {claimed}, lost {lost}");
}

#[test]
fn a_clock_and_a_cap_with_a_clock_are_searched() {
    let clocks: Vec<f64> = (50..=150).map(|step| 10.0 * f64::from(step)).collect();
    let at = |cap: f64, clock: f64| {
        let clock = clock / 1500.0;
        let voltage = |clock: f64| 1.0 + 0.8 * (clock - 0.6_f64).max(0.0);
        let dynamic = |clock: f64| 220.0 * clock * (voltage(clock) / voltage(1.0)).powi(2);
        let mut reached = clock;
        while 60.0 + dynamic(reached) > cap {
            reached -= 0.002;
        }
        let time = 100.0 * (0.4 + 0.6 / reached);
        (time, time * (60.0 + dynamic(reached)))
    };
    type Evaluate<'a> = &'a dyn Fn(usize) -> (f64, f64);
    let regret = |space: &SearchSpace, evaluate: Evaluate<'_>, chosen: usize| {
        let value = |point: usize| {
            let (time, energy) = evaluate(point);
            time * energy
        };
        let best = (0..space.points().len())
            .map(value)
            .fold(f64::INFINITY, f64::min);
        value(chosen) / best - 1.0
    };
    let line = SearchSpace::of_one_knob(KnobKind::CoreClock, &clocks).unwrap();
    let on_line = |point: usize| at(300.0, clocks[point]);
    let grid: Vec<Vec<f64>> = caps(120, 300, 10)
        .into_iter()
        .flat_map(|cap| clocks.iter().step_by(2).map(move |clock| vec![cap, *clock]))
        .collect();
    let last = grid.len() - 1;
    let both = SearchSpace::new(
        vec![KnobKind::PowerCap, KnobKind::CoreClock],
        grid.clone(),
        last,
    )
    .unwrap();
    let on_grid = |point: usize| at(grid[point][0], grid[point][1]);
    let cases: [(SearchSpace, Evaluate<'_>); 2] = [(line, &on_line), (both, &on_grid)];
    for (space, evaluate) in cases {
        let criteria = Objective::Edp.into();
        let mut strategy =
            StrategyName::Guided.start(space.clone(), &criteria, SearchOptions::default());
        let (asked, _) = run_search(&mut *strategy, |point, _| {
            let (time, energy) = evaluate(point);
            Evaluation::measured(outcome(time, energy))
        });
        let lost = regret(&space, evaluate, strategy.recommend().unwrap().point);
        assert!(asked.len() <= 16, "{} evaluations", asked.len());
        assert!(lost < 0.01, "regret {lost} after {asked:?}");
    }
}

#[test]
fn batch_sizes_are_searched_together_with_caps() {
    let batches = [8.0, 16.0, 32.0, 64.0, 128.0];
    let points: Vec<Vec<f64>> = caps(100, 250, 10)
        .into_iter()
        .flat_map(|cap| batches.map(|batch| vec![cap, batch]))
        .collect();
    let at = |point: &[f64]| {
        let (time, energy) = capped(point[0], 260.0, 0.3);
        (
            time * (1.0 + 12.0 / point[1]),
            energy * (1.0 + 9.0 / point[1]),
        )
    };
    let value = |point: &[f64]| at(point).0 * at(point).1;
    let best = points
        .iter()
        .map(|point| value(point))
        .fold(f64::INFINITY, f64::min);
    let reference = points.len() - 3;
    let space = SearchSpace::new(
        vec![KnobKind::PowerCap, KnobKind::Level],
        points.clone(),
        reference,
    )
    .unwrap();
    let mut strategy =
        StrategyName::Guided.start(space, &Objective::Edp.into(), SearchOptions::default());
    let (asked, _) = run_search(&mut *strategy, |point, _| {
        let (time, energy) = at(&points[point]);
        Evaluation::measured(outcome(time, energy))
    });
    let chosen = &points[strategy.recommend().unwrap().point];
    assert!(value(chosen) < 1.02 * best, "{chosen:?} after {asked:?}");
}

/// Batch sizes that draw from 140 to 640 W under caps from 200 to 700 W: the curve of one says little about the
/// shape of another.
fn batches() -> Vec<Vec<f64>> {
    let caps = caps(200, 700, 10).into_iter();
    caps.flat_map(|cap| [1.0, 8.0, 64.0, 256.0].map(|batch| vec![cap, batch]))
        .collect()
}

fn at_batch(point: &[f64]) -> (f64, f64) {
    let (full, bound, slowness) = match point[1] as u32 {
        1 => (140.0, 0.3, 30.0),
        8 => (300.0, 0.5, 5.0),
        64 => (480.0, 0.6, 1.4),
        _ => (640.0, 0.7, 1.0),
    };
    let (time, energy) = capped(point[0], full, bound);
    (slowness * time, slowness * energy)
}

#[test]
fn a_level_is_not_dismissed_because_of_one_bad_cap() {
    let points = batches();
    for objective in [Objective::Energy, Objective::Edp] {
        let value = |point: &[f64]| {
            let (time, energy) = at_batch(point);
            objective
                .value(&outcome(time, energy), &outcome(1.0, 1.0))
                .unwrap()
        };
        let least = points.iter().map(|point| value(point));
        let least = least.fold(f64::INFINITY, f64::min);
        for seed in 0..3 {
            let knobs = vec![KnobKind::PowerCap, KnobKind::Level];
            let space = SearchSpace::new(knobs, points.clone(), points.len() - 4).unwrap();
            let options = SearchOptions {
                seed,
                ..SearchOptions::default()
            };
            let mut strategy = StrategyName::Guided.start(space, &objective.into(), options);
            let (asked, _) = run_search(&mut *strategy, |point, _| {
                let (time, energy) = at_batch(&points[point]);
                Evaluation::measured(outcome(time, energy))
            });
            let chosen = &points[strategy.recommend().unwrap().point];
            let lost = value(chosen) / least - 1.0;
            assert!(
                lost < 0.05,
                "{objective}: {lost} at {chosen:?} after {asked:?}"
            );
        }
    }
}

#[test]
fn a_level_that_fails_twice_is_excluded() {
    let points = batches();
    let knobs = vec![KnobKind::PowerCap, KnobKind::Level];
    let space = SearchSpace::new(knobs, points.clone(), points.len() - 4).unwrap();
    let mut strategy =
        StrategyName::Guided.start(space, &Objective::Edp.into(), SearchOptions::default());
    for (point, values) in points.iter().enumerate() {
        if values[1] == 256.0 && values[0] < 300.0 {
            strategy.tell(point, Evaluation::Impossible);
        }
    }
    let (asked, _) = run_search(&mut *strategy, |point, _| match points[point][1] < 256.0 {
        true => {
            let (time, energy) = at_batch(&points[point]);
            Evaluation::measured(outcome(time, energy))
        }
        false => Evaluation::Failed,
    });
    let failed = asked.iter().filter(|point| points[**point][1] == 256.0);
    assert!(failed.count() <= 2 && asked.len() <= 16, "{asked:?}");
    let answer = strategy.recommend().unwrap();
    assert_eq!(points[answer.point][1], 64.0);
    assert!(answer.expected_regret.unwrap() < 0.1, "{answer:?}");
}

#[test]
fn near_a_limit_no_point_is_repeated_more_than_needed() {
    let caps = caps(100, 300, 5);
    let criteria = Criteria {
        limits: vec!["time<=+5%".parse().unwrap()],
        ..Objective::Energy.into()
    };
    for (number, bound) in [0.3, 0.5, 0.7].into_iter().enumerate() {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
        let mut strategy = StrategyName::Guided.start(space, &criteria, SearchOptions::default());
        let (asked, done) = run_search(&mut *strategy, |point, count| {
            let draw = Seed::new(5).number(number as u64).number(count as u64);
            let noisy = |label: &str| 1.0 + 0.003 * draw.label(label).normal();
            let (time, energy) = capped(caps[point], 290.0, bound);
            Evaluation::measured(outcome(time * noisy("time"), energy * noisy("energy")))
        });
        let most = (0..caps.len()).map(|cap| asked.iter().filter(|point| **point == cap).count());
        assert!(most.max().unwrap() <= 4, "{asked:?}");
        assert_eq!(done, StopReason::Converged, "{asked:?}");
    }
}

#[test]
fn a_replay_evaluates_each_point_once() {
    let caps = caps(100, 250, 25);
    let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
    let options = SearchOptions {
        is_replay: true,
        acceptable_regret: 0.0,
        ..SearchOptions::default()
    };
    let mut strategy = StrategyName::Guided.start(space, &Objective::Edp.into(), options);
    let (mut asked, done) = run_search(&mut *strategy, |point, _| {
        let (time, energy) = capped(caps[point], 240.0, 0.4);
        Evaluation::measured(outcome(time, energy))
    });
    assert_eq!(done, StopReason::Complete);
    asked.sort_unstable();
    assert_eq!(asked, (0..caps.len()).collect::<Vec<_>>());
}

#[test]
fn a_prior_without_studies_is_empty() {
    assert!(Prior::learn(&[KnobKind::PowerCap], &[]).is_empty());
}
