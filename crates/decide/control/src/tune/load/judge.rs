//! What a load's windows say of a setting: its gain, whether it keeps within the limits, and so what is held.

use sweetspot_decide::search::SearchSpace;
use sweetspot_decide::{Basis, Objective, Outcome};

use super::super::Terms;
use super::super::drift::Drift;
use super::super::window::Window;
use super::Load;

/// Windows so near to each other, of the range, are much the same.
const NEAR: f64 = 0.08;
/// Less is no difference.
const LEAST_DIFFERENCE: f64 = 0.01;
/// A gain that nobody would notice.
const NOTHING: f64 = 0.003;
/// A gain counts if it is more than so much of the noise: a small one that is missed costs as much as one that
/// is none.
const SURELY: f64 = 0.3;

impl Load {
    /// The reference by all of its windows.
    fn reference_outcome(&self, terms: &Terms, drift: &Drift) -> Option<Outcome> {
        let reference = terms.space.reference();
        let windows = self.tried.iter().filter(|window| window.place == reference);
        let outcomes: Vec<Outcome> = windows
            .map(|window| self.outcome(terms, window, drift))
            .collect();
        Outcome::mean(&outcomes)
    }

    /// By how much a window's objective is better than the reference's, as a fraction.
    pub(in crate::tune) fn gain(&self, terms: &Terms, window: &Window) -> Option<f64> {
        let drift = self.drift();
        let reference = self.reference_outcome(terms, &drift)?;
        let own = self.outcome(terms, window, &drift);
        let basis = Basis {
            reference: Some(&reference),
            tariff: &terms.question.tariff,
        };
        let objective = terms.question.objective;
        let value = |outcome: &Outcome| objective.value(outcome, basis).ok();
        let (own, reference) = (value(&own)?, value(&reference)?);
        Some(match objective {
            Objective::GainMinusLoss => own - reference,
            _ if objective.is_maximised() => own / reference - 1.0,
            _ => 1.0 - own / reference,
        })
    }

    /// A gain that is less is none: noise of so many windows may show it.
    pub(in crate::tune) fn least_gain(&self, terms: &Terms, place: usize) -> f64 {
        let reference = terms.space.reference();
        let looks = self.tried.iter().filter(|window| window.place == reference);
        let looks = looks.count().max(1) as f64;
        let own = self.near(terms, place).count().max(1) as f64;
        let noise = self.reference.as_ref().map(|window| window.noise);
        let noise = noise.map_or(0.0, |noise| noise.time + noise.energy);
        NOTHING.max(SURELY * noise * (1.0 / looks + 1.0 / own).sqrt())
    }

    /// The windows at a place and beside it.
    fn near<'a>(&'a self, terms: &'a Terms, place: usize) -> impl Iterator<Item = &'a Window> {
        let windows = self.tried.iter().chain(&self.held);
        windows.filter(move |window| {
            window.place == place
                || window.place != terms.space.reference()
                    && is_near(&terms.space, window.place, place)
        })
    }

    /// The mean gain of the windows at a place.
    pub(in crate::tune) fn gain_at(&self, terms: &Terms, place: usize) -> Option<f64> {
        let windows = self.tried.iter().chain(&self.held);
        let gains: Vec<f64> = windows
            .filter(|window| window.place == place)
            .filter_map(|window| self.gain(terms, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// The mean gain of the windows at a place and beside it: a single window knows little.
    pub(in crate::tune) fn gain_near(&self, terms: &Terms, place: usize) -> Option<f64> {
        let gains: Vec<f64> = self
            .near(terms, place)
            .filter_map(|window| self.gain(terms, window))
            .collect();
        (!gains.is_empty()).then(|| gains.iter().sum::<f64>() / gains.len() as f64)
    }

    /// Whether the means at a place keep within the limits, as far as that is known.
    pub(in crate::tune) fn keeps_limits(&self, terms: &Terms, place: usize) -> bool {
        let drift = self.drift();
        let Some(reference) = self.reference_outcome(terms, &drift) else {
            return true;
        };
        let windows = self.tried.iter().chain(&self.held);
        let outcomes: Vec<Outcome> = windows
            .filter(|window| window.place == place)
            .map(|window| self.outcome(terms, window, &drift))
            .collect();
        let mean = match place == terms.space.reference() {
            true => Some(reference.clone()),
            false => Outcome::mean(&outcomes),
        };
        let Some(mean) = mean else {
            return true;
        };
        let basis = Basis {
            reference: Some(&reference),
            tariff: &terms.question.tariff,
        };
        let limits = terms.question.limits.iter();
        limits
            .into_iter()
            .all(|limit| limit.check(&mean, basis).is_ok())
    }

    /// Of the places that were tried and keep within the limits, the one with the most gain.
    fn best_within_limits(&self, terms: &Terms) -> Option<usize> {
        let places = self.tried.iter().map(|window| window.place);
        let kept = places.filter(|place| self.keeps_limits(terms, *place));
        let gain = |place: &usize| self.gain_at(terms, *place).unwrap_or(f64::NEG_INFINITY);
        kept.max_by(|a, b| gain(a).total_cmp(&gain(b)))
    }

    /// What is to be held: the answer of a search, if it keeps within the limits and is better than the
    /// reference by more than noise. Nothing where neither they nor anything that was tried keep within them.
    pub(in crate::tune) fn verdict(&self, terms: &Terms, answer: Option<usize>) -> Option<usize> {
        let reference = terms.space.reference();
        let keeps = |place: &usize| self.keeps_limits(terms, *place);
        let answer = answer
            .filter(keeps)
            .or_else(|| self.best_within_limits(terms));
        if !keeps(&reference) {
            return answer;
        }
        let is_better = |place: &usize| {
            let gain = self.gain_near(terms, *place);
            gain.is_none_or(|gain| gain > self.least_gain(terms, *place))
                && self.differs(terms, *place)
        };
        answer.filter(is_better).or(Some(reference))
    }

    /// Whether a place differs from the reference by more than noise, in power or in time; one that was not
    /// measured may. Where it does not, it sets nothing, and what it seems to gain is noise.
    pub(in crate::tune) fn differs(&self, terms: &Terms, place: usize) -> bool {
        let reference = terms.space.reference();
        let at = |place: usize| {
            let windows = self.tried.iter().chain(&self.held);
            windows.filter(move |window| window.place == place)
        };
        let (own, other) = (at(place).count() as f64, at(reference).count() as f64);
        if own == 0.0 || other == 0.0 {
            return true;
        }
        let apart = |of: &dyn Fn(&Window) -> Option<f64>, noise: &dyn Fn(&Window) -> f64| {
            let mean = |place: usize, count: f64| {
                let values: Option<Vec<f64>> = at(place).map(of).collect();
                Some(values?.iter().sum::<f64>() / count)
            };
            let noise = at(place).chain(at(reference)).map(noise).sum::<f64>() / (own + other);
            let sure = 3.0 * noise * (1.0 / own + 1.0 / other).sqrt();
            let ratio = mean(place, own).zip(mean(reference, other));
            ratio.is_some_and(|(own, other)| (own / other).ln().abs() > sure.max(LEAST_DIFFERENCE))
        };
        let of_power = |window: &Window| {
            // That of energy is of power and of time.
            let (energy, time) = (window.noise.energy, window.noise.time);
            (energy * energy - time * time).max(0.0).sqrt()
        };
        apart(&|window| Some(window.power.get()), &of_power)
            || apart(&|window| window.items_per_second, &|window| {
                window.noise.time
            })
    }
}

fn is_near(space: &SearchSpace, a: usize, b: usize) -> bool {
    let places = space.points();
    (0..places[a].len()).all(|knob| {
        let values = || places.iter().map(|place| place[knob]);
        let lowest = values().fold(f64::INFINITY, f64::min);
        let highest = values().fold(f64::NEG_INFINITY, f64::max);
        (places[a][knob] - places[b][knob]).abs() <= NEAR * (highest - lowest)
    })
}
