//! Strategies against recorded measurements: each ask is answered by the record.

mod curves;
mod error;

use std::num::NonZeroUsize;

use sweetspot_decide::search::{
    EarlierResults, Evaluation, KnobKind, Prior, Proposal, SearchOptions, StopReason, StrategyName,
};
use sweetspot_decide::{Candidate, Comparison, Criteria, Objective, Outcome};
use sweetspot_study::Study;

pub use curves::{
    EnergyColumn, RecordColumns, RecordedCurve, RecordedKnob, recorded_curves, studied_curve,
};
pub use error::ReplayError;

/// What is to be replayed.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// Against what.
    pub curves: Vec<RecordedCurve>,
    /// For what.
    pub question: Criteria,
    /// What the guided strategy may learn from.
    pub prior: PriorChoice,
    /// Of random draws.
    pub seed: u64,
    /// Of `linear`.
    pub step: Option<f64>,
    /// No more evaluations than this.
    pub most: Option<NonZeroUsize>,
}

/// What a search knows beforehand.
#[derive(Clone, Debug)]
pub enum PriorChoice {
    /// Nothing.
    None,
    /// What the other curves teach: those of the same GPU, where a column tells it.
    LeaveOneOut,
    /// What these studies teach.
    Studies(Vec<Study>),
}

/// A strategy on all curves.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Which.
    pub strategy: StrategyName,
    /// In the order of the curves.
    pub curves: Vec<ReplayedCurve>,
}

/// A strategy on a curve.
#[derive(Clone, Debug)]
pub struct ReplayedCurve {
    /// What tells the curve from the others.
    pub group: Vec<(String, String)>,
    /// How many places were recorded.
    pub points: usize,
    /// How many evaluations were made, the reference included.
    pub evaluations: usize,
    /// Why it ended.
    pub done: StopReason,
    /// The setting that was chosen; none where nothing keeps to the limits.
    pub choice: Option<Vec<(String, f64)>>,
    /// The best setting of the record; none where nothing keeps to the limits.
    pub optimum: Option<Vec<(String, f64)>>,
    /// Whether all points have the same value.
    pub all_equal: bool,
    /// Of the choice against the optimum, as a share of the optimum's value.
    pub regret: Option<f64>,
    /// Of what the optimum gains over the reference; unknown where it gains nothing.
    pub gain_share: Option<f64>,
    /// Of the choice that would have been made after 1, 2, 3... evaluations, without stopping early.
    pub regrets: Vec<f64>,
}

impl Replay {
    /// Of the evaluations of all curves.
    pub fn evaluations_median(&self) -> f64 {
        let mut all: Vec<usize> = self.curves.iter().map(|curve| curve.evaluations).collect();
        all.sort_unstable();
        let middle = all.len() / 2;
        match all.len() {
            0 => 0.0,
            count if count % 2 == 1 => all[middle] as f64,
            _ => (all[middle - 1] + all[middle]) as f64 / 2.0,
        }
    }

    /// The most evaluations of a curve.
    pub fn evaluations_most(&self) -> usize {
        let all = self.curves.iter().map(|curve| curve.evaluations);
        all.max().unwrap_or(0)
    }

    /// Curves with an optimum: something in them keeps to the limits.
    pub fn judged(&self) -> usize {
        let judged = |curve: &&ReplayedCurve| curve.optimum.is_some();
        self.curves.iter().filter(judged).count()
    }

    /// The share of those curves with no more regret than this.
    pub fn within(&self, regret: f64) -> f64 {
        let good = |curve: &&ReplayedCurve| curve.regret.is_some_and(|own| own <= regret);
        self.curves.iter().filter(good).count() as f64 / self.judged().max(1) as f64
    }

    /// Of those curves that have one.
    pub fn regret_mean(&self) -> Option<f64> {
        mean(self.curves.iter().filter_map(|curve| curve.regret))
    }

    /// Of those curves that have one.
    pub fn gain_share_mean(&self) -> Option<f64> {
        mean(self.curves.iter().filter_map(|curve| curve.gain_share))
    }

    /// The mean regret after 1, 2, 3... evaluations, without stopping early.
    pub fn regret_by_evaluations(&self) -> Vec<f64> {
        let longest = self.curves.iter().map(|curve| curve.regrets.len()).max();
        let after = |number: usize| {
            let own = self.curves.iter().filter_map(|curve| {
                let last = curve.regrets.len().checked_sub(1)?;
                Some(curve.regrets[number.min(last)])
            });
            mean(own).unwrap_or(0.0)
        };
        (0..longest.unwrap_or(0)).map(after).collect()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Replays some strategies on `threads` threads; what comes out does not depend on their number.
pub fn replay(
    request: &ReplayRequest,
    strategies: &[StrategyName],
    threads: NonZeroUsize,
) -> Result<Vec<Replay>, ReplayError> {
    let priors = Priors::learn(request)?;
    strategies
        .iter()
        .map(|strategy| {
            let indices: Vec<usize> = (0..request.curves.len()).collect();
            let each = indices.len().div_ceil(threads.get()).max(1);
            let parts = std::thread::scope(|scope| {
                let part = |chunk: &[usize]| {
                    let one = |index: &usize| on_curve(request, *index, *strategy, &priors);
                    chunk.iter().map(one).collect::<Result<Vec<_>, _>>()
                };
                let started: Vec<_> = indices
                    .chunks(each)
                    .map(|chunk| scope.spawn(move || part(chunk)))
                    .collect();
                let ended = started.into_iter().map(|thread| match thread.join() {
                    Ok(part) => part,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                ended.collect::<Result<Vec<_>, _>>()
            })?;
            Ok(Replay {
                strategy: *strategy,
                curves: parts.into_iter().flatten().collect(),
            })
        })
        .collect()
}

/// What is known beforehand about each curve.
enum Priors {
    Same(Prior),
    /// Of each kind of GPU: which curves are of it, and what they teach.
    Others(Vec<(Vec<usize>, Prior)>),
}

impl Priors {
    fn learn(request: &ReplayRequest) -> Result<Self, ReplayError> {
        let kinds = |curve: &RecordedCurve| -> Vec<KnobKind> {
            curve.knobs.iter().map(|knob| knob.kind).collect()
        };
        let Some(first) = request.curves.first() else {
            return Ok(Self::Same(Prior::default()));
        };
        match &request.prior {
            PriorChoice::None => Ok(Self::Same(Prior::default())),
            PriorChoice::Studies(studies) => {
                let curves: Result<Vec<RecordedCurve>, ReplayError> =
                    studies.iter().map(studied_curve).collect();
                let same = |curve: &&RecordedCurve| kinds(curve) == kinds(first);
                let lessons: Vec<EarlierResults> = curves?
                    .iter()
                    .filter(same)
                    .map(RecordedCurve::lesson)
                    .collect();
                Ok(Self::Same(Prior::learn(&kinds(first), &lessons)))
            }
            PriorChoice::LeaveOneOut if request.curves.len() < 2 => Err(ReplayError::NoOthers),
            PriorChoice::LeaveOneOut => {
                let mut boards: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
                for (index, curve) in request.curves.iter().enumerate() {
                    let board = board(curve);
                    match boards.iter_mut().find(|(known, _)| *known == board) {
                        Some((_, own)) => own.push(index),
                        None => boards.push((board, vec![index])),
                    }
                }
                let learn = |own: Vec<usize>| {
                    let lesson = |index: &usize| request.curves[*index].lesson();
                    let lessons: Vec<EarlierResults> = own.iter().map(lesson).collect();
                    let prior = Prior::learn(&kinds(first), &lessons);
                    (own, prior)
                };
                let boards = boards.into_iter().map(|(_, own)| learn(own));
                Ok(Self::Others(boards.collect()))
            }
        }
    }

    fn of(&self, curve: usize) -> Prior {
        match self {
            Self::Same(prior) => prior.clone(),
            Self::Others(boards) => boards
                .iter()
                .find_map(|(own, prior)| {
                    let place = own.iter().position(|index| *index == curve)?;
                    Some(prior.without(place))
                })
                .unwrap_or_default(),
        }
    }
}

/// The GPU of a curve, where a column tells it.
fn board(curve: &RecordedCurve) -> Option<&str> {
    let mut columns = curve.group.iter();
    columns
        .find(|(name, _)| ["gpu", "device", "board"].contains(&name.to_lowercase().as_str()))
        .map(|(_, value)| value.as_str())
}

fn on_curve(
    request: &ReplayRequest,
    index: usize,
    strategy: StrategyName,
    priors: &Priors,
) -> Result<ReplayedCurve, ReplayError> {
    let curve = &request.curves[index];
    let truth = Truth::new(curve, &request.question)?;
    let terms = SearchOptions {
        is_replay: curve.is_single(),
        seed: request.seed,
        step: request.step,
        max_evaluations: request.most.map_or(usize::MAX, NonZeroUsize::get),
        prior: match strategy {
            StrategyName::Guided => priors.of(index),
            _ => Prior::default(),
        },
        ..SearchOptions::default()
    };
    let stopping = search(curve, request, strategy, terms.clone());
    let endless = match strategy {
        StrategyName::Guided => {
            let terms = SearchOptions {
                acceptable_regret: 0.0,
                ..terms
            };
            search(curve, request, strategy, terms)
        }
        _ => stopping.clone(),
    };
    let value = |place: Option<usize>| place.and_then(|place| truth.values[place]);
    let (chosen, best, reference) = (
        value(stopping.choice),
        value(truth.optimum),
        truth.values[curve.space.reference()],
    );
    let gain_share = chosen
        .zip(best)
        .zip(reference)
        .and_then(|((chosen, best), reference)| {
            let gain = (reference - chosen) / (reference - best);
            gain.is_finite().then_some(gain)
        });
    Ok(ReplayedCurve {
        group: curve.group.clone(),
        points: curve.space.points().len(),
        evaluations: stopping.evaluations,
        done: stopping.done,
        choice: stopping.choice.map(|place| curve.setting(place)),
        optimum: truth.optimum.map(|place| curve.setting(place)),
        all_equal: truth.all_equal(),
        regret: truth.regret(stopping.choice),
        gain_share,
        regrets: endless
            .choices
            .iter()
            .filter_map(|choice| truth.regret(*choice))
            .collect(),
    })
}

/// How a search went.
#[derive(Clone)]
struct Searched {
    evaluations: usize,
    done: StopReason,
    choice: Option<usize>,
    /// After each evaluation.
    choices: Vec<Option<usize>>,
}

fn search(
    curve: &RecordedCurve,
    request: &ReplayRequest,
    strategy: StrategyName,
    terms: SearchOptions,
) -> Searched {
    let mut strategy = strategy.start(curve.space.clone(), &request.question, terms);
    let mut choices = Vec::new();
    let mut asked = vec![0; curve.records.len()];
    let done = loop {
        let place = match strategy.ask() {
            Proposal::Evaluate(place) => place,
            Proposal::Stop(done) => break done,
        };
        let records = &curve.records[place];
        let outcome = records[asked[place] % records.len()].clone();
        asked[place] += 1;
        strategy.tell(place, Evaluation::measured(outcome));
        choices.push(strategy.recommend().map(|answer| answer.point));
    };
    Searched {
        evaluations: choices.len(),
        done,
        choice: strategy.recommend().map(|answer| answer.point),
        choices,
    }
}

/// What the record says of every place.
struct Truth {
    objective: Objective,
    /// Less is better; nothing where a limit is broken.
    values: Vec<Option<f64>>,
    optimum: Option<usize>,
}

impl Truth {
    fn new(curve: &RecordedCurve, question: &Criteria) -> Result<Self, ReplayError> {
        let candidates: Vec<Candidate> = curve
            .records
            .iter()
            .map(|runs| Candidate::of(runs.clone()))
            .collect();
        let reference = &candidates[curve.space.reference()];
        let comparison = Comparison::new(&candidates, Some(reference), question.tariff.clone());
        let mut values = Vec::new();
        for index in 0..candidates.len() {
            let value = comparison.estimate(index, question.objective);
            let value = value.map_err(|reason| ReplayError::NoValue {
                curve: curve.name(),
                objective: question.objective.to_string(),
                reason: reason.to_string(),
            })?;
            let keeps = |mean: &Outcome| {
                let mut limits = question.limits.iter();
                limits.all(|limit| limit.check(mean, comparison.basis()).is_ok())
            };
            let sign = if question.objective.is_maximised() {
                -1.0
            } else {
                1.0
            };
            let kept = comparison.mean(index).is_some_and(keeps);
            values.push(kept.then_some(sign * value.value));
        }
        let best = values
            .iter()
            .enumerate()
            .filter_map(|(index, value)| Some((index, (*value)?)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(Self {
            objective: question.objective,
            optimum: best.map(|(index, _)| index),
            values,
        })
    }

    fn all_equal(&self) -> bool {
        let values: Option<Vec<f64>> = self.values.iter().copied().collect();
        values.is_some_and(|values| {
            let same = |value: &f64| (value - values[0]).abs() <= 1e-9 * values[0].abs();
            values.len() > 1 && values.iter().all(same)
        })
    }

    fn regret(&self, choice: Option<usize>) -> Option<f64> {
        let (chosen, best) = (self.values[choice?]?, self.values[self.optimum?]?);
        let size = match self.objective {
            // A difference of shares may be near 0, and is a share itself.
            Objective::GainMinusLoss => 1.0,
            _ => best.abs(),
        };
        Some((chosen - best) / size)
    }
}
