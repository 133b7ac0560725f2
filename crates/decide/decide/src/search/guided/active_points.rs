//! Selects the active points, at which the model is evaluated: all of them, or a subset if there are too many.

use super::super::SearchSpace;

/// The number of points above which only a subset is active: a larger covariance matrix would take too long.
const MAX_POINTS: usize = 64;

/// Returns all possible points if they are few, and otherwise a coarse grid, the reference, the measured points and
/// the points near `best`.
pub(super) fn active_points(
    space: &SearchSpace,
    is_possible: impl Fn(usize) -> bool,
    is_measured: impl Fn(usize) -> bool,
    best: usize,
) -> Vec<usize> {
    let possible: Vec<usize> = (0..space.points().len())
        .filter(|point| is_possible(*point))
        .collect();
    if possible.len() <= MAX_POINTS {
        return possible;
    }
    let values: Vec<Vec<f64>> = (0..space.knobs().len())
        .map(|knob| distinct_values(space, knob))
        .collect();
    let count = values_per_knob(&values);
    let coarse: Vec<Vec<f64>> = values.iter().map(|all| even_steps(all, count)).collect();
    let best = &space.points()[best];
    let chosen = |point: &usize| {
        let own = &space.points()[*point];
        let is_coarse = || {
            let mut knobs = own.iter().zip(&coarse);
            knobs.all(|(value, coarse)| coarse.contains(value))
        };
        let is_near = || {
            let mut knobs = own.iter().zip(best).zip(&values);
            knobs.all(|((value, best), all)| steps_between(all, *value, *best) <= 1)
        };
        // Along each single knob, the points up to the next value of the coarse grid are active too.
        let is_between_steps = || {
            let mut differing = (0..own.len()).filter(|knob| own[*knob] != best[*knob]);
            let first = differing.next();
            let within = |knob: usize| {
                let gap = values[knob].len().div_ceil(count).min(6);
                steps_between(&values[knob], own[knob], best[knob]) <= gap
            };
            differing.next().is_none() && first.is_none_or(within)
        };
        *point == space.reference()
            || is_measured(*point)
            || is_coarse()
            || is_near()
            || is_between_steps()
    };
    possible.into_iter().filter(chosen).collect()
}

/// The largest number of values per knob for which the coarse grid has at most [`MAX_POINTS`] points.
fn values_per_knob(values: &[Vec<f64>]) -> usize {
    let fits = |count: &usize| {
        let product: usize = values.iter().map(|all| all.len().min(*count)).product();
        product <= MAX_POINTS
    };
    (2..=MAX_POINTS).take_while(fits).last().unwrap_or(2)
}

/// The values of a knob in ascending order, each once.
fn distinct_values(space: &SearchSpace, knob: usize) -> Vec<f64> {
    let mut values: Vec<f64> = space.points().iter().map(|point| point[knob]).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Takes `count` of the values: the lowest, the highest and evenly spaced ones between them.
fn even_steps(all: &[f64], count: usize) -> Vec<f64> {
    if all.len() <= count {
        return all.to_vec();
    }
    let last = (all.len() - 1) as f64;
    let steps = (count - 1).max(1) as f64;
    (0..count)
        .map(|number| all[(last * number as f64 / steps + 0.5) as usize])
        .collect()
}

/// The distance between two values of a knob, in positions of its sorted values.
fn steps_between(values: &[f64], a: f64, b: f64) -> usize {
    let index = |value: f64| values.partition_point(|other| *other < value);
    index(a).abs_diff(index(b))
}
