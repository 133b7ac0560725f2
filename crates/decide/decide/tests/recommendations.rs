//! Recommendations: which candidates may be the best, which of them is recommended, and when to change nothing.

use sweetspot_decide::{
    Candidate, Choice, Comparison, Criteria, Evidence, LinePosition, NoChoice, Objective, Outcome,
    Preference, Tariff,
};
use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

/// Runs around these times and energies with this relative noise, for a known number of items.
fn candidates(truth: &[(f64, f64)], runs: usize, noise: f64, seed: u64) -> Vec<Candidate> {
    let run = |(time, energy): (f64, f64), seed: Seed| {
        let [of_time, of_energy] = seed.normals();
        Outcome {
            items: Some(1000.0),
            ..Outcome::new(
                Seconds::new(time * (1.0 + noise * of_time)),
                Joules::new(energy * (1.0 + noise * of_energy)),
            )
        }
    };
    let seed = Seed::new(seed);
    let all = truth.iter().enumerate().map(|(point, truth)| {
        let seed = seed.number(point as u64);
        let runs = (0..runs).map(|number| run(*truth, seed.number(number as u64)));
        Candidate::of(runs.collect::<Vec<_>>())
    });
    all.collect()
}

/// Compares candidates along one axis with the last of them.
fn along_axis(candidates: &[Candidate]) -> Comparison {
    let last = (candidates.len() - 1).max(1) as f64;
    let places = (0..candidates.len()).map(|point| LinePosition {
        line: 0,
        position: Some(point as f64 / last),
    });
    Comparison::new(candidates, candidates.last(), Tariff::NONE).with_places(places.collect())
}

fn recommend(comparison: &Comparison, objective: Objective, prefer: Preference) -> Choice {
    let criteria = Criteria {
        preference: prefer,
        ..objective.into()
    };
    comparison.recommend(&criteria, None).unwrap()
}

/// A curve with its least energy at the low end: 31 caps, of which the upper third does not bind.
fn curve() -> Vec<(f64, f64)> {
    let point = |number: usize| {
        let cap = 150.0 + 5.0 * number as f64;
        let power = cap.min(250.0);
        let time = 100.0 * (0.75 + 0.25 * (190.0 / (power - 60.0)));
        (time, power * time)
    };
    (0..31).map(point).collect()
}

#[test]
fn without_any_effect_nothing_is_changed_and_no_tie_is_missed() {
    for noise in [0.003, 0.01, 0.03] {
        for seed in 0..8 {
            let all = candidates(&[(100.0, 20_000.0); 31], 5, noise, seed);
            let without_order = Comparison::new(&all, all.last(), Tariff::NONE);
            for comparison in [along_axis(&all), without_order] {
                let choice = recommend(&comparison, Objective::Edp, Preference::Time);
                assert_eq!(choice.reference_is_as_good(), Some(true), "{noise} {seed}");
                assert_eq!(choice.may_be_best.len(), 31, "{noise} {seed}");
            }
        }
    }
}

#[test]
fn one_noisy_run_of_each_setting_recommends_no_change_without_effect() {
    for (runs, noise) in [(1, 0.05), (1, 0.1), (1, 0.2), (2, 0.2)] {
        let mut changed = [0, 0];
        for seed in 0..20 {
            let all = candidates(&[(100.0, 20_000.0); 31], runs, noise, seed);
            let without_order = Comparison::new(&all, all.last(), Tariff::NONE);
            for (changed, comparison) in changed.iter_mut().zip([along_axis(&all), without_order]) {
                let choice = recommend(&comparison, Objective::Edp, Preference::Time);
                *changed += u32::from(choice.reference_is_as_good() != Some(true));
            }
        }
        assert!(
            changed.iter().all(|changed| *changed <= 1),
            "{runs} runs, noise {noise}: {changed:?} of 20"
        );
    }
}

#[test]
fn among_ties_the_preferred_candidate_is_recommended() {
    let all = candidates(&curve(), 5, 0.003, 1);
    let comparison = along_axis(&all);
    let by = |prefer| recommend(&comparison, Objective::Edp, prefer);
    let (fastest, frugal, mean) = (
        by(Preference::Time),
        by(Preference::Energy),
        by(Preference::Mean),
    );
    let ties = &fastest.may_be_best;
    assert!((2..=7).contains(&ties.len()), "{ties:?}");
    assert_eq!(ties, &frugal.may_be_best);
    assert_eq!(fastest.candidate, *ties.last().unwrap());
    assert_eq!(frugal.candidate, ties[0]);
    assert_eq!(
        mean.candidate,
        comparison.best_mean(Objective::Edp, &[]).unwrap()
    );
    assert!(fastest.chance_of_no_gain.unwrap() < 0.01);
    assert!(fastest.expected_loss.unwrap() < 0.01);
    // What is called better than the reference by ranges is what the recommendation says.
    let axis: Vec<(usize, usize)> = (0..31).map(|point| (point, point)).collect();
    let ranges = comparison
        .better_than_reference(&axis, Objective::Edp, Evidence::Significant)
        .unwrap();
    assert!(
        ranges
            .iter()
            .any(|range| range.candidates.contains(&fastest.candidate))
    );
}

#[test]
fn a_plateau_is_one_tie() {
    // Above 250 W the cap does not bind: the fastest settings are all equal.
    let mut missed = 0;
    for seed in 0..10 {
        let comparison = along_axis(&candidates(&curve(), 5, 0.005, seed));
        let choice = recommend(&comparison, Objective::Time, Preference::Time);
        assert_eq!(choice.reference_is_as_good(), Some(true));
        missed += usize::from((20..31).any(|point| !choice.may_be_best.contains(&point)));
    }
    assert!(missed <= 1, "{missed} of 10");
}

#[test]
fn noise_beyond_any_effect_keeps_the_reference() {
    let comparison = along_axis(&candidates(&curve()[20..], 5, 0.2, 3));
    let choice = recommend(&comparison, Objective::Energy, Preference::Time);
    assert_eq!(choice.reference_is_as_good(), Some(true));
    assert!(choice.expected_loss.unwrap() > 0.01);
}

#[test]
fn one_noisy_setting_does_not_hide_the_others() {
    let mut all = candidates(&curve(), 5, 0.002, 4);
    let noisy = candidates(&curve(), 5, 0.2, 5);
    all[15] = noisy[15].clone();
    let choice = recommend(&along_axis(&all), Objective::Edp, Preference::Time);
    assert_eq!(choice.reference_is_as_good(), Some(false));
    assert!(choice.may_be_best.len() <= 12, "{:?}", choice.may_be_best);
}

#[test]
fn few_and_uneven_runs_give_an_answer() {
    let all = candidates(&curve(), 5, 0.003, 6);
    // One run each.
    let single: Vec<Candidate> = all
        .iter()
        .map(|candidate| Candidate::of(candidate.runs[..1].to_vec()))
        .collect();
    let choice = recommend(&along_axis(&single), Objective::Edp, Preference::Time);
    assert_eq!(
        (choice.fewest_runs, choice.reference_is_as_good()),
        (1, Some(false))
    );
    // Different numbers of runs.
    let uneven: Vec<Candidate> = (0..31)
        .map(|point| Candidate::of(all[point].runs[..1 + point % 5].to_vec()))
        .collect();
    let choice = recommend(&along_axis(&uneven), Objective::Edp, Preference::Time);
    assert_eq!(choice.reference_is_as_good(), Some(false));
    // An axis with two values.
    let two = along_axis(&[all[3].clone(), all[30].clone()]);
    let choice = recommend(&two, Objective::Edp, Preference::Time);
    assert_eq!(
        (choice.candidate, choice.reference_is_as_good()),
        (0, Some(false))
    );
    // Identical runs without any noise.
    let exact = candidates(&curve(), 2, 0.0, 7);
    let choice = recommend(&along_axis(&exact), Objective::Energy, Preference::Time);
    assert_eq!(choice.may_be_best, [0]);
}

#[test]
fn failures_are_left_out() {
    let mut all = candidates(&curve(), 3, 0.003, 8);
    let failed = |candidate: &mut Candidate| candidate.failed = Some("it failed".to_owned());
    // All failed but one, and the reference.
    for candidate in &mut all[..30] {
        failed(candidate);
    }
    all[7].failed = None;
    let choice = recommend(&along_axis(&all), Objective::Edp, Preference::Time);
    assert_eq!(
        (choice.candidate, choice.reference_is_as_good()),
        (7, Some(false))
    );
    // The reference failed too: nothing can be compared with it.
    failed(&mut all[30]);
    let choice = recommend(&along_axis(&all), Objective::Edp, Preference::Time);
    assert_eq!((choice.candidate, choice.reference_is_as_good()), (7, None));
    failed(&mut all[7]);
    let none = along_axis(&all).recommend(&Objective::Edp.into(), None);
    assert!(matches!(none, Err(NoChoice::AllFailed(_))), "{none:?}");
}

#[test]
fn the_change_against_the_reference_has_an_honest_interval() {
    let truth = curve();
    let true_change = truth[5].1 / truth[30].1 - 1.0;
    let covered = (0..40).filter(|seed| {
        let comparison = along_axis(&candidates(&truth, 5, 0.01, *seed));
        let assessment = comparison.assess(Objective::Energy).unwrap();
        let change = assessment.change(5).unwrap();
        change.interval95.low <= true_change && true_change <= change.interval95.high
    });
    assert!(covered.count() >= 36);
}

#[test]
fn keeping_the_reference_is_not_certain_while_a_large_gain_is_likely() {
    // Two settings, of which one is 12 % better, with noise of 3 %: three runs do not suffice.
    let mut kept = 0;
    for seed in 0..20 {
        let all = candidates(&[(125.0, 14_000.0), (100.0, 20_000.0)], 3, 0.03, seed);
        let choice = recommend(&along_axis(&all), Objective::Edp, Preference::Time);
        if choice.reference_is_as_good() == Some(true) {
            kept += 1;
            assert!(choice.expected_loss.unwrap() > 0.01, "{seed}: {choice:?}");
        }
    }
    assert!(kept < 18, "{kept} of 20");
}

#[test]
fn a_significant_gain_has_an_interval_above_zero_and_little_doubt() {
    for seed in 0..10 {
        let comparison = along_axis(&candidates(&curve(), 2, 0.02, seed));
        for objective in [Objective::Edp, Objective::Energy, Objective::GainMinusLoss] {
            let choice = recommend(&comparison, objective, Preference::Time);
            let interval = choice.against_reference.unwrap().interval95.unwrap();
            let is_better = choice.reference_is_as_good() == Some(false);
            assert!(
                !is_better || interval.low > 0.0,
                "{seed} {objective}: {choice:?}"
            );
            assert!(!is_better || choice.chance_of_no_gain.unwrap() <= 0.025);
        }
    }
}
