//! All strategies: what they evaluate, when they stop, and how they handle failures.

mod common;

use common::search::{capped, caps, outcome, run_search};
use proptest::prelude::*;
use sweetspot_decide::search::{
    Evaluation, KnobKind, Proposal, SearchOptions, SearchSpace, SearchSpaceError, StopReason,
    StrategyName,
};
use sweetspot_decide::{Criteria, Objective, Outcome};
use sweetspot_quantity::{Joules, Seconds};

#[test]
fn every_strategy_meets_the_limits() {
    let caps = caps(100, 300, 10);
    let criteria = Criteria {
        limits: vec!["time<=+5%".parse().unwrap()],
        ..Objective::Energy.into()
    };
    for name in StrategyName::ALL {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
        let mut strategy = name.start(space, &criteria, SearchOptions::default());
        run_search(&mut *strategy, |point, _| {
            let (time, energy) = capped(caps[point], 290.0, 0.3);
            Evaluation::measured(outcome(time, energy))
        });
        let chosen = caps[strategy.recommend().unwrap().point];
        let time = |cap: f64| capped(cap, 290.0, 0.3).0;
        assert!(time(chosen) <= 1.05 * time(300.0), "{name} chose {chosen}");
    }
}

#[test]
fn a_step_smaller_than_the_grid_is_one_grid_step() {
    for step in [1e-300, 0.5, 10.0] {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps(100, 300, 10)).unwrap();
        let options = SearchOptions {
            step: Some(step),
            ..SearchOptions::default()
        };
        let mut strategy = StrategyName::Linear.start(space, &Objective::Edp.into(), options);
        let (asked, _) = run_search(&mut *strategy, |_, _| {
            Evaluation::measured(outcome(1.0, 1.0))
        });
        assert_eq!(asked, (0..=20).rev().collect::<Vec<_>>(), "{step}");
    }
}

#[test]
fn the_reference_comes_first_and_a_failed_one_ends_the_search() {
    for name in StrategyName::ALL {
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps(100, 200, 10)).unwrap();
        let mut strategy = name.start(space, &Objective::Edp.into(), SearchOptions::default());
        assert_eq!(strategy.ask(), Proposal::Evaluate(10), "{name}");
        strategy.tell(10, Evaluation::Failed);
        assert_eq!(
            strategy.ask(),
            Proposal::Stop(StopReason::ReferenceFailed),
            "{name}"
        );
        assert_eq!(strategy.recommend(), None, "{name}");
    }
}

#[test]
fn a_search_of_one_point_or_of_equal_points_ends() {
    for name in StrategyName::ALL {
        for caps in [vec![200.0], caps(100, 300, 5)] {
            let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &caps).unwrap();
            let mut strategy = name.start(space, &Objective::Edp.into(), SearchOptions::default());
            run_search(&mut *strategy, |_, _| {
                Evaluation::measured(outcome(10.0, 1000.0))
            });
            assert!(strategy.recommend().is_some(), "{name}");
        }
    }
}

#[test]
fn invalid_spaces_are_rejected() {
    let one = |points: Vec<Vec<f64>>, reference| {
        SearchSpace::new(vec![KnobKind::PowerCap], points, reference).unwrap_err()
    };
    assert_eq!(one(vec![], 0), SearchSpaceError::Empty);
    assert_eq!(one(vec![vec![1.0, 2.0]], 0), SearchSpaceError::Shape(0));
    assert_eq!(
        one(vec![vec![1.0], vec![f64::NAN]], 0),
        SearchSpaceError::Shape(1)
    );
    assert_eq!(
        one(vec![vec![1.0], vec![1.0]], 0),
        SearchSpaceError::Duplicate(1)
    );
    assert_eq!(one(vec![vec![1.0]], 1), SearchSpaceError::NoReference);
}

fn evaluation() -> impl proptest::strategy::Strategy<Value = Evaluation> {
    let number = prop_oneof![
        8 => 0.1..1000.0_f64,
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ];
    prop_oneof![
        9 => (number.clone(), proptest::option::of(number)).prop_map(|(time, energy)| {
            Evaluation::measured(Outcome::new(Seconds::new(time), energy.map(Joules::new)))
        }),
        1 => Just(Evaluation::Failed),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the results of its evaluations are, a search proposes only existing points, and ends.
    #[test]
    fn any_evaluations_lead_to_an_end(
        name in prop::sample::select(StrategyName::ALL.to_vec()),
        count in 1..30_usize,
        unrequested in prop::collection::vec((0..30_usize, evaluation()), 0..4),
        evaluations in prop::collection::vec(evaluation(), 1..12),
        is_replay: bool,
    ) {
        let values: Vec<f64> = (0..count).map(|step| 100.0 + 7.0 * step as f64).collect();
        let space = SearchSpace::of_one_knob(KnobKind::PowerCap, &values).unwrap();
        let options = SearchOptions { is_replay, ..SearchOptions::default() };
        let mut strategy = name.start(space, &Objective::Edp.into(), options);
        for (point, evaluation) in unrequested {
            strategy.tell(point, evaluation);
        }
        let (asked, _) = run_search(&mut *strategy, |point, number| {
            assert!(point < count);
            evaluations[number % evaluations.len()].clone()
        });
        prop_assert!(asked.len() <= 60);
        if let Some(answer) = strategy.recommend() {
            prop_assert!(answer.point < count);
        }
    }
}
