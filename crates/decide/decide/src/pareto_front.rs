//! The Pareto front.

use std::borrow::Borrow;

use crate::{Aim, Outcome};

/// The indices of the outcomes on the Pareto front, ascending. An outcome is on the front if no other one is at
/// least as good in every aim and better in one. Outcomes that lack a value are left out.
pub fn pareto<O: Borrow<Outcome>>(outcomes: &[O], aims: &[Aim]) -> Vec<usize> {
    let as_costs = |outcome: &Outcome| -> Option<Vec<f64>> {
        let value = |aim: &Aim| Some(aim.direction.as_cost(aim.value.of(outcome).ok()?));
        aims.iter().map(value).collect()
    };
    let mut points: Vec<(usize, Vec<f64>)> = outcomes
        .iter()
        .enumerate()
        .filter_map(|(index, outcome)| Some((index, as_costs(outcome.borrow())?)))
        .collect();
    // After sorting, an outcome can only be dominated by an earlier one that is on the front.
    points.sort_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let mut front: Vec<(usize, Vec<f64>)> = Vec::new();
    for (index, values) in points {
        let beaten = match &values[..] {
            // With two aims, the last outcome on the front has the least second value so far.
            [_, _] => front
                .last()
                .is_some_and(|(_, last)| dominates(last, &values)),
            _ => front.iter().any(|(_, other)| dominates(other, &values)),
        };
        if !beaten {
            front.push((index, values));
        }
    }
    let mut front: Vec<usize> = front.into_iter().map(|(index, _)| index).collect();
    front.sort_unstable();
    front
}

/// Whether `a` is at least as good as `b` in every aim and better in one; less is better.
fn dominates(a: &[f64], b: &[f64]) -> bool {
    a != b && a.iter().zip(b).all(|(a, b)| a <= b)
}
