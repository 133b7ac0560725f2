//! Objectives against the paper's arithmetic, choices against brute force.

use proptest::prelude::*;
use sweetspot_decide::{Objective, ObjectiveError, Outcome, best, pareto};
use sweetspot_quantity::{Joules, Seconds};

fn outcome(time: f64, energy: f64) -> Outcome {
    Outcome {
        time: Seconds::new(time),
        energy: Joules::new(energy),
        items: Some(1000.0),
    }
}

fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    // A coarse grid, so that equal values and twins occur.
    prop::collection::vec((1u32..12, 1u32..12), 1..25).prop_map(|points| {
        points
            .into_iter()
            .map(|(time, energy)| outcome(f64::from(time), f64::from(energy)))
            .collect()
    })
}

const ALL: [Objective; 10] = [
    Objective::Energy,
    Objective::Time,
    Objective::Power,
    Objective::Edp,
    Objective::Ed2p,
    Objective::Eds(1.5),
    Objective::GainMinusLoss,
    Objective::EnergyPerItem,
    Objective::ItemsPerJoule,
    Objective::Throughput,
];

#[test]
fn eds_follows_equation_4() {
    // V100 and Resnet50 of table 3: 300 W is the reference, 150 W the other point.
    let (reference, capped) = (outcome(266.4, 69_886.0), outcome(339.0, 47_866.0));
    let k = 1.5;
    let alpha = (k - 1.0) / (k * 69_886.0);
    let beta = 1.0 / (k * 266.4);
    let by_hand = alpha * 47_866.0 + beta * 339.0;
    let value = Objective::Eds(k).value(&capped, &reference).unwrap();
    assert!((value - by_hand).abs() < 1e-12);
    let metric = |objective: Objective| objective.value(&capped, &reference).unwrap();
    assert_eq!(metric(Objective::Energy), 47_866.0);
    assert_eq!(metric(Objective::Edp), 47_866.0 * 339.0);
    assert!(
        (metric(Objective::GainMinusLoss) - (22_020.0 / 69_886.0 - 72.6 / 266.4)).abs() < 1e-12
    );
}

#[test]
fn what_needs_items_has_no_value_without_them() {
    let unknown = Outcome {
        items: None,
        ..outcome(1.0, 1.0)
    };
    assert_eq!(Objective::Throughput.value(&unknown, &unknown), None);
    assert_eq!(best(&[unknown], &unknown, Objective::Throughput), None);
}

#[test]
fn names_are_read_as_they_are_written() {
    for objective in ALL {
        assert_eq!(objective.to_string().parse(), Ok(objective));
    }
    assert_eq!(Objective::Eds(2.0).to_string(), "eds:2.0");
    assert_eq!("eds:2".parse(), Ok(Objective::Eds(2.0)));
    for text in ["eds", "eds:", "eds:1", "eds:0.5", "eds:inf", "eds:NaN"] {
        let error = text.parse::<Objective>().unwrap_err();
        assert_eq!(error, ObjectiveError::Factor(text.to_owned()));
    }
    assert!(matches!(
        "speed".parse::<Objective>(),
        Err(ObjectiveError::Unknown(_))
    ));
}

proptest! {
    #[test]
    fn the_reference_has_an_eds_of_one(time in 0.1..1e4f64, energy in 0.1..1e6f64, k in 1.01..10.0f64) {
        let reference = outcome(time, energy);
        prop_assert!((Objective::Eds(k).value(&reference, &reference).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_beats_the_best(outcomes in outcomes()) {
        let reference = outcomes[0];
        for objective in ALL {
            let champion = outcomes[best(&outcomes, &reference, objective).unwrap()];
            let champion = objective.value(&champion, &reference).unwrap();
            for outcome in &outcomes {
                prop_assert!(!objective.is_better(objective.value(outcome, &reference).unwrap(), champion));
            }
        }
    }

    #[test]
    fn units_change_no_choice(outcomes in outcomes()) {
        let scaled: Vec<Outcome> = outcomes.iter().map(|o| Outcome { time: o.time * 1024.0, energy: o.energy * 0.25, items: o.items }).collect();
        for objective in ALL {
            prop_assert_eq!(best(&outcomes, &outcomes[0], objective), best(&scaled, &scaled[0], objective));
        }
    }

    #[test]
    fn the_front_is_the_front_by_brute_force(outcomes in outcomes()) {
        let dominates = |a: &Outcome, b: &Outcome| {
            a.time <= b.time && a.energy <= b.energy && (a.time < b.time || a.energy < b.energy)
        };
        let by_force: Vec<usize> = (0..outcomes.len())
            .filter(|i| !outcomes.iter().any(|other| dominates(other, &outcomes[*i])))
            .collect();
        prop_assert_eq!(pareto(&outcomes), by_force);
    }
}
