//! Helpers: small studies to choose from.
#![allow(dead_code, missing_docs)]

pub mod search;

use proptest::prelude::*;
use sweetspot_decide::{Candidate, Comparison, Objective, Outcome, Tariff};
use sweetspot_quantity::{Joules, Seconds};

/// Every objective that needs no tariff.
pub const PHYSICAL: [Objective; 10] = [
    Objective::Energy,
    Objective::Time,
    Objective::Power,
    Objective::Edp,
    Objective::Ed2p,
    Objective::Eds(1.5),
    Objective::GainMinusLoss,
    Objective::EnergyPerItem,
    Objective::ItemsPerJoule,
    Objective::Throughput,
];

pub fn run(time: f64, energy: f64) -> Outcome {
    Outcome {
        items: Some(1000.0),
        ..Outcome::new(Seconds::new(time), Joules::new(energy))
    }
}

pub fn reporting(outcome: Outcome, name: &str, value: f64) -> Outcome {
    let mut outcome = outcome;
    outcome.values.insert(name.to_owned(), value);
    outcome
}

/// A candidate of three runs around a mean.
pub fn around(time: f64, energy: f64) -> Candidate {
    let noise = [0.998, 1.0, 1.002];
    Candidate::of(noise.map(|by| run(time * by, energy * (2.0 - by))))
}

/// A candidate with two equal runs.
pub fn steady(time: f64, energy: f64) -> Candidate {
    Candidate::of([run(time, energy), run(time, energy)])
}

pub fn study(candidates: &[Candidate], reference: &Candidate) -> Comparison {
    Comparison::new(candidates, Some(reference), Tariff::NONE)
}

/// Outcomes on a coarse grid of time, energy, items and devices, so that equal values occur.
pub fn outcomes() -> impl Strategy<Value = Vec<Outcome>> {
    prop::collection::vec((1u32..12, 1u32..12, 1u32..4, 1u64..4), 2..25).prop_map(|points| {
        points
            .into_iter()
            .map(|(time, energy, items, gpus)| Outcome {
                items: Some(f64::from(items)),
                gpus,
                ..Outcome::new(
                    Seconds::new(f64::from(time)),
                    Joules::new(f64::from(energy)),
                )
            })
            .collect()
    })
}

/// Candidates of up to three runs.
pub fn candidates() -> impl Strategy<Value = Vec<Candidate>> {
    prop::collection::vec(outcomes(), 2..12).prop_map(|sets| {
        let few = |runs: Vec<Outcome>| runs.into_iter().take(3).collect::<Vec<_>>();
        sets.into_iter()
            .map(|runs| Candidate::of(few(runs)))
            .collect()
    })
}
