//! By a model of the physics: what is not yet measured is predicted, and the next evaluation is the one that
//! improves the choice most.

mod belief;
mod earlier;
mod model;
mod outlook;
mod physics;
mod places;
mod residual;

use sweetspot_stats::Seed;

pub use self::earlier::Prior;

use self::belief::Measured;
use self::model::{Evaluations, Model, View};
use self::outlook::{Outlook, noise_of};
use super::ledger::Ledger;
use super::{Answer, Ask, Done, Noise, Space, Strategy, Terms, Told};
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

pub(super) struct Guided {
    ledger: Ledger,
    terms: Terms,
    /// Made ahead, and the model's once the reference is measured.
    view: Option<View>,
    model: Option<Model>,
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
}

impl Guided {
    pub(super) fn new(space: Space, question: &Question, terms: Terms) -> Self {
        let mut guided = Self {
            best: space.reference(),
            ledger: Ledger::new(space, question, terms.most.min(MOST)),
            terms,
            view: None,
            model: None,
            thought: None,
        };
        guided.view = Some(guided.fresh_view());
        guided
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
            (None, Some(_)) if self.is_sure(&advice) => Ask::Done(Done::Sure),
            (None, Some(next)) => Ask::Evaluate(next),
        };
        (ask, Some(answer))
    }

    fn is_sure(&self, advice: &Advice) -> bool {
        self.ledger.evaluations() >= FEWEST
            && advice.regret < self.terms.enough
            && advice.risk
                < if self.terms.recorded {
                    RISK_OF_RECORD
                } else {
                    RISK
                }
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
        let view = self.view.take();
        let space = &self.ledger.space;
        if let Some(view) = view {
            let prior = &self.terms.prior;
            self.model = Some(Model::new(space, power, prior, evaluations, view));
        }
        let model = self.model.as_mut()?;
        let truths = model.truths(space, &active, &measured)?;
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
        let outlook = Outlook::new(&truths, reference, of_reference, question, &modelled, &shut)?;
        let best = outlook.best();
        let noise = noise_of(question, of_reference, usual)?;
        let gains = outlook.gains(noise, self.seed().label("gain"));
        let is_measured = |index: usize| measured.iter().any(|point| point.place == index);
        let most = |of: &[f64], open: &dyn Fn(usize) -> bool| {
            let open = (0..active.len()).filter(|index| open(*index));
            open.max_by(|a, b| of[*a].total_cmp(&of[*b]))
        };
        let mut next = most(&gains, &|index| !self.terms.recorded || !is_measured(index));
        if next.is_some_and(|next| gains[next] < CHECK) {
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
        })
    }

    fn seed(&self) -> Seed {
        Seed::new(self.terms.seed).label("guided")
    }

    fn fresh_view(&self) -> View {
        View::new(&self.ledger.space, self.active(), self.seed())
    }

    /// The places that are looked at.
    fn active(&self) -> Vec<usize> {
        places::active(
            &self.ledger.space,
            |place| !self.ledger.has_failed(place),
            |place| self.ledger.has(place, 1),
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
