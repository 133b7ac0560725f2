//! What earlier studies teach: which of the possible workloads explain them, and how noisy they are.

use super::belief::{Measured, Pair, shares};
use super::model::{Model, RESIDUALS};
use crate::search::{Earlier, Knob, Noise, Space};

/// How far earlier studies are trusted; the rest is as if there were none.
const TRUST: f64 = 0.8;
/// Studies whose reference drew this much more or less power are less alike, in logarithms.
const ALIKE_IN_POWER: f64 = 0.5;
/// A study says much about its own workload and less about others: its evidence counts as its power of this.
const SOFTENED: f64 = 0.3;
/// More places of a study teach little more.
const PLACES: usize = 12;

/// What earlier studies teach.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prior {
    lessons: Vec<Lesson>,
}

#[derive(Clone, Debug, PartialEq)]
struct Lesson {
    /// Of the reference, on each GPU.
    power: f64,
    /// Which workloads explain it, and how well.
    workloads: Vec<(usize, f64)>,
    /// Which residuals explain it.
    residuals: [f64; RESIDUALS],
}

impl Prior {
    /// From earlier studies with these knobs. Those without energies or with a single place teach nothing.
    pub fn learn(knobs: &[Knob], earlier: &[Earlier]) -> Self {
        let lessons = earlier.iter().filter_map(|study| lesson(knobs, study));
        Self {
            lessons: lessons.collect(),
        }
    }

    /// The same, and what these teach.
    pub(super) fn and(&self, knobs: &[Knob], earlier: &[Earlier]) -> Self {
        let more = Self::learn(knobs, earlier).lessons;
        Self {
            lessons: self.lessons.iter().cloned().chain(more).collect(),
        }
    }

    /// The same, without what one of the studies taught.
    pub fn without(&self, study: usize) -> Self {
        let mut lessons = self.lessons.clone();
        if study < lessons.len() {
            lessons.remove(study);
        }
        Self { lessons }
    }

    /// Whether there was nothing to learn from.
    pub fn is_empty(&self) -> bool {
        self.lessons.is_empty()
    }

    /// Logarithms of what each workload and each residual is trusted with, for a job that draws `power` watts
    /// on each GPU at the reference; `usual` is how likely residuals are without lessons.
    pub(super) fn weights(
        &self,
        power: f64,
        workloads: usize,
        usual: [f64; RESIDUALS],
    ) -> (Vec<f64>, [f64; RESIDUALS]) {
        let alike = |lesson: &Lesson| {
            let apart = libm::log(lesson.power / power) / ALIKE_IN_POWER;
            libm::exp(-0.5 * apart * apart)
        };
        let all: f64 = self.lessons.iter().map(alike).sum();
        let trust = TRUST * all / (all + 0.5);
        let mut of_workloads = vec![(1.0 - trust) / workloads as f64; workloads];
        let mut of_residuals = usual.map(|likely| (1.0 - trust) * likely);
        for lesson in &self.lessons {
            let share = trust * alike(lesson) / all;
            if share <= 0.0 || !share.is_finite() {
                continue;
            }
            for (number, weight) in &lesson.workloads {
                of_workloads[*number] += share * weight;
            }
            for (own, weight) in of_residuals.iter_mut().zip(lesson.residuals) {
                *own += share * weight;
            }
        }
        for weight in &mut of_workloads {
            *weight = libm::log(*weight);
        }
        (of_workloads, of_residuals.map(libm::log))
    }
}

fn lesson(knobs: &[Knob], study: &Earlier) -> Option<Lesson> {
    let reference = study.outcomes.get(study.reference)?;
    let (time, energy) = (reference.time.get(), reference.energy?.get());
    let is_level = |knob: usize| knobs[knob] == Knob::Level;
    let of_level = |place: &[f64]| -> Vec<f64> {
        let all = place.iter().enumerate();
        all.filter(|(knob, _)| is_level(*knob))
            .map(|(_, value)| *value)
            .collect()
    };
    // Other levels have curves of their own.
    let level = of_level(study.places.get(study.reference)?);
    let mut places = Vec::new();
    let mut values: Vec<Pair> = Vec::new();
    let mut own_reference = 0;
    let stride = study.places.len().div_ceil(PLACES).max(1);
    for (index, (place, outcome)) in study.places.iter().zip(&study.outcomes).enumerate() {
        if of_level(place) != level {
            continue;
        }
        let pair = [
            libm::log(outcome.time.get() / time),
            libm::log(outcome.energy?.get() / energy),
        ];
        if index == study.reference {
            own_reference = places.len();
        } else if index % stride != 0 || pair.iter().any(|value| !value.is_finite()) {
            continue;
        }
        let all = place.iter().enumerate();
        let own = all.filter(|(knob, _)| !is_level(*knob));
        places.push(own.map(|(_, value)| *value).collect());
        values.push(pair);
    }
    let others = knobs.iter().copied().filter(|knob| *knob != Knob::Level);
    let space = Space::new(others.collect(), places, own_reference).ok()?;
    let power = energy / time / reference.gpus.max(1) as f64;
    if values.len() < 2 || !(power > 0.0 && power.is_finite()) {
        return None;
    }
    let measured: Vec<Measured> = values
        .into_iter()
        .enumerate()
        .map(|(place, value)| Measured {
            place,
            value,
            noise: Noise::NONE,
        })
        .collect();
    let weights = Model::explanations(&space, power, &measured);
    let mut residuals = [0.0; RESIDUALS];
    for ((residual, _), share) in shares(&weights, 1.0) {
        residuals[residual] += share;
    }
    let workloads = shares(&weights, SOFTENED)
        .into_iter()
        .map(|((_, number), share)| (number, share))
        .collect();
    Some(Lesson {
        power,
        workloads,
        residuals,
    })
}
