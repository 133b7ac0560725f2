//! The families of a belief, and the truths that they make possible.

use std::collections::HashMap;
use std::rc::Rc;

use sweetspot_stats::Seed;

use super::belief::{Belief, Family, Measured, Pair, Truth, nearest};
use super::earlier::Prior;
use super::physics::Workloads;
use super::residual::{Likeness, Residual};
use crate::search::Space;

/// Possible workloads.
const WORKLOADS: usize = 6000;
/// Those of them that are weighed in full: at most so many, fewer the more is measured, and none that explains
/// it worse than the best by more than this (twice the logarithm of a likelihood).
const KEPT: usize = 1000;
const KEPT_TIMES_MEASURED: usize = 8000;
const WORSE: f64 = 60.0;
/// Those that can come back when more is measured.
const ALIVE: usize = 3000;
/// So many of the best are divided after each measurement, each into so many.
const DIVIDED: usize = 80;
const PARTS: usize = 8;
const ROUNDS: usize = 8;
/// Possible truths that a choice is judged by: so many values in all, but at least and at most so many truths.
const VALUES: usize = 14_000;
const TRUTHS: [usize; 2] = [300, 1500];

/// Of the smooth residual around a possible workload, and how likely.
const SMOOTH: [(f64, f64); 3] = [(0.007, 0.5), (0.015, 0.4), (0.04, 0.1)];
/// Of what differs from place to place in a record, and how likely.
const ROUGH: [(f64, f64); 4] = [(0.003, 0.25), (0.01, 0.35), (0.03, 0.25), (0.06, 0.15)];
/// How many times as noisy evaluations are as is usual, and how likely.
const NOISIER: [(f64, f64); 4] = [(0.3, 0.25), (1.0, 0.35), (2.0, 0.25), (4.0, 0.15)];
/// How many times as noisy evaluations are as was told with them, and how likely.
const NOISIER_THAN_TOLD: [(f64, f64); 4] = [(1.0, 0.6), (1.2, 0.2), (1.6, 0.15), (2.5, 0.05)];
/// Each of the smooth ones with each of the rough ones.
pub(super) const RESIDUALS: usize = SMOOTH.len() * ROUGH.len();

/// What evaluations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evaluations {
    /// Looked up: their noise is a part of what is searched.
    Recorded,
    /// Made, with a noise that is told.
    Told,
    /// Made, with a noise that is not known.
    Untold,
}

impl Evaluations {
    /// Of roughness or of noise, and how likely.
    const fn scales(self) -> [(f64, f64); 4] {
        match self {
            Self::Recorded => ROUGH,
            Self::Told => NOISIER_THAN_TOLD,
            Self::Untold => NOISIER,
        }
    }
}

pub(super) struct Model {
    workloads: Workloads,
    /// The numbers of those that are not out of the question.
    alive: Vec<usize>,
    /// Logarithms of what each workload and each residual is trusted with.
    trust: (Vec<f64>, [f64; RESIDUALS]),
    evaluations: Evaluations,
    /// How often the best were divided.
    rounds: usize,
    view: View,
}

/// The places that are looked at, and what depends on them alone.
pub(super) struct View {
    seed: Seed,
    active: Vec<usize>,
    likeness: Likeness,
    normals: Vec<Vec<f64>>,
    /// Of workloads, by their number.
    curves: HashMap<usize, Vec<Pair>>,
}

impl Model {
    /// For a job that draws `power` watts on each GPU at the reference.
    pub(super) fn new(
        space: &Space,
        power: f64,
        prior: &Prior,
        evaluations: Evaluations,
        view: View,
    ) -> Self {
        Self {
            workloads: Workloads::new(space, power, WORKLOADS),
            alive: (0..WORKLOADS).collect(),
            trust: prior.weights(power, WORKLOADS, usual(evaluations)),
            evaluations,
            rounds: 0,
            view,
        }
    }

    /// Which residual and which workload explain a record, as logarithms of weights.
    pub(super) fn explanations(
        space: &Space,
        power: f64,
        measured: &[Measured],
    ) -> Vec<((usize, usize), f64)> {
        let all: Vec<usize> = (0..space.places().len()).collect();
        let places = all.len();
        let view = View::without_draws(space, all, Seed::new(0));
        let prior = Prior::default();
        let mut model = Self::new(space, power, &prior, Evaluations::Recorded, view);
        let (families, kept) = model.families(space, measured);
        let weights = Belief::new(&families, measured, places).weights();
        let number = |((family, curve), weight)| ((family, kept[curve]), weight);
        weights.into_iter().map(number).collect()
    }

    /// Possible truths at the active places, as logarithms of ratios to the reference: time first and then
    /// energy.
    pub(super) fn truths(
        &mut self,
        space: &Space,
        active: &[usize],
        measured: &[Measured],
        count: usize,
    ) -> Option<Vec<Vec<f64>>> {
        if self.view.active != active || self.view.normals.len() != count {
            self.view = View::new(space, active.to_vec(), count, self.view.seed);
        }
        let rounds = measured.len().saturating_sub(1).min(ROUNDS);
        while self.rounds < rounds {
            self.refine(space, measured);
            self.rounds += 1;
        }
        let (families, kept) = self.families(space, measured);
        let belief = Belief::new(&families, measured, active.len());
        let mut truths = belief.truths(&self.view.normals)?;
        for Truth { curve, values } in &mut truths {
            let number = kept[*curve];
            let curve = self.view.curves.entry(number).or_insert_with(|| {
                let places = active.iter();
                places
                    .map(|place| self.workloads.at(space, number, *place))
                    .collect()
            });
            for (index, [time, energy]) in curve.iter().enumerate() {
                values[index] += time;
                values[active.len() + index] += energy;
            }
        }
        Some(truths.into_iter().map(|truth| truth.values).collect())
    }

    /// Looks closer at what explains the measurements best: the workloads at hand are a thin sample, and the
    /// best of them would be trusted for want of others.
    fn refine(&mut self, space: &Space, measured: &[Measured]) {
        let order = self.order(space, measured);
        for (_, number) in order.into_iter().take(DIVIDED) {
            let new = self.workloads.divide(space, number, PARTS);
            let trust = self.trust.0[number] - libm::log(PARTS as f64);
            self.trust.0[number] = trust;
            self.trust.0.extend(new.clone().map(|_| trust));
            self.alive.extend(new);
        }
    }

    /// The workloads by how well they explain the measurements.
    fn order(&mut self, space: &Space, measured: &[Measured]) -> Vec<(f64, usize)> {
        let View {
            active, likeness, ..
        } = &self.view;
        for point in measured {
            self.workloads.look(space, active[point.place]);
        }
        let middle = Residual {
            smooth: SMOOTH[1].0,
            rough: match self.evaluations {
                Evaluations::Recorded => ROUGH[1].0,
                _ => 0.0,
            },
        };
        nearest(
            &middle.covariance(likeness),
            measured,
            active.len(),
            &self.columns(measured),
            &self.trust.0,
            &self.alive,
        )
    }

    /// All workloads at each measurement.
    fn columns(&self, measured: &[Measured]) -> Vec<&[Pair]> {
        let places = measured.iter().map(|point| self.view.active[point.place]);
        places
            .filter_map(|place| self.workloads.column(place))
            .collect()
    }

    /// A family for each residual, all around the same workloads, and the numbers of these.
    fn families(&mut self, space: &Space, measured: &[Measured]) -> (Vec<Family>, Vec<usize>) {
        let order = self.order(space, measured);
        let worst = order.first().map_or(0.0, |(best, _)| best + WORSE);
        let kept: Vec<usize> = order
            .iter()
            .take(KEPT.min(KEPT_TIMES_MEASURED / measured.len().max(1)))
            .take_while(|(score, _)| *score <= worst)
            .map(|(_, number)| *number)
            .collect();
        if measured.len() > 2 {
            self.alive = order
                .iter()
                .take(ALIVE)
                .map(|(_, number)| *number)
                .collect();
        }
        let columns = self.columns(measured);
        let row = |number: &usize| columns.iter().map(|column| column[*number]).collect();
        let rows: Rc<[Vec<Pair>]> = kept.iter().map(row).collect();
        let mut families = Vec::with_capacity(RESIDUALS);
        for (smooth, _) in SMOOTH {
            for (scale, _) in self.evaluations.scales() {
                let (rough, noise) = match self.evaluations {
                    Evaluations::Recorded => (scale, 0.0),
                    _ => (0.0, scale),
                };
                let trust = self.trust.1[families.len()];
                let weights = kept.iter().map(|number| self.trust.0[*number] + trust);
                families.push(Family {
                    weights: weights.collect(),
                    at_measured: Rc::clone(&rows),
                    covariance: Residual { smooth, rough }.covariance(&self.view.likeness),
                    noise,
                });
            }
        }
        (families, kept)
    }
}

/// How many possible truths a choice among so many places is judged by.
pub(super) fn count_of_truths(places: usize) -> usize {
    (VALUES / places.max(1)).clamp(TRUTHS[0], TRUTHS[1])
}

/// How likely each residual is.
fn usual(evaluations: Evaluations) -> [f64; RESIDUALS] {
    let scales = evaluations.scales();
    std::array::from_fn(|index| SMOOTH[index / scales.len()].1 * scales[index % scales.len()].1)
}

impl View {
    /// At some places, with the draws that truths are made of.
    fn new(space: &Space, active: Vec<usize>, count: usize, seed: Seed) -> Self {
        let row = |number: usize| {
            let seed = seed.number(number as u64);
            let pairs = 0..2 * active.len();
            pairs
                .flat_map(|index| seed.number(index as u64).normals())
                .collect()
        };
        Self {
            normals: (0..count).map(row).collect(),
            ..Self::without_draws(space, active, seed)
        }
    }

    /// At no place yet.
    pub(super) fn empty(space: &Space, seed: Seed) -> Self {
        Self::without_draws(space, Vec::new(), seed)
    }

    fn without_draws(space: &Space, active: Vec<usize>, seed: Seed) -> Self {
        Self {
            likeness: Likeness::new(space, &active),
            active,
            seed,
            normals: Vec::new(),
            curves: HashMap::new(),
        }
    }
}
