//! Ranges of an axis that are better than the reference, and means over the other axes.

mod common;

use common::{around, run, steady, study};
use sweetspot_decide::{
    Candidate, Cell, Comparison, Direction, Evidence, GroupError, Mean, NoChoice, NoValue,
    Objective, Outcome, Tariff, Value, group,
};
use sweetspot_quantity::{Joules, Megahertz, Ratio, Seconds, Watts};

/// Caps with their times and energies, unsorted.
const CURVE: [(f64, f64, f64); 6] = [
    (300.0, 266.4, 69_886.0),
    (150.0, 339.0, 47_866.0),
    (190.0, 300.8, 53_430.0),
    (180.0, 308.4, 51_431.0),
    (100.0, 600.0, 46_000.0),
    (260.0, 274.5, 63_002.0),
];

fn ranges(
    curve: &[(f64, Candidate)],
    objective: Objective,
    evidence: Evidence,
) -> Vec<(f64, f64, usize)> {
    let candidates: Vec<Candidate> = curve.iter().map(|(_, one)| one.clone()).collect();
    let axis: Vec<(Watts, usize)> = curve
        .iter()
        .enumerate()
        .map(|(index, (cap, _))| (Watts::new(*cap), index))
        .collect();
    study(&candidates, &candidates[0])
        .better_than_reference(&axis, objective, evidence)
        .unwrap()
        .into_iter()
        .map(|range| (range.low.get(), range.high.get(), range.candidates.len()))
        .collect()
}

#[test]
fn the_range_better_than_the_reference_leaves_the_reference_out() {
    let curve = CURVE.map(|(cap, time, energy)| (cap, around(time, energy)));
    let of = |objective| ranges(&curve, objective, Evidence::Means);
    assert_eq!(of(Objective::Energy), [(100.0, 260.0, 5)]);
    assert_eq!(of(Objective::Edp), [(150.0, 260.0, 4)]);
    assert_eq!(of(Objective::Eds(2.0)), [(150.0, 260.0, 4)]);
    assert_eq!(of(Objective::Eds(1.5)), [(260.0, 260.0, 1)]);
    assert_eq!(of(Objective::Time), []);
    let single = CURVE.map(|(cap, time, energy)| (cap, Candidate::of([run(time, energy)])));
    assert_eq!(
        ranges(&single, Objective::Edp, Evidence::Means),
        [(150.0, 260.0, 4)]
    );
    // With single runs without an order, only differences far beyond any usual noise are significant.
    assert_eq!(ranges(&single, Objective::Edp, Evidence::Significant), []);
}

#[test]
fn a_gap_or_a_failure_ends_a_range() {
    let mut curve = CURVE.map(|(cap, time, energy)| (cap, around(time, energy)));
    curve[2].1.failed = Some("killed".into());
    let energy = ranges(&curve, Objective::Energy, Evidence::Significant);
    assert_eq!(energy, [(100.0, 180.0, 3), (260.0, 260.0, 1)]);
    // This setting is better by less than the noise.
    let flat = [
        (300.0, around(10.0, 1000.0)),
        (290.0, around(10.0, 999.9)),
        (280.0, steady(10.0, 900.0)),
    ];
    assert_eq!(
        ranges(&flat, Objective::Energy, Evidence::Means),
        [(280.0, 290.0, 2)]
    );
    assert_eq!(
        ranges(&flat, Objective::Energy, Evidence::Significant),
        [(280.0, 280.0, 1)]
    );
}

#[test]
fn an_unknown_range_has_a_reason() {
    let candidates = [around(10.0, 1000.0), around(12.0, 900.0)];
    let axis = [(Watts::new(300.0), 0), (Watts::new(200.0), 1)];
    let ranges = |study: &Comparison, objective| {
        study.better_than_reference(&axis, objective, Evidence::Means)
    };
    let alone = Comparison::new(&candidates, None, Tariff::NONE);
    let reason = NoValue::NoReference;
    let objective = Objective::Edp;
    assert_eq!(
        ranges(&alone, objective),
        Err(NoChoice::NoValue { objective, reason })
    );
    let of_set_time = |energy: f64| {
        Candidate::of(
            [60.0, 60.01].map(|time| Outcome::new(Seconds::new(time), Joules::new(energy))),
        )
    };
    let candidates = [of_set_time(1000.0), of_set_time(900.0)];
    let study = study(&candidates, &candidates[0]);
    assert!(study.is_work_unknown());
    assert_eq!(ranges(&study, objective), Err(NoChoice::EqualTimes));
    assert_eq!(ranges(&study, Objective::Power).unwrap().len(), 1);
}

fn cell(clock: f64, over: (u32, u32), value: f64) -> Cell<Megahertz, (u32, u32)> {
    Cell {
        by: Megahertz::new(clock),
        over,
        value: Some(value),
    }
}

#[test]
fn the_saving_is_that_of_the_geometric_mean() {
    let mut cells = Vec::new();
    for (clock, factor) in [(1600.0, 1.1), (1350.0, 1.0), (1000.0, 0.8)] {
        for (over, value) in [((5000, 16), 1.0), ((5000, 32), 40.0), ((7000, 16), 3.0)] {
            cells.push(cell(clock, over, value * factor));
        }
    }
    // One combination lacks a clock, and one clock has two values.
    cells.push(cell(1350.0, (7000, 64), 1e9));
    cells.push(cell(1000.0, (5000, 16), 0.8));
    cells.push(Cell {
        value: None,
        ..cell(1000.0, (7000, 64), 0.0)
    });
    let default = Megahertz::new(1350.0);
    let groups = group(&cells, default, Mean::Geometric, Direction::Least).unwrap();
    let clocks: Vec<f64> = groups.groups.iter().map(|group| group.by.get()).collect();
    assert_eq!(clocks, [1000.0, 1350.0, 1600.0]);
    assert_eq!(
        (groups.combinations, groups.left_out, groups.best),
        (3, 1, 0)
    );
    assert!((groups.saving.get() - 0.2).abs() < 1e-12);
    assert_eq!(groups.groups[1].relative, Ratio::new(1.0));
    let of_default = (1.0f64 * 40.0 * 3.0).cbrt();
    assert!((groups.groups[1].mean - of_default).abs() < 1e-12);
    let arithmetic = group(&cells, default, Mean::Arithmetic, Direction::Most).unwrap();
    assert_eq!(arithmetic.best, 2);
    assert!((arithmetic.saving.get() - 0.1).abs() < 1e-12);
    assert!((arithmetic.groups[1].mean - 44.0 / 3.0).abs() < 1e-12);
}

#[test]
fn missing_means_have_a_reason() {
    let cells = [cell(1000.0, (1, 1), 1.0), cell(1350.0, (2, 2), 1.0)];
    let grouped = |cells: &[_], default, mean| {
        group(cells, Megahertz::new(default), mean, Direction::Least).map(|groups| groups.saving)
    };
    assert_eq!(
        grouped(&cells, 900.0, Mean::Geometric),
        Err(GroupError::NoDefault)
    );
    assert_eq!(
        grouped(&cells, 1350.0, Mean::Geometric),
        Err(GroupError::NothingInCommon)
    );
    let negative = [cell(1000.0, (1, 1), -1.0), cell(1350.0, (1, 1), 2.0)];
    let geometric = grouped(&negative, 1350.0, Mean::Geometric);
    assert_eq!(geometric, Err(GroupError::NoMean(Mean::Geometric)));
    // The best may be the default; then nothing is saved.
    let highest = [cell(1000.0, (1, 1), 3.0), cell(1350.0, (1, 1), 2.0)];
    assert_eq!(grouped(&highest, 1350.0, Mean::Geometric), Ok(Ratio::ZERO));
    assert_eq!("geometric".parse(), Ok(Mean::Geometric));
    assert!("harmonic".parse::<Mean>().is_err());
    assert_eq!(Value::named("average-power").to_string(), "average_power");
}
