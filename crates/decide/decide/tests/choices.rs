//! Choices with their margins, ties and exclusions, and the reasons for a missing choice.

mod common;

use common::{around, reporting, run, steady, study};
use sweetspot_decide::{
    Aim, Candidate, Comparison, Exclusion, Limit, NoChoice, NoValue, Objective, Outcome, Standing,
    Tariff,
};
use sweetspot_quantity::{Joules, Seconds};

fn limits(texts: &[&str]) -> Vec<Limit> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

#[test]
fn a_choice_has_a_margin_and_names_its_ties() {
    let default = around(10.0, 2500.0);
    let all = [
        around(10.0, 2500.0),
        around(12.0, 1900.0),
        around(13.0, 1899.0),
        around(11.0, 2200.0),
    ];
    let choice = study(&all, &default)
        .choose(Objective::Energy, &[])
        .unwrap();
    assert_eq!((choice.candidate, &choice.tied_with()[..]), (2, &[1][..]));
    assert!(choice.excluded.is_empty() && !choice.per_item);
    let interval = choice.value.interval95.unwrap();
    assert!(interval.low < 1899.0 && 1899.0 < interval.high && choice.value.runs == 3);
    let (second, margin) = choice.runner_up.unwrap();
    assert_eq!((second, margin.standing), (1, Standing::Same));
    assert!((margin.by - 1.0).abs() < 1e-9);
    let margin = choice.against_reference.unwrap();
    assert!((margin.by - 601.0).abs() < 1e-9 && margin.standing == Standing::Better);
    assert!((margin.relative.unwrap().get() - 0.2404).abs() < 1e-9);
    let interval = margin.interval95.unwrap();
    assert!(interval.low > 590.0 && interval.high < 612.0);
    assert_eq!(choice.reference_is_as_good(), Some(false));
}

#[test]
fn single_runs_are_compared_with_an_assumed_noise() {
    let one = |time, energy| Candidate::of([run(time, energy)]);
    // A quarter less may be noise, an eighth of the energy is not.
    let quarter = [one(10.0, 2500.0), one(12.0, 1900.0), one(11.0, 2460.0)];
    let choice = study(&quarter, &quarter[0])
        .choose(Objective::Energy, &[])
        .unwrap();
    assert_eq!((choice.candidate, choice.may_be_best.len()), (1, 3));
    assert_eq!(choice.reference_is_as_good(), Some(true));
    let all = [one(10.0, 2500.0), one(12.0, 300.0), one(11.0, 2460.0)];
    let choice = study(&all, &all[0]).choose(Objective::Energy, &[]).unwrap();
    assert_eq!((choice.candidate, choice.value.interval95), (1, None));
    assert_eq!((choice.fewest_runs, &choice.may_be_best[..]), (1, &[1][..]));
    assert_eq!(choice.reference_is_as_good(), Some(false));
    let near = [all[0].clone(), all[2].clone()];
    let choice = study(&near, &all[0])
        .choose(Objective::Energy, &[])
        .unwrap();
    assert_eq!(choice.candidate, 1);
    assert_eq!(choice.reference_is_as_good(), Some(true));
}

#[test]
fn a_better_reference_is_reported() {
    let all = [around(12.0, 2600.0), around(13.0, 2700.0)];
    let choice = study(&all, &around(10.0, 2500.0))
        .choose(Objective::Edp, &[])
        .unwrap();
    assert_eq!(choice.against_reference.unwrap().standing, Standing::Worse);
    assert_eq!(choice.reference_is_as_good(), Some(true));
}

#[test]
fn a_reference_outside_the_limits_is_no_alternative() {
    // 250 W at the reference; the only setting below 200 W is no better in energy.
    let all = [around(10.0, 2500.0), around(14.0, 2499.0)];
    let study = study(&all, &all[0]);
    let choice = study.choose(Objective::Energy, &[]).unwrap();
    assert_eq!(choice.reference_is_as_good(), Some(true));
    let choice = study
        .choose(Objective::Energy, &limits(&["power<=200W"]))
        .unwrap();
    assert_eq!((choice.candidate, choice.reference_breaks.len()), (1, 1));
    assert_eq!(choice.reference_is_as_good(), Some(false));
}

#[test]
fn a_margin_is_positive_where_more_is_better_too() {
    let all = [around(10.0, 2500.0), around(12.0, 1900.0)];
    for (objective, best) in [(Objective::Throughput, 0), (Objective::ItemsPerJoule, 1)] {
        let choice = study(&all, &around(20.0, 5000.0))
            .choose(objective, &[])
            .unwrap();
        assert_eq!(choice.candidate, best);
        let (_, second) = choice.runner_up.unwrap();
        assert!(
            second.by > 0.0 && second.standing == Standing::Better,
            "{second:?}"
        );
        assert_eq!(choice.reference_is_as_good(), Some(false));
    }
}

#[test]
fn of_equal_candidates_the_faster_is_chosen() {
    let all = [
        steady(12.0, 1900.0),
        steady(11.0, 1900.0),
        steady(11.0, 1900.0),
    ];
    let choice = study(&all, &all[0]).choose(Objective::Energy, &[]).unwrap();
    assert_eq!(
        (choice.candidate, &choice.tied_with()[..]),
        (1, &[0, 2][..])
    );
}

#[test]
fn limits_exclude_candidates_with_a_reason() {
    let with = |time, energy, accuracy| {
        Candidate::of([reporting(run(time, energy), "accuracy", accuracy)])
    };
    let failed = Candidate {
        failed: Some("out of memory".into()),
        ..with(9.0, 100.0, 0.9)
    };
    let all = [
        with(10.0, 2500.0, 0.76),
        with(13.0, 1900.0, 0.76),
        with(10.4, 2200.0, 0.70),
        with(10.5, 2300.0, 0.75),
        failed,
        Candidate::default(),
        Candidate::of([run(10.2, 100.0)]),
    ];
    let study = study(&all, &all[0]);
    let wanted = limits(&["time<=+5%", "accuracy>=0.75"]);
    let choice = study.choose(Objective::Energy, &wanted).unwrap();
    assert_eq!(choice.candidate, 3);
    let why = |index: usize| &choice.excluded[index].why;
    assert!(
        choice
            .excluded
            .iter()
            .map(|out| out.candidate)
            .eq([1, 2, 4, 5, 6])
    );
    assert_eq!(why(0).to_string(), "misses the limit `time<=+5%` by 23.8 %");
    assert_eq!(
        why(1).to_string(),
        "misses the limit `accuracy>=0.75` by 6.7 %"
    );
    assert_eq!(why(2), &Exclusion::Failed("out of memory".into()));
    assert_eq!(why(3), &Exclusion::NotRun);
    assert!(
        why(4)
            .to_string()
            .contains("the workload did not report `accuracy`")
    );

    let none = study.choose(Objective::Energy, &limits(&["time<=+5%", "accuracy>=0.8"]));
    let Err(NoChoice::OutsideLimits { closest, broken }) = &none else {
        panic!("{none:?}")
    };
    assert_eq!((*closest, broken.len()), (0, 1));
    let said = none.unwrap_err().to_string();
    assert_eq!(
        said,
        "no configuration meets every limit; the closest one misses the limit `accuracy>=0.8` by 5.0 %"
    );
    let unknown = study.choose(Objective::Energy, &limits(&["acuracy>=0.75"]));
    let said = unknown.unwrap_err().to_string();
    assert!(said.starts_with(
        "no run has the value of the limit `acuracy>=0.75`; the values are accuracy, average_power,"
    ));
}

#[test]
fn a_missing_choice_has_a_reason() {
    let choose = |candidates: &[Candidate], reference: Option<&Candidate>, objective| {
        Comparison::new(candidates, reference, Tariff::NONE).choose(objective, &[])
    };
    let (a, b) = (around(10.0, 2500.0), around(12.0, 1900.0));
    assert_eq!(
        choose(&[], Some(&a), Objective::Energy),
        Err(NoChoice::Nothing)
    );
    let only = std::slice::from_ref(&a);
    assert_eq!(
        choose(only, Some(&a), Objective::Energy),
        Err(NoChoice::OnlyOne)
    );
    assert_eq!(
        choose(only, None, Objective::Energy),
        Err(NoChoice::OnlyOne)
    );
    assert_eq!(
        choose(only, Some(&b), Objective::Energy).unwrap().candidate,
        0
    );
    // Without a reference, only the objectives that need one have no choice.
    let both = [a.clone(), b.clone()];
    let no_value = |objective, reason| Err(NoChoice::NoValue { objective, reason });
    let eds = Objective::Eds(2.0);
    assert_eq!(
        choose(&both, None, eds),
        no_value(eds, NoValue::NoReference)
    );
    let choice = choose(&both, None, Objective::Energy).unwrap();
    assert_eq!((choice.candidate, choice.against_reference), (1, None));
    assert_eq!(choice.reference_is_as_good(), None);
    // Without energy, the objective time still works.
    let timed = |time: f64| {
        Candidate::of([time, time * 1.01].map(|time| Outcome::new(Seconds::new(time), None)))
    };
    let both = [timed(10.0), timed(12.0)];
    let energy = Objective::Energy;
    assert_eq!(
        choose(&both, Some(&both[0]), energy),
        no_value(energy, NoValue::NoEnergy)
    );
    assert_eq!(
        choose(&both, Some(&both[0]), Objective::Time)
            .unwrap()
            .candidate,
        0
    );
    let zero = [steady(0.0, 5.0), steady(0.0, 6.0)];
    let edp = Objective::Edp;
    assert_eq!(
        choose(&zero, Some(&zero[0]), edp),
        no_value(edp, NoValue::ZeroTime)
    );
    let zero = [timed(0.0), timed(0.0)];
    let time = Objective::Time;
    assert_eq!(
        choose(&zero, Some(&zero[0]), time),
        no_value(time, NoValue::ZeroTime)
    );
    let failed = Candidate {
        failed: Some("killed".into()),
        ..Candidate::default()
    };
    let none = choose(&[failed.clone(), failed], Some(&a), energy);
    assert_eq!(none, Err(NoChoice::AllFailed("killed".into())));
    let none = choose(
        &[Candidate::default(), Candidate::default()],
        Some(&a),
        energy,
    );
    assert_eq!(none, Err(NoChoice::NotRun));
}

/// Runs of `timeout 60 CMD`, which all take equally long.
fn fixed_time(energy: f64, items: Option<f64>) -> Candidate {
    let run = |jitter: f64| Outcome {
        items: items.map(|items| items * (1.0 + jitter / 50.0)),
        ..Outcome::new(
            Seconds::new(60.0 + jitter),
            Joules::new(energy * (1.0 + jitter / 50.0)),
        )
    };
    Candidate::of([run(0.02), run(0.05), run(0.03)])
}

#[test]
fn runs_of_a_fixed_time_are_compared_by_their_work() {
    let unknown = [
        fixed_time(12e3, None),
        fixed_time(9e3, None),
        fixed_time(7e3, None),
    ];
    let none = study(&unknown, &unknown[0]).choose(Objective::Energy, &[]);
    assert_eq!(none, Err(NoChoice::EqualTimes));
    // Power does not depend on the work.
    let choice = study(&unknown, &unknown[0])
        .choose(Objective::Power, &[])
        .unwrap();
    assert_eq!(choice.candidate, 2);
    // The candidate that did the least work drew the least energy; for the same work the middle one is best.
    let known = [
        fixed_time(12e3, Some(600.0)),
        fixed_time(9e3, Some(580.0)),
        fixed_time(7e3, Some(300.0)),
    ];
    let study = study(&known, &known[0]);
    assert!(study.is_per_item());
    for objective in [Objective::Energy, Objective::EnergyPerItem, Objective::Edp] {
        assert_eq!(
            study.choose(objective, &[]).unwrap().candidate,
            1,
            "{objective}"
        );
    }
    let slowdown = study.mean(1).unwrap().time / study.reference().unwrap().time;
    assert!((slowdown.get() - 600.0 / 580.0).abs() < 1e-6);
    // A percentage applies to the same work, a number to the measured values.
    let percent = study
        .choose(Objective::Energy, &limits(&["time<=+2%"]))
        .unwrap();
    assert_eq!(percent.candidate, 0);
    let number = study
        .choose(Objective::Energy, &limits(&["time<=61s"]))
        .unwrap();
    assert_eq!(number.candidate, 1);
}

#[test]
fn training_to_an_accuracy_is_not_compared_by_items() {
    // A larger batch needs more items to reach the accuracy: that is a loss and not more work.
    let to_accuracy = |time: f64, energy: f64, items: f64| {
        Candidate::of([0.999, 1.001].map(|by| Outcome {
            items: Some(items),
            ..run(time * by, energy * by)
        }))
    };
    let all = [to_accuracy(100.0, 20e3, 1e6), to_accuracy(110.0, 21e3, 2e6)];
    let study = study(&all, &all[0]);
    assert!(!study.is_per_item());
    assert_eq!(study.choose(Objective::Energy, &[]).unwrap().candidate, 0);
    assert_eq!(
        study
            .choose(Objective::EnergyPerItem, &[])
            .unwrap()
            .candidate,
        1
    );
}

#[test]
fn a_run_without_energy_does_not_exclude_the_others() {
    let mut partly = around(12.0, 1900.0);
    partly.runs[1].energy = None;
    let all = [around(10.0, 2500.0), partly];
    let choice = study(&all, &all[0]).choose(Objective::Energy, &[]).unwrap();
    assert_eq!((choice.candidate, choice.value.runs), (1, 2));
}

#[test]
fn the_front_keeps_the_indices_of_the_candidates() {
    let failed = Candidate {
        failed: Some("killed".into()),
        ..around(1.0, 1.0)
    };
    let all = [
        failed,
        around(10.0, 2500.0),
        around(12.0, 2600.0),
        around(13.0, 1900.0),
    ];
    assert_eq!(study(&all, &all[1]).pareto(&Aim::TIME_AND_ENERGY), [1, 3]);
    assert_eq!(
        "accuracy:max".parse(),
        Ok(Aim::most(sweetspot_decide::Value::named("accuracy")))
    );
    assert_eq!("time".parse(), Ok(Aim::TIME_AND_ENERGY[0].clone()));
    assert!("accuracy".parse::<Aim>().is_err());
}

#[test]
fn a_large_study_is_compared() {
    let all: Vec<Candidate> = (0..1000)
        .map(|index| {
            let by = f64::from(index) / 1000.0;
            let noise = [0.99, 0.995, 1.0, 1.005, 1.01];
            Candidate::of(
                noise.map(|noise| run(10.0 * (1.0 + by) * noise, 2500.0 * (1.5 - by) * noise)),
            )
        })
        .collect();
    let study = study(&all, &all[0]);
    for objective in common::PHYSICAL {
        assert!(study.choose(objective, &limits(&["time<=+90%"])).is_ok());
        let axis: Vec<(usize, usize)> = (0..all.len()).map(|index| (index, index)).collect();
        let evidence = sweetspot_decide::Evidence::Significant;
        assert!(
            study
                .better_than_reference(&axis, objective, evidence)
                .is_ok()
        );
    }
}

#[test]
fn the_interval_of_a_relative_objective_includes_the_scatter_of_the_reference() {
    let width = |reference: &Candidate| {
        let study = study(&[around(12.0, 1900.0), around(11.0, 2200.0)], reference);
        let interval = study.estimate(0, Objective::Eds(1.5)).unwrap().interval95;
        let interval = interval.unwrap();
        interval.high - interval.low
    };
    let scattered = Candidate::of([run(9.0, 2300.0), run(10.0, 2500.0), run(11.0, 2700.0)]);
    assert!(width(&scattered) > 3.0 * width(&around(10.0, 2500.0)));
}
