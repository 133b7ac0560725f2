//! What possible truths mean for a choice.

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::Seed;

use crate::search::Noise;
use crate::{Basis, Limit, Objective, Outcome, Question};

/// The values of a question at every place in every possible truth; less is better.
pub(super) struct Outlook {
    places: usize,
    /// What a difference of 1 is a share of 1 of, where that is not the value itself.
    scale: Option<f64>,
    /// A row for each truth.
    values: Vec<f64>,
    means: Vec<f64>,
    variances: Vec<f64>,
    /// By place: what must be tried before it can be chosen.
    untried: Vec<Option<usize>>,
}

/// What breaks a limit is this much worse than the reference.
const BROKEN: f64 = 0.05;

impl Outlook {
    /// `truths` hold logarithms of ratios to the reference at `places`, which has the number `reference`.
    pub(super) fn new(
        truths: &[Vec<f64>],
        reference: usize,
        of_reference: &Outcome,
        question: &Question,
        limits: &[&Limit],
        shut: &[bool],
        untried: Vec<Option<usize>>,
    ) -> Option<Self> {
        let places = truths.first()?.len() / 2;
        let mut values = Vec::with_capacity(truths.len() * places);
        let mut here = of_reference.clone();
        let mut there = of_reference.clone();
        let (time, energy) = (of_reference.time.get(), of_reference.energy?.get());
        let put = |outcome: &mut Outcome, truth: &[f64], place: usize| {
            outcome.time = Seconds::new(time * libm::exp(truth[place]));
            outcome.energy = Some(Joules::new(energy * libm::exp(truth[places + place])));
        };
        for truth in truths {
            put(&mut there, truth, reference);
            let basis = Basis {
                reference: Some(&there),
                tariff: &question.tariff,
            };
            let own = ascending(question, &there, basis)?;
            for (place, shut) in shut.iter().enumerate() {
                put(&mut here, truth, place);
                let value = ascending(question, &here, basis)?;
                let keeps = |limit: &&Limit| limit.check(&here, basis).is_ok();
                let kept = !shut && limits.iter().all(keeps);
                values.push(match kept {
                    true => value,
                    false => own.max(value) + BROKEN * scale(question).unwrap_or(own.abs()),
                });
            }
        }
        let means = mean_rows(&values, places, |value, _| value);
        let variances = mean_rows(&values, places, |value, place| {
            (value - means[place]).powi(2)
        });
        Some(Self {
            places,
            scale: scale(question),
            values,
            means,
            variances,
            untried,
        })
    }

    fn size(&self, value: f64) -> f64 {
        self.scale.unwrap_or(value.abs()).max(f64::MIN_POSITIVE)
    }

    /// The place with the least expected value.
    pub(super) fn best(&self) -> usize {
        let order = |a: &usize, b: &usize| self.means[*a].total_cmp(&self.means[*b]);
        let tried = (0..self.places).filter(|place| self.untried[*place].is_none());
        tried.min_by(order).unwrap_or(0)
    }

    /// By how much a place is expected to be worse than another, as a share of that.
    pub(super) fn worse_by(&self, place: usize, than: usize) -> f64 {
        (self.means[place] - self.means[than]) / self.size(self.means[than])
    }

    /// By how much a place is worse than the best of each truth, as a share of that.
    pub(super) fn regrets(&self, place: usize) -> Vec<f64> {
        let truths = self.values.chunks_exact(self.places);
        truths
            .map(|truth| {
                let best = truth.iter().copied().fold(f64::INFINITY, f64::min);
                (truth[place] - best) / self.size(best)
            })
            .collect()
    }

    /// How far the truths differ at each place.
    pub(super) fn variances(&self) -> &[f64] {
        &self.variances
    }

    /// By how much the expected value of the choice falls, on average, when a place is evaluated once more
    /// (the knowledge gradient), for each place.
    pub(super) fn gains(&self, noise: f64, seed: Seed) -> Vec<f64> {
        let truths: Vec<&[f64]> = self.values.chunks_exact(self.places).collect();
        let count = truths.len() as f64;
        let errors: Vec<f64> = (0..truths.len())
            .map(|number| noise * seed.number(number as u64).normal())
            .collect();
        let now = self.means[self.best()];
        let mut slopes = vec![0.0; self.places];
        let gain = |place: usize| {
            let mean = self.means[place];
            let size = self.size(mean);
            let all = self.variances[place] + (noise * size).powi(2);
            if all <= 0.0 {
                return 0.0;
            }
            slopes.fill(0.0);
            for truth in &truths {
                let here = (truth[place] - mean) / (count * all);
                let values = truth.iter().zip(&self.means);
                for (slope, (value, mean)) in slopes.iter_mut().zip(values) {
                    *slope += here * (value - mean);
                }
            }
            let after = truths.iter().zip(&errors).map(|(truth, error)| {
                let told = truth[place] + error * size - mean;
                let means = self.means.iter().zip(&slopes).zip(&self.untried);
                means
                    .filter(|(_, untried)| untried.is_none() || **untried == self.untried[place])
                    .map(|((mean, slope), _)| mean + slope * told)
                    .fold(f64::INFINITY, f64::min)
            });
            (now - after.sum::<f64>() / count) / self.size(now)
        };
        (0..self.places).map(gain).collect()
    }

    /// The same where limits count: what is told is time and energy, not whether a limit is kept.
    pub(super) fn gains_within_limits(
        &self,
        truths: &[Vec<f64>],
        noise: Noise,
        seed: Seed,
    ) -> Vec<f64> {
        let count = truths.len() as f64;
        let normals = |label: &str| -> Vec<f64> {
            let seed = seed.label(label);
            (0..truths.len())
                .map(|number| seed.number(number as u64).normal())
                .collect()
        };
        let errors = [normals("time"), normals("energy")];
        let now = self.means[self.best()];
        let mut slopes = vec![[0.0; 2]; self.places];
        let gain = |place: usize| {
            let columns = [place, self.places + place];
            let means = columns.map(|c| truths.iter().map(|truth| truth[c]).sum::<f64>() / count);
            let apart =
                |truth: &[f64]| [truth[columns[0]] - means[0], truth[columns[1]] - means[1]];
            let (mut a, mut b, mut c) = (noise.time.powi(2), 0.0, noise.energy.powi(2));
            for truth in truths {
                let [time, energy] = apart(truth);
                a += time * time / count;
                b += time * energy / count;
                c += energy * energy / count;
            }
            let determinant = a * c - b * b;
            if determinant <= f64::MIN_POSITIVE {
                return 0.0;
            }
            slopes.fill([0.0; 2]);
            for (truth, values) in truths.iter().zip(self.values.chunks_exact(self.places)) {
                let [time, energy] = apart(truth);
                let along = [
                    (c * time - b * energy) / determinant / count,
                    (a * energy - b * time) / determinant / count,
                ];
                for (slope, (value, mean)) in slopes.iter_mut().zip(values.iter().zip(&self.means))
                {
                    slope[0] += along[0] * (value - mean);
                    slope[1] += along[1] * (value - mean);
                }
            }
            let after = truths.iter().enumerate().map(|(number, truth)| {
                let [time, energy] = apart(truth);
                let time = time + noise.time * errors[0][number];
                let energy = energy + noise.energy * errors[1][number];
                let places = self.means.iter().zip(&slopes).zip(&self.untried);
                places
                    .filter(|(_, untried)| untried.is_none() || **untried == self.untried[place])
                    .map(|((mean, slope), _)| mean + slope[0] * time + slope[1] * energy)
                    .fold(f64::INFINITY, f64::min)
            });
            (now - after.sum::<f64>() / count) / self.size(now)
        };
        (0..self.places).map(gain).collect()
    }
}

/// The noise of an objective's value, as a share, from those of time and energy.
pub(super) fn noise_of(question: &Question, outcome: &Outcome, noise: Noise) -> Option<f64> {
    const STEP: f64 = 0.01;
    let basis = Basis {
        reference: Some(outcome),
        tariff: &question.tariff,
    };
    let value = ascending(question, outcome, basis)?;
    let mut slower = outcome.clone();
    slower.time = outcome.time * (1.0 + STEP);
    let mut hungrier = outcome.clone();
    hungrier.energy = outcome.energy.map(|energy| energy * (1.0 + STEP));
    let by = |outcome: &Outcome| Some((ascending(question, outcome, basis)? - value) / STEP);
    let (time, energy) = (by(&slower)? * noise.time, by(&hungrier)? * noise.energy);
    let size = scale(question).unwrap_or(value.abs());
    Some(libm::hypot(time, energy) / size.max(f64::MIN_POSITIVE))
}

/// A difference of shares may be near 0, and is a share itself.
fn scale(question: &Question) -> Option<f64> {
    matches!(question.objective, Objective::GainMinusLoss).then_some(1.0)
}

/// The value of an objective as something of which less is better.
fn ascending(question: &Question, outcome: &Outcome, basis: Basis<'_>) -> Option<f64> {
    let value = question.objective.value(outcome, basis).ok()?;
    Some(question.objective.direction().ascending(value))
}

fn mean_rows(values: &[f64], places: usize, of: impl Fn(f64, usize) -> f64) -> Vec<f64> {
    let rows = values.chunks_exact(places);
    let count = rows.len() as f64;
    let mut means = vec![0.0; places];
    for row in rows {
        for (place, (mean, value)) in means.iter_mut().zip(row).enumerate() {
            *mean += of(*value, place) / count;
        }
    }
    means
}
