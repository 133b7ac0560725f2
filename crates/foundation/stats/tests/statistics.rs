//! Summaries against known values, invariants of noise, fits of known curves.

use proptest::prelude::*;
use sweetspot_stats::{
    Bounds, Difference, Seed, Summary, any_differs, differ, fit, geometric_mean, solve_symmetric,
};

#[test]
fn a_summary_agrees_with_a_calculation_by_hand() {
    let summary = Summary::of(&[10.1, 9.9, 10.0, 10.2, 9.8]).unwrap();
    assert!((summary.mean - 10.0).abs() < 1e-12);
    assert!((summary.deviation.unwrap() - 0.158_113_883).abs() < 1e-9);
    // Student's t for 4 degrees of freedom is 2.776445 in any table.
    let half = summary.interval95.unwrap().high - summary.mean;
    assert!((half - 2.776_445 * 0.158_113_883 / 5f64.sqrt()).abs() < 1e-6);
}

#[test]
fn the_spread_of_one_run_is_unknown_not_zero() {
    let summary = Summary::of(&[3.0]).unwrap();
    assert_eq!((summary.deviation, summary.interval95), (None, None));
    assert_eq!(Summary::of(&[]), None);
}

#[test]
fn geometric_means_need_positive_values() {
    assert!((geometric_mean(&[1.0, 4.0, 16.0]).unwrap() - 4.0).abs() < 1e-12);
    assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    assert_eq!(geometric_mean(&[]), None);
}

#[test]
fn sets_differ_only_beyond_their_spread() {
    let (low, near, high) = ([10.0, 10.1, 9.9], [10.05, 10.15, 9.95], [11.0, 11.1, 10.9]);
    assert_eq!(differ(&low, &near), Some(false));
    assert_eq!(differ(&low, &high), Some(true));
    assert_eq!(differ(&low, &[10.0]), None);
    assert_eq!(differ(&[1.0, 1.0], &[1.0, 1.0]), Some(false));
    // Of equal sets, about one in twenty differs significantly by chance.
    let draws =
        |set: u64| -> Vec<f64> { (0..5).map(|i| Seed::new(set).number(i).normal()).collect() };
    let differing = (0..2000)
        .filter(|set| differ(&draws(2 * set), &draws(2 * set + 1)) == Some(true))
        .count();
    assert!((60..140).contains(&differing), "{differing} of 2000");
}

#[test]
fn normal_noise_has_mean_zero_and_deviation_one() {
    let draws: Vec<f64> = (0..40_000)
        .map(|i| Seed::new(1).number(i).normal())
        .collect();
    let summary = Summary::of(&draws).unwrap();
    assert!(summary.mean.abs() < 0.02, "{summary:?}");
    assert!(
        (summary.deviation.unwrap() - 1.0).abs() < 0.02,
        "{summary:?}"
    );
    let beyond = draws.iter().filter(|x| x.abs() > 1.96).count() as f64 / 40_000.0;
    assert!((beyond - 0.05).abs() < 0.006, "{beyond}");
}

#[test]
fn the_same_name_always_gives_the_same_bits() {
    let draw = Seed::new(42).label("power_cap_w=150").number(3).normal();
    assert_eq!(draw.to_bits(), PINNED, "{:#x}", draw.to_bits());
}
const PINNED: u64 = 0xc004_8975_37c3_236c;

proptest! {
    #[test]
    fn draws_of_different_names_differ(a in "[a-z=0-9]{0,8}", b in "[a-z=0-9]{0,8}", n in 0u64..1000) {
        prop_assume!(a != b);
        prop_assert_ne!(Seed::new(1).label(&a).get(), Seed::new(1).label(&b).get());
        prop_assert_ne!(Seed::new(1).label(&a).number(n).get(), Seed::new(1).label(&a).number(n + 1).get());
    }

    #[test]
    fn summaries_follow_shifts_and_scaling(values in prop::collection::vec(-1e3..1e3f64, 2..20), by in -1e3..1e3f64) {
        let here = Summary::of(&values).unwrap();
        let shifted: Vec<f64> = values.iter().map(|value| 2.0 * value + by).collect();
        let there = Summary::of(&shifted).unwrap();
        prop_assert!((there.mean - (2.0 * here.mean + by)).abs() < 1e-8);
        prop_assert!((there.deviation.unwrap() - 2.0 * here.deviation.unwrap()).abs() < 1e-8);
    }

    #[test]
    fn solutions_satisfy_their_system(entries in prop::collection::vec(-1.0..1.0f64, 9), right in prop::collection::vec(-1.0..1.0f64, 3)) {
        let mut matrix = vec![0.0; 9];
        for row in 0..3 {
            for column in 0..3 {
                matrix[row * 3 + column] = (0..3).map(|k| entries[row * 3 + k] * entries[column * 3 + k]).sum();
            }
            matrix[row * 3 + row] += 0.5;
        }
        let x = solve_symmetric(&matrix, &right).unwrap();
        for row in 0..3 {
            let product: f64 = (0..3).map(|k| matrix[row * 3 + k] * x[k]).sum();
            prop_assert!((product - right[row]).abs() < 1e-9);
        }
    }
}

#[test]
fn matrices_that_are_not_positive_definite_are_rejected() {
    assert_eq!(solve_symmetric(&[1.0, 2.0, 2.0, 1.0], &[1.0, 1.0]), None);
}

#[test]
fn a_known_curve_is_fitted_within_bounds() {
    let points: Vec<f64> = (1..12).map(|x| f64::from(x) / 4.0).collect();
    let curve = |p: &[f64], x: f64| p[0] + p[1] / x + p[2] * (p[3] * x).exp();
    let truth = [2.0, 3.0, 0.5, -0.7];
    let residuals = |p: &[f64]| {
        points
            .iter()
            .map(|x| curve(p, *x) - curve(&truth, *x))
            .collect()
    };
    let wide = [Bounds {
        low: -10.0,
        high: 10.0,
    }; 4];
    let found = fit(residuals, &[1.0, 1.0, 1.0, -0.2], &wide, 200);
    for (found, truth) in found.parameters.iter().zip(truth) {
        assert!((found - truth).abs() < 1e-4, "{found} for {truth}");
    }
    let mut tight = wide;
    tight[0] = Bounds {
        low: 0.0,
        high: 1.5,
    };
    assert!(fit(residuals, &[1.0, 1.0, 1.0, -0.2], &tight, 200).parameters[0] <= 1.5);
}

#[test]
fn a_difference_of_means_has_welchs_interval() {
    let (a, b) = ([10.1, 10.3, 9.9, 10.0, 10.2], [9.0, 9.4, 9.2]);
    let difference = Difference::of(&a, &b).unwrap();
    assert!((difference.mean - 0.9).abs() < 1e-12);
    // s² of 0.025 over 5 and 0.04 over 3; 3.53 degrees of freedom; the quantile there is 2.927.
    let interval = difference.interval95.unwrap();
    assert!(
        (interval.high - interval.low - 2.0 * 0.39637).abs() < 1e-4,
        "{interval:?}"
    );
    assert_eq!(difference.is_significant(), Some(true));
    assert_eq!(Difference::of(&a, &[9.0]).unwrap().interval95, None);
    assert_eq!(Difference::of(&a, &[]), None);
}

#[test]
fn analysis_of_variance_finds_a_differing_set() {
    // F of 9 with 2 and 6 degrees of freedom is above 5.14; among the first two it is 0.
    let sets = [
        vec![1.0, 2.0, 3.0],
        vec![1.0, 3.0, 2.0],
        vec![4.0, 5.0, 6.0],
    ];
    assert_eq!(any_differs(&sets), Some(true));
    assert_eq!(any_differs(&sets[..2]), Some(false));
    assert_eq!(any_differs(&sets[..1]), None);
    assert_eq!(any_differs(&[vec![1.0], vec![2.0]]), None);
    assert_eq!(any_differs(&[vec![1.0, 1.0], vec![2.0]]), Some(true));
    assert_eq!(any_differs(&[vec![1.0, 1.0], vec![1.0]]), Some(false));
}
