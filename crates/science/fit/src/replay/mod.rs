//! Replays search strategies on recorded measurements: each evaluation that a strategy proposes is answered from the
//! records.

mod curves;
mod error;
mod priors;
mod recorded_values;
mod result;

use std::num::NonZeroUsize;

pub use curves::{
    EnergyColumn, RecordColumns, RecordedCurve, RecordedKnob, curve_of_study, read_curves,
};
pub use error::ReplayError;
pub use result::{Replay, ReplayedCurve};
use sweetspot_decide::Criteria;
use sweetspot_decide::search::{
    Evaluation, Prior, Proposal, SearchOptions, StopReason, StrategyName,
};

use priors::Priors;
use recorded_values::RecordedValues;

/// The curves to replay, the criteria and the options of the search.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// The recorded curves.
    pub curves: Vec<RecordedCurve>,
    /// The objective and the limits of the search.
    pub criteria: Criteria,
    /// What the guided strategy learns from.
    pub prior: PriorChoice,
    /// The seed of the strategies' random numbers.
    pub seed: u64,
    /// The step of the strategy `linear`, in the unit of the knob; `None` for the default step.
    pub step: Option<f64>,
    /// The largest number of evaluations on each curve; `None` for no limit.
    pub max_evaluations: Option<NonZeroUsize>,
}

/// The data from which the guided strategy learns before it starts.
#[derive(Clone, Debug)]
pub enum PriorChoice {
    /// The strategy learns from nothing.
    None,
    /// The strategy learns from the other curves; if a column has the GPU's name, only from those of the same GPU.
    LeaveOneOut,
    /// The strategy learns from these studies.
    Curves(Vec<RecordedCurve>),
}

/// Replays strategies on `threads` threads; the results do not depend on the number of threads.
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
                    let one = |index: &usize| replay_curve(request, *index, *strategy, &priors);
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

/// Runs one strategy on one curve, and compares its choice with the best recorded point.
fn replay_curve(
    request: &ReplayRequest,
    index: usize,
    strategy: StrategyName,
    priors: &Priors,
) -> Result<ReplayedCurve, ReplayError> {
    let curve = &request.curves[index];
    let recorded = RecordedValues::new(curve, &request.criteria)?;
    let options = SearchOptions {
        is_replay: curve.is_single(),
        seed: request.seed,
        step: request.step,
        max_evaluations: request
            .max_evaluations
            .map_or(usize::MAX, NonZeroUsize::get),
        prior: match strategy {
            StrategyName::Guided => priors.of_curve(index),
            _ => Prior::default(),
        },
        ..SearchOptions::default()
    };
    let stopping = search(curve, request, strategy, options.clone());
    let unstopped = match strategy {
        StrategyName::Guided => {
            let options = SearchOptions {
                acceptable_regret: 0.0,
                ..options
            };
            search(curve, request, strategy, options)
        }
        _ => stopping.clone(),
    };
    let value = |point: Option<usize>| point.and_then(|point| recorded.values[point]);
    let (chosen, best, reference) = (
        value(stopping.choice),
        value(recorded.optimum),
        recorded.values[curve.space.reference()],
    );
    let gain_share = chosen
        .zip(best)
        .zip(reference)
        .and_then(|((chosen, best), reference)| {
            let gain = (reference - chosen) / (reference - best);
            gain.is_finite().then_some(gain)
        });
    let answers = unstopped.choices.iter().zip(unstopped.regret_bounds);
    let (regrets, regret_bounds) = answers
        .filter_map(|(choice, bound)| Some((recorded.regret(*choice)?, bound)))
        .unzip();
    Ok(ReplayedCurve {
        group: curve.group.clone(),
        points: curve.space.points().len(),
        evaluations: stopping.evaluations,
        stop_reason: stopping.stop_reason,
        choice: stopping.choice.map(|point| curve.setting(point)),
        optimum: recorded.optimum.map(|point| curve.setting(point)),
        all_equal: recorded.all_equal(),
        regret: recorded.regret(stopping.choice),
        regret_bound: stopping.regret_bounds.last().copied().flatten(),
        gain_share,
        regrets,
        regret_bounds,
    })
}

/// The recommendations during one search, and why it stopped.
#[derive(Clone)]
struct SearchRun {
    evaluations: usize,
    stop_reason: StopReason,
    choice: Option<usize>,
    /// The recommended point after each evaluation; `None` while no evaluated point meets the limits.
    choices: Vec<Option<usize>>,
    /// The bound of the regret that the strategy states after each evaluation, if it states one.
    regret_bounds: Vec<Option<f64>>,
}

/// Runs a strategy until it stops. If a point is evaluated several times, its records are used in turn.
fn search(
    curve: &RecordedCurve,
    request: &ReplayRequest,
    strategy: StrategyName,
    options: SearchOptions,
) -> SearchRun {
    let mut strategy = strategy.start(curve.space.clone(), &request.criteria, options);
    let mut choices = Vec::new();
    let mut regret_bounds = Vec::new();
    let mut asked = vec![0; curve.records.len()];
    let stop_reason = loop {
        let point = match strategy.ask() {
            Proposal::Evaluate(point) => point,
            Proposal::Stop(stop_reason) => break stop_reason,
        };
        let records = &curve.records[point];
        let outcome = records[asked[point] % records.len()].clone();
        asked[point] += 1;
        strategy.tell(point, Evaluation::measured(outcome));
        let answer = strategy.recommend();
        choices.push(answer.map(|answer| answer.point));
        regret_bounds.push(answer.and_then(|answer| answer.regret_bound));
    };
    SearchRun {
        evaluations: choices.len(),
        stop_reason,
        choice: strategy.recommend().map(|answer| answer.point),
        choices,
        regret_bounds,
    }
}
