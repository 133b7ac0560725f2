//! The best of several outcomes by their values alone.

use crate::objective::same;
use crate::{Basis, Objective, Outcome};

/// The index of the best outcome; equal outcomes are ordered by less time, then by less energy, then by index.
/// `None` if the objective has no value for any outcome.
pub fn best<'a>(
    outcomes: &[Outcome],
    basis: impl Into<Basis<'a>>,
    objective: Objective,
) -> Option<usize> {
    let basis = basis.into();
    let (indices, judged): (Vec<usize>, Vec<(f64, &Outcome)>) = outcomes
        .iter()
        .enumerate()
        .filter_map(|(index, outcome)| {
            let value = objective.value(outcome, basis).ok()?;
            Some((index, (value, outcome)))
        })
        .unzip();
    pick(&judged, objective).map(|index| indices[index])
}

/// The position in `judged`, pairs of objective value and outcome, of the best outcome. Values that differ only by
/// floating-point rounding count as equal; otherwise the unit of a value could decide between equal outcomes.
pub(crate) fn pick(judged: &[(f64, &Outcome)], objective: Objective) -> Option<usize> {
    let direction = objective.direction();
    let mut left: Vec<usize> = (0..judged.len()).collect();
    let value = |index: usize| direction.as_cost(judged[index].0);
    let time = |index: usize| judged[index].1.time.get();
    let energy = |index: usize| judged[index].1.energy.map_or(f64::INFINITY, |e| e.get());
    retain_least(&mut left, value, |a, b| objective.is_same(a, b));
    retain_least(&mut left, time, same);
    retain_least(&mut left, energy, same);
    left.first().copied()
}

/// Removes all indices from `left` whose cost is not the least.
fn retain_least(
    left: &mut Vec<usize>,
    cost: impl Fn(usize) -> f64,
    same: impl Fn(f64, f64) -> bool,
) {
    if let Some(least) = left.iter().map(|index| cost(*index)).reduce(f64::min) {
        left.retain(|index| same(cost(*index), least));
    }
}
