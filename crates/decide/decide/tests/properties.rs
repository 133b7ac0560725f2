//! Properties of every study.

mod common;

use common::{PHYSICAL, candidates, outcomes, run};
use proptest::prelude::*;
use sweetspot_decide::{
    Aim, Candidate, Comparison, Limit, Objective, Outcome, Price, Tariff, Value, best, pareto,
};

/// Whether `a` is as good as `b` in every value and better in one by more than rounding.
fn dominates(a: &Outcome, b: &Outcome, aims: &[Aim]) -> bool {
    let pairs: Vec<(f64, f64)> = aims
        .iter()
        .map(|aim| {
            let sign = if *aim == Aim::least(aim.value.clone()) {
                1.0
            } else {
                -1.0
            };
            (
                sign * aim.value.of(a).unwrap(),
                sign * aim.value.of(b).unwrap(),
            )
        })
        .collect();
    pairs.iter().all(|(a, b)| a <= b) && pairs.iter().any(|(a, b)| b - a > 1e-9 * b.abs())
}

/// The values that an objective consists of: an outcome that is better in all of them is never worse in the
/// objective. None for `carbon`, which also depends on the hour.
fn components(objective: Objective) -> Vec<Aim> {
    match objective {
        Objective::Energy => vec![Aim::least(Value::Energy)],
        Objective::Time => vec![Aim::least(Value::Time)],
        Objective::Power => vec![Aim::least(Value::AveragePower)],
        Objective::Edp | Objective::Ed2p | Objective::Eds(_) | Objective::GainMinusLoss => {
            Aim::TIME_AND_ENERGY.to_vec()
        }
        Objective::EnergyPerItem | Objective::ItemsPerJoule => {
            vec![Aim::least(Value::Energy), Aim::most(Value::Items)]
        }
        Objective::Throughput => vec![Aim::least(Value::Time), Aim::most(Value::Items)],
        Objective::Cost => vec![Aim::least(Value::Energy), Aim::least(Value::DeviceTime)],
        Objective::Carbon => Vec::new(),
    }
}

fn scaled(candidate: &Candidate, [time, energy, items]: [f64; 3]) -> Candidate {
    let runs = candidate.runs.iter().map(|run| Outcome {
        time: run.time * time,
        energy: run.energy.map(|joules| joules * energy),
        items: run.items.map(|done| done * items),
        ..run.clone()
    });
    Candidate::of(runs.collect::<Vec<_>>())
}

fn tariff() -> Tariff {
    Tariff {
        price: Some(Price::new(0.3, 2.0, "EUR").unwrap()),
        carbon: None,
    }
}

const LIMITS: [&str; 4] = [
    "time<=+50%",
    "energy<=+20%",
    "items_per_s>=-50%",
    "average_power<=+0%",
];

proptest! {
    #[test]
    fn the_reference_has_an_eds_of_one(time in 0.1..1e4f64, energy in 0.1..1e6f64, k in 1.01..10.0f64) {
        let reference = run(time, energy);
        prop_assert_eq!(Objective::Eds(k).value(&reference, &reference), Ok(1.0));
    }

    #[test]
    fn the_mean_of_the_reference_has_an_eds_of_one(candidates in candidates(), k in 1.01..10.0f64) {
        let study = Comparison::new(&candidates, Some(&candidates[0]), Tariff::NONE);
        prop_assert_eq!(study.estimate(0, Objective::Eds(k)).unwrap().value, 1.0);
    }

    #[test]
    fn no_outcome_beats_the_best(outcomes in outcomes()) {
        let reference = &outcomes[0];
        for objective in PHYSICAL {
            let champion = &outcomes[best(&outcomes, reference, objective).unwrap()];
            let champion = objective.value(champion, reference).unwrap();
            for outcome in &outcomes {
                let value = objective.value(outcome, reference).unwrap();
                prop_assert!(!objective.is_better(value, champion) || (value - champion).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn a_choice_is_never_dominated(
        candidates in candidates(),
        limits in prop::sample::select(vec![&LIMITS[..0], &LIMITS[..1], &LIMITS[..2], &LIMITS[2..]]),
    ) {
        let study = Comparison::new(&candidates, Some(&candidates[0]), tariff());
        let limits: Vec<Limit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        for objective in PHYSICAL.into_iter().chain([Objective::Cost]) {
            let Ok(choice) = study.choose(objective, &limits) else { continue };
            let chosen = study.mean(choice.candidate).unwrap();
            let allowed = (0..study.len())
                .filter(|index| choice.excluded.iter().all(|out| out.candidate != *index));
            for index in allowed {
                let other = study.mean(index).unwrap();
                prop_assert!(!dominates(other, chosen, &components(objective)));
                if objective == Objective::Energy {
                    prop_assert!(!dominates(other, chosen, &Aim::TIME_AND_ENERGY));
                }
            }
            for limit in &limits {
                prop_assert!(limit.check(chosen, study.basis()).is_ok());
            }
        }
    }

    #[test]
    fn units_do_not_change_the_choice(
        candidates in candidates(),
        factors in prop::array::uniform3(1e-3..1e3f64),
        limits in prop::sample::select(vec![&LIMITS[..0], &LIMITS[..]]),
    ) {
        let limits: Vec<Limit> = limits.iter().map(|limit| limit.parse().unwrap()).collect();
        let others: Vec<Candidate> = candidates.iter().map(|one| scaled(one, factors)).collect();
        let study = Comparison::new(&candidates, Some(&candidates[0]), Tariff::NONE);
        let same = Comparison::new(&others, Some(&others[0]), Tariff::NONE);
        for objective in PHYSICAL {
            let chosen = |study: &Comparison| study.choose(objective, &limits).ok().map(|c| c.candidate);
            prop_assert_eq!(chosen(&study), chosen(&same));
        }
    }

    #[test]
    fn the_front_is_the_front_by_brute_force(outcomes in outcomes()) {
        let by_force = |aims: &[Aim]| -> Vec<usize> {
            (0..outcomes.len())
                .filter(|i| !outcomes.iter().any(|other| dominates(other, &outcomes[*i], aims)))
                .collect()
        };
        let (gpus, items) = (Aim::least(Value::Gpus), Aim::most(Value::Items));
        let [time, energy] = Aim::TIME_AND_ENERGY;
        let rate = Aim::most(Value::ItemsPerSecond);
        for aims in [
            vec![time.clone(), energy.clone()],
            vec![items.clone(), energy.clone()],
            vec![time.clone(), energy.clone(), items.clone()],
            vec![gpus.clone(), energy.clone(), rate],
            vec![time],
            vec![gpus, items],
        ] {
            prop_assert_eq!(pareto(&outcomes, &aims), by_force(&aims));
        }
    }

    #[test]
    fn a_limit_is_parsed_as_it_is_printed(
        (name, units) in prop::sample::select(vec![
            ("time", vec!["s", "ms", "min", "h"]), ("energy", vec!["J", "kJ", "kWh"]), ("average_power", vec!["W", "kW"]),
            ("accuracy", vec!["", "%", "ms", "J", "W", "MHz"]), ("latency_ms", vec!["", "ms", "s"]), ("gpus", vec![""]),
            ("power_cap", vec!["W", ""]), ("tokens_per_s", vec![""]),
        ]),
        unit in any::<prop::sample::Index>(), side in prop::sample::select(vec!["<=", ">="]),
        number in 0.0..1e6f64, percent in -99.0..1e4f64,
    ) {
        let absolute = format!("{name}{side}{number}{}", unit.get(&units));
        let relative = format!("{name} {side} {percent:+}%");
        for text in [absolute, relative] {
            let limit: Limit = text.parse().unwrap();
            prop_assert_eq!(&limit.to_string().parse::<Limit>().unwrap(), &limit);
        }
    }

    #[test]
    fn no_text_makes_a_limit_panic(text in "\\PC{0,20}", bound in "[-+0-9a-zA-Z%. ]{0,8}") {
        let _ = text.parse::<Limit>();
        let _ = format!("time<={bound}").parse::<Limit>();
        if let Ok(limit) = format!("loss>={bound}").parse::<Limit>() {
            prop_assert_eq!(limit.to_string().parse::<Limit>().unwrap(), limit);
        }
    }
}
