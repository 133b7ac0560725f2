//! Which places are looked at, where there are too many to look at all.

use super::super::Space;

/// A covariance of more places takes too long.
const MOST: usize = 64;

/// All places that are open, where they are few. Else even steps along each knob, the reference and what
/// was measured, and all that is near to the best.
pub(super) fn active(
    space: &Space,
    is_open: impl Fn(usize) -> bool,
    is_measured: impl Fn(usize) -> bool,
    best: usize,
) -> Vec<usize> {
    let open: Vec<usize> = (0..space.places().len()).filter(|p| is_open(*p)).collect();
    if open.len() <= MOST {
        return open;
    }
    let levels: Vec<Vec<f64>> = (0..space.knobs().len())
        .map(|knob| distinct(space, knob))
        .collect();
    let each = share(&levels);
    let coarse: Vec<Vec<f64>> = levels.iter().map(|all| even_steps(all, each)).collect();
    let here = &space.places()[best];
    let chosen = |place: &usize| {
        let values = &space.places()[*place];
        let on_coarse = || {
            let mut knobs = values.iter().zip(&coarse);
            knobs.all(|(value, levels)| levels.contains(value))
        };
        let near = || {
            let mut knobs = values.iter().zip(here).zip(&levels);
            knobs.all(|((value, best), levels)| steps(levels, *value, *best) <= 1)
        };
        // Along one knob the way to the next coarse step is looked at as well.
        let on_line = || {
            let mut apart = (0..values.len()).filter(|knob| values[*knob] != here[*knob]);
            let first = apart.next();
            let within = |knob: usize| {
                let gap = levels[knob].len().div_ceil(each).min(6);
                steps(&levels[knob], values[knob], here[knob]) <= gap
            };
            apart.next().is_none() && first.is_none_or(within)
        };
        *place == space.reference() || is_measured(*place) || on_coarse() || near() || on_line()
    };
    open.into_iter().filter(chosen).collect()
}

/// How many levels of each knob can be looked at.
fn share(levels: &[Vec<f64>]) -> usize {
    let fits = |each: &usize| {
        let product: usize = levels.iter().map(|all| all.len().min(*each)).product();
        product <= MOST
    };
    (2..=MOST).take_while(fits).last().unwrap_or(2)
}

fn distinct(space: &Space, knob: usize) -> Vec<f64> {
    let mut values: Vec<f64> = space.places().iter().map(|place| place[knob]).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// The ends and even steps between them.
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

fn steps(levels: &[f64], a: f64, b: f64) -> usize {
    let index = |value: f64| levels.partition_point(|level| *level < value);
    index(a).abs_diff(index(b))
}
