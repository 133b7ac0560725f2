//! By a model of the physics: what is not yet measured is predicted, and the next evaluation is the one that
//! improves the choice most.

mod belief;
mod earlier;
mod levels;
mod model;
mod outlook;
mod physics;
mod places;
mod residual;

use sweetspot_stats::Seed;

pub use self::earlier::Prior;

use self::belief::Measured;
use self::levels::{Evidence, Levels};
use self::model::Evaluations;
use self::outlook::{Outlook, noise_of};
use super::ledger::Ledger;
use super::{Answer, Ask, Done, Knob, Noise, Space, Strategy, Terms, Told};
use crate::{Comparison, Limit, Outcome, Question, Value};

/// Fewer evaluations do not show how noisy they are.
const FEWEST: usize = 4;
/// No search needs more.
const MOST: usize = 16;
/// A choice with more regret than this is a poor one,
const POOR: f64 = 0.01;
/// and this risk of it is worth another evaluation,
const RISK: f64 = 0.12;
/// or this one, where an evaluation is looked up.
const RISK_OF_RECORD: f64 = 0.06;
/// Where the model expects less from any evaluation, the model itself is checked,
const CHECK: f64 = 0.0005;
/// beside the choice: within this share of a knob's range.
const BESIDE: f64 = 0.15;
/// Where a place beside the choice is worse by this,
const STEEP: f64 = 0.15;
/// nothing may be left unmeasured over this share of the range next to the choice.
const GAP: f64 = 0.06;

pub(super) struct Guided {
    ledger: Ledger,
    terms: Terms,
    levels: Levels,
    /// By the last thought.
    best: usize,
    /// What follows from all that was told, once it was asked for.
    thought: Option<(Ask, Option<Answer>)>,
}

/// What the model says.
struct Advice {
    best: usize,
    regret: f64,
    /// Of a poor choice.
    risk: f64,
    /// What to evaluate for the most gain.
    next: Option<usize>,
    /// Whether limits leave a risk that no evaluation lessens.
    is_at_limit: bool,
    /// Whether a place beside the choice is much worse.
    is_steep: bool,
}

impl Guided {
    pub(super) fn new(space: Space, question: &Question, terms: Terms) -> Self {
        Self {
            best: space.reference(),
            levels: Levels::new(&space, Seed::new(terms.seed).label("guided")),
            ledger: Ledger::new(space, question, terms.most.min(MOST)),
            terms,
            thought: None,
        }
    }

    fn think(&mut self) -> (Ask, Option<Answer>) {
        let reference = self.ledger.space.reference();
        let end = self.ledger.end();
        if end.is_none() && !self.ledger.has(reference, 1) {
            return (Ask::Evaluate(reference), None);
        }
        let comparison = self.ledger.comparison();
        let advice = comparison
            .reference()
            .cloned()
            .and_then(|reference| self.advise(&comparison, &reference));
        let Some(advice) = advice else {
            return self.without_model(end);
        };
        let unguided = self.terms.prior.is_empty() && self.ledger.evaluations() < 2;
        let answer = Answer {
            // One evaluation is no reason to leave it.
            place: if unguided { reference } else { advice.best },
            expected_regret: (!unguided).then_some(advice.regret),
        };
        let ask = match (end, advice.next) {
            (Some(done), _) => Ask::Done(done),
            (None, None) => Ask::Done(Done::Complete),
            (None, Some(_)) if self.is_sure(&advice) => {
                let gap = advice.is_steep.then(|| self.gap_beside(advice.best));
                gap.flatten().map_or(Ask::Done(Done::Sure), Ask::Evaluate)
            }
            (None, Some(next)) => Ask::Evaluate(next),
        };
        (ask, Some(answer))
    }

    fn is_sure(&self, advice: &Advice) -> bool {
        let risk = match self.terms.recorded {
            true => RISK_OF_RECORD,
            false => RISK,
        };
        let is_good = advice.regret < self.terms.enough && advice.risk < risk;
        self.ledger.evaluations() >= FEWEST && (is_good || advice.is_at_limit)
    }

    /// The middle of a wide gap between measurements at the choice: near a steep side the best lies in a sharp
    /// bend, and where that is should not be known from the model alone.
    fn gap_beside(&self, best: usize) -> Option<usize> {
        let space = &self.ledger.space;
        let knobs = 0..space.knobs().len();
        let mut knobs = knobs.filter(|knob| space.knobs()[*knob] != Knob::Level);
        knobs.find_map(|knob| {
            let mut line = space.line(best, knob);
            line.retain(|place| !self.ledger.has_failed(*place));
            let value = |at: usize| space.places()[line[at]][knob];
            let range = value(line.len() - 1) - value(0);
            let own = line.iter().position(|place| *place == best)?;
            let is_measured = |at: &usize| self.ledger.has(line[*at], 1);
            let below = (0..own).rev().find(is_measured).unwrap_or(own);
            let above = (own + 1..line.len()).find(is_measured).unwrap_or(own);
            let mut gaps = [(below, own), (own, above)].into_iter();
            let wide =
                gaps.find(|(low, high)| high - low > 1 && value(*high) - value(*low) > GAP * range);
            wide.map(|(low, high)| line[(low + high) / 2])
        })
    }

    /// Where time or energy are not known, there is nothing to model: one place after the other.
    fn without_model(&self, end: Option<Done>) -> (Ask, Option<Answer>) {
        let mut places = 0..self.ledger.space.places().len();
        let ask = match (end, places.find(|place| !self.ledger.has(*place, 1))) {
            (Some(done), _) => Ask::Done(done),
            (None, Some(place)) => Ask::Evaluate(place),
            (None, None) => Ask::Done(Done::Complete),
        };
        (ask, self.ledger.answer())
    }

    fn advise(&mut self, comparison: &Comparison, of_reference: &Outcome) -> Option<Advice> {
        let power = Value::AveragePower.of(of_reference).ok()? / of_reference.gpus.max(1) as f64;
        let usual = match self.terms.recorded {
            true => Noise::NONE,
            false => self.terms.noise,
        };
        let active = self.active();
        let measured = self.measured(comparison, of_reference, &active, usual)?;
        let evaluations = match (self.terms.recorded, self.ledger.noise_is_told()) {
            (true, _) => Evaluations::Recorded,
            (false, true) => Evaluations::Told,
            (false, false) => Evaluations::Untold,
        };
        let space = &self.ledger.space;
        let prospects = self.levels.look(
            space.reference(),
            &Evidence {
                power,
                prior: &self.terms.prior,
                evaluations,
                active: &active,
                measured: &measured,
            },
        )?;
        let truths = &prospects.truths;
        let reference = active
            .iter()
            .position(|place| *place == space.reference())?;
        let question = &self.ledger.question;
        let (modelled, reported): (Vec<&Limit>, Vec<&Limit>) =
            question.limits.iter().partition(|limit| is_modelled(limit));
        let shut: Vec<bool> = active
            .iter()
            .map(|place| {
                let mean = comparison.mean(*place);
                let breaks = |limit: &&Limit| {
                    mean.is_some_and(|mean| limit.check(mean, comparison.basis()).is_err())
                };
                reported.iter().any(breaks)
            })
            .collect();
        let outlook = Outlook::new(
            truths,
            reference,
            of_reference,
            question,
            &modelled,
            &shut,
            prospects.untried.clone(),
        )?;
        let best = outlook.best();
        let noise = noise_of(question, of_reference, usual)?;
        let seed = self.seed().label("gain");
        let gains = match modelled.is_empty() {
            true => outlook.gains(noise, seed),
            false => outlook.gains_within_limits(truths, usual, seed),
        };
        let is_measured = |index: usize| measured.iter().any(|point| point.place == index);
        let most = |of: &[f64], open: &dyn Fn(usize) -> bool| {
            let open = (0..active.len()).filter(|index| prospects.is_open[*index] && open(*index));
            open.max_by(|a, b| of[*a].total_cmp(&of[*b]))
        };
        let mut next = most(&gains, &|index| !self.terms.recorded || !is_measured(index));
        let gain = next.map_or(0.0, |next| gains[next]);
        if gain < CHECK {
            let beside = |index: usize| {
                !is_measured(index) && space.is_near(active[index], active[best], BESIDE)
            };
            next = most(outlook.variances(), &beside).or(next);
        }
        let regrets = outlook.regrets(best);
        let count = regrets.len() as f64;
        let poor = regrets.iter().filter(|regret| **regret > POOR).count();
        Some(Advice {
            best: active[best],
            regret: regrets.iter().sum::<f64>() / count,
            risk: poor as f64 / count,
            next: next.map(|index| active[index]),
            is_at_limit: !modelled.is_empty() && gain < CHECK,
            is_steep: (0..active.len()).any(|index| {
                space.is_near(active[index], active[best], BESIDE)
                    && outlook.worse_by(index, best) > STEEP
            }),
        })
    }

    fn seed(&self) -> Seed {
        Seed::new(self.terms.seed).label("guided")
    }

    /// The places that are looked at.
    fn active(&self) -> Vec<usize> {
        let has_failed = |place: usize| self.ledger.has_failed(place);
        let is_measured = |place: usize| self.ledger.has(place, 1) && !has_failed(place);
        places::active(
            &self.ledger.space,
            |place| self.levels.is_possible(place, &has_failed, &is_measured),
            is_measured,
            self.best,
        )
    }

    /// What was measured at the active places, against the reference.
    fn measured(
        &self,
        comparison: &Comparison,
        of_reference: &Outcome,
        active: &[usize],
        usual: Noise,
    ) -> Option<Vec<Measured>> {
        let (time, energy) = (of_reference.time.get(), of_reference.energy?.get());
        let places = active.iter().enumerate();
        let all = places.filter_map(|(index, place)| {
            let mean = comparison.mean(*place)?;
            Some(Measured {
                place: index,
                value: [
                    libm::log(mean.time.get() / time),
                    libm::log(mean.energy?.get() / energy),
                ],
                noise: match self.terms.recorded {
                    true => Noise::NONE,
                    false => self.ledger.noise_of_mean(*place, usual),
                },
            })
        });
        let known = |point: &Measured| point.value.iter().all(|value| value.is_finite());
        Some(all.filter(known).collect())
    }
}

/// Whether the model knows what a limit is about.
fn is_modelled(limit: &Limit) -> bool {
    !matches!(limit.value(), Value::Reported(_))
}

impl Strategy for Guided {
    fn ask(&mut self) -> Ask {
        match self.thought {
            Some((ask, _)) => ask,
            None => {
                let thought = self.think();
                self.thought = Some(thought);
                thought.0
            }
        }
    }

    fn tell(&mut self, place: usize, told: Told) {
        self.ledger.tell(place, told);
        if let Some((_, Some(answer))) = self.thought.take() {
            self.best = answer.place;
        }
    }

    fn answer(&mut self) -> Option<Answer> {
        self.ask();
        self.thought?.1
    }
}
