//! Levels such as batch sizes: each has a curve over the other knobs of its own, and one that was not tried is
//! guessed from the others.

use sweetspot_quantity::{Joules, Seconds};
use sweetspot_stats::{Cholesky, Seed};

use super::belief::Measured;
use super::earlier::Prior;
use super::model::{Evaluations, Model, View, count_of_truths};
use super::residual::matern;
use crate::Outcome;
use crate::search::{Earlier, Knob, Space};

/// How far the logarithm of time goes in a straight line from the reference's level to the farthest one,
const TREND: f64 = 1.5;
/// and how far it strays from the line.
const STRAY: f64 = 0.3;
/// Of straying, as a share of the range.
const LENGTH: f64 = 0.5;
/// Of power, as a share of those of time.
const OF_POWER: f64 = 0.35;
/// So many measurements of a level say something about the shape of others.
const TEACHES: usize = 3;
/// A level where so many places failed and none did not is out.
const FAILURES: usize = 2;

/// All places by their level; a space without levels is a single one.
pub(super) struct Levels {
    all: Vec<Level>,
    /// The level of each place, and its number there.
    of_places: Vec<(usize, usize)>,
    /// Between all levels.
    covariance: Vec<f64>,
    seed: Seed,
}

struct Level {
    knobs: Vec<Knob>,
    places: Vec<Vec<f64>>,
    known: Option<Known>,
}

/// A level that was measured, around one of its places.
struct Known {
    anchor: usize,
    space: Space,
    model: Model,
    /// The last truths, and what they were made of.
    last: Option<(Made, Vec<Vec<f64>>)>,
}

/// Places, measurements and the number of truths.
type Made = (Vec<usize>, Vec<Measured>, usize);

/// What is known of all places.
pub(super) struct Evidence<'a> {
    /// Of the reference on each GPU, in watts.
    pub(super) power: f64,
    pub(super) prior: &'a Prior,
    pub(super) evaluations: Evaluations,
    /// The places that are looked at.
    pub(super) active: &'a [usize],
    pub(super) measured: &'a [Measured],
}

/// Possible truths, and where one may look next.
pub(super) struct Prospects {
    /// Logarithms of ratios to the reference at the active places: time first and then energy.
    pub(super) truths: Vec<Vec<f64>>,
    /// By active place: of a level that was not tried, a single place shows the most.
    pub(super) is_open: Vec<bool>,
    /// By active place: its level, where that was not tried. None of it can be chosen yet.
    pub(super) untried: Vec<Option<usize>>,
}

impl Levels {
    pub(super) fn new(space: &Space, seed: Seed) -> Self {
        let split = |place: &[f64], of_level: bool| -> Vec<f64> {
            let knobs = space.knobs().iter().zip(place);
            let own = knobs.filter(|(knob, _)| (**knob == Knob::Level) == of_level);
            own.map(|(_, value)| *value).collect()
        };
        let mut values: Vec<Vec<f64>> = Vec::new();
        let mut all: Vec<Level> = Vec::new();
        let mut of_places = Vec::new();
        for place in space.places() {
            let own = split(place, true);
            let number = values.iter().position(|other| *other == own);
            let number = number.unwrap_or_else(|| {
                values.push(own);
                all.push(Level::new(space));
                all.len() - 1
            });
            of_places.push((number, all[number].places.len()));
            all[number].places.push(split(place, false));
        }
        let origin = of_places[space.reference()].0;
        Self {
            covariance: covariance(&values, origin),
            all,
            of_places,
            seed,
        }
    }

    /// Whether a place can still be evaluated: it did not fail, nor did its level.
    pub(super) fn is_possible(
        &self,
        place: usize,
        has_failed: &impl Fn(usize) -> bool,
        is_measured: &impl Fn(usize) -> bool,
    ) -> bool {
        if has_failed(place) || self.all.len() == 1 {
            return !has_failed(place);
        }
        let level = self.of_places[place].0;
        let own = (0..self.of_places.len()).filter(|other| self.of_places[*other].0 == level);
        let (failed, others): (Vec<usize>, Vec<usize>) = own.partition(|other| has_failed(*other));
        failed.len() < FAILURES || others.into_iter().any(is_measured)
    }

    pub(super) fn look(&mut self, reference: usize, evidence: &Evidence<'_>) -> Option<Prospects> {
        let active = evidence.active;
        let count = count_of_truths(active.len());
        let mut truths = vec![vec![0.0; 2 * active.len()]; count];
        let mut known = Vec::new();
        for number in 0..self.all.len() {
            let own = self.own(active, number);
            let measured: Vec<&Measured> = evidence
                .measured
                .iter()
                .filter(|point| own.contains(&point.place))
                .collect();
            if measured.is_empty() {
                continue;
            }
            self.know(number, reference, evidence, &measured)?;
            let rows = self.rows(number, count, evidence, &own, &measured)?;
            let order = self.order(number, count);
            for (truth, row) in truths.iter_mut().zip(order) {
                for (index, place) in own.iter().enumerate() {
                    truth[*place] = rows[row][index];
                    truth[active.len() + place] = rows[row][own.len() + index];
                }
            }
            known.push(number);
        }
        let level = |place: &usize| self.of_places[*place].0;
        let untried = |place: &usize| Some(level(place)).filter(|level| !known.contains(level));
        let mut prospects = Prospects {
            truths,
            is_open: vec![true; active.len()],
            untried: active.iter().map(untried).collect(),
        };
        self.guess(reference, active, &known, &mut prospects)?;
        Some(prospects)
    }

    /// The numbers among the active places of those of a level.
    fn own(&self, active: &[usize], level: usize) -> Vec<usize> {
        let all = 0..active.len();
        all.filter(|index| self.of_places[active[*index]].0 == level)
            .collect()
    }

    /// Makes a level's model, where there is none around the right place.
    fn know(
        &mut self,
        number: usize,
        reference: usize,
        evidence: &Evidence<'_>,
        measured: &[&Measured],
    ) -> Option<()> {
        let (of_reference, at_reference) = self.of_places[reference];
        let wanted = self.all[of_reference].places[at_reference].clone();
        // Around what is measured and nearest to the reference's settings.
        let anchor = measured.iter().min_by(|a, b| {
            let distance = |point: &Measured| {
                let place = self.of_places[evidence.active[point.place]].1;
                self.all[number].distance(place, &wanted)
            };
            distance(a).total_cmp(&distance(b))
        })?;
        let anchor_place = self.of_places[evidence.active[anchor.place]].1;
        let known = self.all[number].known.as_ref();
        if known.is_some_and(|known| known.anchor == anchor_place) {
            return Some(());
        }
        let lessons = self.lessons(number, evidence);
        let prior = evidence.prior.and(&self.all[number].knobs, &lessons);
        let level = &mut self.all[number];
        let space = Space::new(level.knobs.clone(), level.places.clone(), anchor_place).ok()?;
        let power = evidence.power * libm::exp(anchor.value[1] - anchor.value[0]);
        let view = View::empty(&space, self.seed.number(number as u64));
        level.known = Some(Known {
            anchor: anchor_place,
            model: Model::new(&space, power, &prior, evidence.evaluations, view),
            space,
            last: None,
        });
        Some(())
    }

    /// What the other levels teach about the shape of a curve.
    fn lessons(&self, number: usize, evidence: &Evidence<'_>) -> Vec<Earlier> {
        let others = self
            .all
            .iter()
            .enumerate()
            .filter(|(other, level)| *other != number && level.known.is_some());
        let of_level = |(other, level): (usize, &Level)| {
            let known = level.known.as_ref()?;
            let own = evidence.measured.iter().filter_map(|point| {
                let (of, place) = self.of_places[evidence.active[point.place]];
                (of == other).then_some((place, point.value))
            });
            let own: Vec<(usize, [f64; 2])> = own.collect();
            let reference = own.iter().position(|(place, _)| *place == known.anchor)?;
            let outcome = |value: &[f64; 2]| {
                let energy = evidence.power * libm::exp(value[1]);
                Outcome::new(Seconds::new(libm::exp(value[0])), Joules::new(energy))
            };
            (own.len() >= TEACHES).then(|| Earlier {
                places: own
                    .iter()
                    .map(|(place, _)| level.places[*place].clone())
                    .collect(),
                outcomes: own.iter().map(|(_, value)| outcome(value)).collect(),
                reference,
            })
        };
        others.filter_map(of_level).collect()
    }

    /// Truths of a level that was measured.
    fn rows(
        &mut self,
        number: usize,
        count: usize,
        evidence: &Evidence<'_>,
        own: &[usize],
        measured: &[&Measured],
    ) -> Option<Vec<Vec<f64>>> {
        let of_places = &self.of_places;
        let place = |index: usize| of_places[evidence.active[index]].1;
        let known = self.all[number].known.as_mut()?;
        let anchor = measured
            .iter()
            .find(|point| place(point.place) == known.anchor)?
            .value;
        let measured: Vec<Measured> = measured
            .iter()
            .filter_map(|point| {
                Some(Measured {
                    place: own.iter().position(|index| *index == point.place)?,
                    value: [point.value[0] - anchor[0], point.value[1] - anchor[1]],
                    noise: point.noise,
                })
            })
            .collect();
        let active: Vec<usize> = own.iter().map(|index| place(*index)).collect();
        let Known {
            space, model, last, ..
        } = known;
        let made = (active, measured, count);
        if let Some((of, rows)) = last
            && *of == made
        {
            return Some(rows.clone());
        }
        let mut rows = model.truths(space, &made.0, &made.1, count)?;
        for row in &mut rows {
            let (time, energy) = row.split_at_mut(own.len());
            time.iter_mut().for_each(|value| *value += anchor[0]);
            energy.iter_mut().for_each(|value| *value += anchor[1]);
        }
        *last = Some((made, rows.clone()));
        Some(rows)
    }

    /// Truths come by weight: those of different levels are put together as chance has it.
    fn order(&self, number: usize, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        if number > 0 {
            let seed = self.seed.label("order").number(number as u64);
            let keys: Vec<f64> = order
                .iter()
                .map(|row| seed.number(*row as u64).uniform())
                .collect();
            order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        }
        order
    }

    /// Truths of the levels that were not tried: the nearest known one, moved by what the others say.
    fn guess(
        &self,
        reference: usize,
        active: &[usize],
        known: &[usize],
        prospects: &mut Prospects,
    ) -> Option<()> {
        let count = self.all.len();
        if known.len() == count {
            return Some(());
        }
        let (of_reference, at_reference) = self.of_places[reference];
        let wanted = &self.all[of_reference].places[at_reference];
        let nearest = |level: usize, to: &[f64]| {
            let mut own = self.own(active, level);
            own.sort_by(|a, b| {
                let distance =
                    |index: &usize| self.all[level].distance(self.of_places[active[*index]].1, to);
                distance(a).total_cmp(&distance(b))
            });
            own.first().copied()
        };
        let probes: Vec<Option<usize>> = (0..count).map(|level| nearest(level, wanted)).collect();
        let prior = Cholesky::of(&self.covariance, count)?;
        let of_known: Vec<f64> = known
            .iter()
            .flat_map(|a| known.iter().map(move |b| (*a, *b)))
            .map(|(a, b)| self.covariance[a * count + b])
            .collect();
        let of_known = Cholesky::of(&of_known, known.len())?;
        // Each active place of an untried level: its level, the known one, and the like place there.
        let mut moved = Vec::new();
        for level in (0..count).filter(|level| !known.contains(level)) {
            let like = |other: &usize| self.covariance[level * count + other];
            let source = *known.iter().max_by(|a, b| like(a).total_cmp(&like(b)))?;
            for index in self.own(active, level) {
                prospects.is_open[index] = probes[level] == Some(index);
                let place = &self.all[level].places[self.of_places[active[index]].1];
                moved.push((level, source, index, nearest(source, place)?));
            }
        }
        for (number, truth) in prospects.truths.iter_mut().enumerate() {
            let seed = self.seed.label("levels").number(number as u64);
            let (time, energy) = truth.split_at_mut(active.len());
            for (part, size) in [("time", 1.0), ("power", OF_POWER)] {
                let value = |index: usize| match part {
                    "time" => time[index],
                    _ => energy[index] - time[index],
                };
                let seed = seed.label(part);
                let normals: Vec<f64> = (0..count)
                    .map(|level| seed.number(level as u64).normal())
                    .collect();
                let mut drawn = prior.times(&normals);
                let mut difference: Vec<f64> = known
                    .iter()
                    .map(|level| Some(value(probes[*level]?) - size * drawn[*level]))
                    .collect::<Option<_>>()?;
                of_known.solve(&mut difference);
                for (level, drawn) in drawn.iter_mut().enumerate() {
                    *drawn *= size;
                    let pairs = known.iter().zip(&difference);
                    *drawn += pairs
                        .map(|(other, x)| self.covariance[level * count + other] * x)
                        .sum::<f64>();
                }
                for (level, source, index, like) in &moved {
                    let by = drawn[*level] - drawn[*source];
                    match part {
                        "time" => {
                            time[*index] = time[*like] + by;
                            energy[*index] = energy[*like] + by;
                        }
                        _ => energy[*index] += by,
                    }
                }
            }
        }
        Some(())
    }
}

impl Level {
    fn new(space: &Space) -> Self {
        let knobs = space.knobs().iter().copied();
        Self {
            knobs: knobs.filter(|knob| *knob != Knob::Level).collect(),
            places: Vec::new(),
            known: None,
        }
    }

    /// In logarithms, for no knob is negative or near 0.
    fn distance(&self, place: usize, to: &[f64]) -> f64 {
        let pairs = self.places[place].iter().zip(to);
        pairs
            .map(|(a, b)| libm::log(a.max(1e-3) / b.max(1e-3)).abs())
            .sum()
    }
}

/// Of the logarithm of time between levels, against that of the level `origin`.
fn covariance(values: &[Vec<f64>], origin: usize) -> Vec<f64> {
    let knobs = values.first().map_or(0, Vec::len);
    let scaled: Vec<Vec<f64>> = (0..knobs)
        .map(|knob| {
            let all = || values.iter().map(|value| value[knob]);
            let is_positive = all().all(|value| value > 0.0);
            let of = |value: f64| if is_positive { libm::log(value) } else { value };
            let low = all().map(of).fold(f64::INFINITY, f64::min);
            let high = all().map(of).fold(f64::NEG_INFINITY, f64::max);
            let range = if high > low { high - low } else { 1.0 };
            let from = of(values[origin][knob]);
            all().map(|value| (of(value) - from) / range).collect()
        })
        .collect();
    let pairs = (0..values.len()).flat_map(|a| (0..values.len()).map(move |b| (a, b)));
    pairs
        .map(|(a, b)| {
            let line: f64 = scaled.iter().map(|knob| knob[a] * knob[b]).sum();
            let apart: f64 = scaled.iter().map(|knob| (knob[a] - knob[b]).powi(2)).sum();
            let same = f64::from(u8::from(a == b));
            TREND * TREND * line + STRAY * STRAY * matern(libm::sqrt(apart) / LENGTH) + 1e-6 * same
        })
        .collect()
}
