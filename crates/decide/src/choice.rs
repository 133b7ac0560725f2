//! The best outcome, and those that no other beats.

use crate::{Objective, Outcome};

/// The index of the best outcome; of equals, the first. Nothing where the objective has no value.
pub fn best(outcomes: &[Outcome], reference: &Outcome, objective: Objective) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (index, outcome) in outcomes.iter().enumerate() {
        let Some(value) = objective.value(outcome, reference) else {
            continue;
        };
        if best.is_none_or(|(_, champion)| objective.is_better(value, champion)) {
            best = Some((index, value));
        }
    }
    best.map(|(index, _)| index)
}

/// The indices, ascending, of outcomes that no other beats in both time and energy.
pub fn pareto(outcomes: &[Outcome]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..outcomes.len())
        .filter(|index| outcomes[*index].time.is_finite() && outcomes[*index].energy.is_finite())
        .collect();
    let key = |index: usize| (outcomes[index].time.get(), outcomes[index].energy.get());
    order.sort_by(|a, b| {
        let ((time_a, energy_a), (time_b, energy_b)) = (key(*a), key(*b));
        time_a
            .total_cmp(&time_b)
            .then(energy_a.total_cmp(&energy_b))
    });
    // Going from the fastest to the slowest, an outcome is on the front if it needs less energy than
    // every faster one, or is the twin of the last on the front.
    let mut front: Vec<usize> = Vec::new();
    for index in order {
        let kept = front
            .last()
            .is_none_or(|last| key(index).1 < key(*last).1 || key(index) == key(*last));
        if kept {
            front.push(index);
        }
    }
    front.sort_unstable();
    front
}
