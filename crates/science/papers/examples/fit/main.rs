//! Fits the profiles of a study to its published values with the simulator.
//!
//! `cargo run --release -p sweetspot-papers --example fit -- STUDY [--write] [--lean] [--caps] [--rounds N]
//! [--least-squares] [--without TEXT] [--held-out]` fits every parameter that a profile of the study lists as `fitted`
//! and prints the values. `--write` writes them into the profiles' files, and what is computed from them.
//! `--least-squares` skips the random steps that reduce the largest error afterwards. `--without` leaves out a table or
//! the rows whose label begins with the text, such as `8 GPUs`. `--held-out` makes such a fit for each row or group of
//! rows and stores them in `data/held_out`. `--fingerprints` stores there which profiles these fits belong to. `--caps` fits the best caps too, for studies that share a GPU together
//! (`A,B`). `--lean` skips the least squares and only reduces the largest error.
//! `cargo run --release -- simulate --errors` then shows the deviations.

mod candidate;
mod caps;
mod fingerprints;
mod held_out;
mod random_search;
mod residuals;
mod write;

use std::error::Error;

use sweetspot_papers::compare_with;
use sweetspot_stats::{Bounds, Seed, fit};

use candidate::{Candidate, rounded, stored_profiles};
use residuals::{print_rows, residuals_without};

/// The number of fits by least squares that start near the best one so far.
const STARTS: u64 = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let study = arguments.next().ok_or("which study?")?;
    let rest: Vec<String> = arguments.collect();
    let has = |flag: &str| rest.iter().any(|argument| argument == flag);
    let value_of = |flag: &str| {
        let index = rest.iter().position(|argument| argument == flag)?;
        rest.get(index + 1).cloned()
    };
    let rounds = match value_of("--rounds") {
        Some(rounds) => rounds.parse()?,
        None => 20,
    };
    if has("--caps") {
        return random_search::run(&study, 100 * rounds, has("--write"));
    }
    if has("--fingerprints") {
        return fingerprints::run(&study);
    }
    if has("--held-out") {
        return held_out::run(&study, rounds);
    }
    let without = value_of("--without").unwrap_or_default();
    let mut candidate = Candidate::built_in(&study)?;
    println!("# {study}: {} free parameters", candidate.parameters.len());
    let checked = candidate.residuals(&without)?;
    let squares = match has("--lean") {
        true => candidate.values.clone(),
        false => least_squares(
            &checked,
            &candidate.values,
            &candidate.bounds,
            rounds,
            STARTS,
        ),
    };
    let found = match has("--least-squares") {
        true => squares,
        false => reduce_largest_error(&checked, squares, &candidate.bounds, 50 * rounds),
    };
    let squares = sum_of_squares(&checked(&found));
    println!("# sum of squares, relative to the tolerances: {squares:.4}");
    drop(checked);
    candidate.values = found.iter().map(|value| rounded(*value)).collect();
    candidate.print();
    let profiles = candidate.profiles(&stored_profiles()?)?;
    let deviations = compare_with(&study, &profiles)?.ok_or("no such study")?;
    let (met, judged) = deviations.count_met();
    println!("# {met} of {judged} values are within their tolerance");
    if !without.is_empty() {
        print_rows(&deviations, &without);
    }
    if has("--write") {
        write::write(&study, &candidate, &profiles)?;
    }
    Ok(())
}

fn sum_of_squares(residuals: &[f64]) -> f64 {
    residuals.iter().map(|residual| residual * residual).sum()
}

/// The parameters with the least sum of squares that fits from several starts find. Best settings jump, so that one fit
/// may end at a local minimum.
fn least_squares(
    residuals: &impl Fn(&[f64]) -> Vec<f64>,
    start: &[f64],
    bounds: &[Bounds],
    rounds: usize,
    starts: u64,
) -> Vec<f64> {
    let squares = |values: &[f64]| sum_of_squares(&residuals(values));
    let mut best = fit(residuals, start, bounds, rounds).parameters;
    for number in 0..starts {
        let seed = Seed::new(3).number(number);
        let near = best
            .iter()
            .zip(bounds)
            .enumerate()
            .map(|(index, (value, bound))| {
                let moved = value * (0.3 * seed.number(index as u64).normal()).exp();
                moved.clamp(bound.low, bound.high)
            });
        let found = fit(residuals, &near.collect::<Vec<_>>(), bounds, rounds).parameters;
        if squares(&found) < squares(&best) {
            best = found;
        }
    }
    best
}

/// Reduces the largest error by small random steps, because best settings jump, so that there is no derivative.
fn reduce_largest_error(
    residuals: &impl Fn(&[f64]) -> Vec<f64>,
    start: Vec<f64>,
    bounds: &[Bounds],
    steps: usize,
) -> Vec<f64> {
    let largest = |parameters: &[f64]| {
        let residuals = residuals(parameters);
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        // The sum of squares decides between equal largest errors.
        residuals.iter().fold(0f64, |most, r| most.max(r.abs())) + 1e-3 * squares.sqrt()
    };
    let (mut best, mut reached) = (start.clone(), largest(&start));
    for step in 0..steps {
        let seed = Seed::new(1).number(step as u64);
        let size = [0.003, 0.01, 0.03, 0.1][step % 4];
        let mut trial = best.clone();
        for (index, (value, bound)) in trial.iter_mut().zip(bounds).enumerate() {
            let draw = seed.number(index as u64);
            if draw.label("moves").uniform() < 0.5 {
                let moved = *value + size * value.abs().max(0.01 * bound.high) * draw.normal();
                *value = moved.clamp(bound.low, bound.high);
            }
        }
        let at_trial = largest(&trial);
        if at_trial < reached {
            (best, reached) = (trial, at_trial);
        }
    }
    println!("# largest error: {reached:.3} of the tolerance");
    best
}
