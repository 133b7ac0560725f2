//! Guided search: a model of the GPU predicts time and energy at the points that are not measured, and the next
//! evaluation is the one that is expected to improve the recommendation most.

mod active_points;
mod deviation;
mod levels;
mod model;
mod neighbours;
mod noise_scales;
mod objective_samples;
mod posterior;
mod prior;
mod residual;
mod surprise;
mod untried_levels;
mod workload_model;

use sweetspot_stats::Seed;

pub use self::prior::Prior;

use self::active_points::active_points;
use self::levels::{Levels, Observations, PosteriorSamples};
use self::noise_scales::NoiseModel;
use self::objective_samples::{ObjectiveSamples, objective_noise};
use self::posterior::Measurement;
use self::surprise::Surprises;
use super::evaluation_log::EvaluationLog;
use super::{
    Evaluation, Noise, Proposal, Recommendation, SearchOptions, SearchSpace, StopReason, Strategy,
};
use crate::{Comparison, Criteria, Limit, Outcome, Value};

/// The minimum number of evaluations before the search may stop: fewer do not show how noisy they are.
const MIN_EVALUATIONS: usize = 4;
/// The maximum number of evaluations of a guided search, even if the caller allows more.
const MAX_EVALUATIONS: usize = 16;
/// A recommendation counts as poor if its regret (the relative loss against the true optimum) exceeds this.
const POOR_REGRET: f64 = 0.01;
/// The search continues while the probability of a poor recommendation is at least this high.
const MAX_REMAINING_RISK: f64 = 0.12;
/// [`MAX_REMAINING_RISK`] in a replay of recorded results, in which an evaluation costs nothing.
const MAX_REMAINING_RISK_IN_REPLAY: f64 = 0.06;
/// If every evaluation is expected to improve the objective by less than this share, a neighbour of the best point is
/// evaluated next, to check the model.
const NEGLIGIBLE_GAIN: f64 = 0.0005;
/// Expected gains of at least this share of the greatest are equal, as far as the model can tell without earlier studies.
/// The point farthest from all measurements is then evaluated, which says most about the rest of the curve.
const EQUAL_GAIN: f64 = 0.9;
/// The quantile of the sampled regrets that is stated as the bound that holds in 90 %. It is higher than 0.9, because the
/// samples do not contain the errors of the model itself.
const BOUND_QUANTILE: f64 = 0.95;
/// Points within this distance of the best point, as a share of each knob's range, are its neighbours.
const NEIGHBOUR_DISTANCE: f64 = 0.15;
/// The curve of the objective counts as steep if a neighbour of the best point is worse by more than this share.
const STEEP_LOSS: f64 = 0.15;
/// The strategy `guided`: a model chooses the evaluations.
pub(super) struct Guided {
    log: EvaluationLog,
    options: SearchOptions,
    levels: Levels,
    /// The index of the best point according to the latest decision; initially the reference.
    best: usize,
    /// The decision that follows from all evaluations so far; absent until it is first needed.
    decision: Option<Decision>,
    surprises: Surprises,
}

/// What the strategy proposes next, and what it would recommend if the search stopped now.
#[derive(Clone, Copy)]
struct Decision {
    proposal: Proposal,
    recommendation: Option<Recommendation>,
}

/// What the model predicts: the best point, its expected regret, and which point to evaluate next.
struct Assessment {
    best: usize,
    /// The expected regret if the best point is recommended, as a share.
    regret: f64,
    /// The bound that the regret of the best point does not exceed in 90 % of all searches, as a share.
    regret_bound: f64,
    /// The probability that the regret of the best point exceeds [`POOR_REGRET`].
    risk: f64,
    /// The point whose evaluation is expected to improve the recommendation most; absent if no point may be
    /// evaluated.
    next: Option<usize>,
    /// Whether some evaluation is expected to gain more than the job loses meanwhile.
    is_worth_its_cost: bool,
    /// Whether more evaluations cannot lower the risk that the best point breaks a limit: there are limits, and no
    /// evaluation is expected to gain anything.
    is_limit_risk_irreducible: bool,
    /// Whether the curve of the objective is steep: a neighbour of the best point is worse by more than [`STEEP_LOSS`].
    is_steep: bool,
}

impl Guided {
    pub(super) fn new(space: SearchSpace, criteria: &Criteria, options: SearchOptions) -> Self {
        let max_evaluations = options.max_evaluations.min(MAX_EVALUATIONS);
        Self {
            best: space.reference(),
            levels: Levels::new(&space, Seed::new(options.seed).label("guided")),
            log: EvaluationLog::new(space, criteria, max_evaluations),
            options,
            decision: None,
            surprises: Surprises::default(),
        }
    }

    /// Decides from all evaluations so far what to propose and what to recommend.
    fn decide(&mut self) -> Decision {
        let reference = self.log.space.reference();
        let stop = self.log.stop_reason();
        if stop.is_none() && !self.log.is_complete(reference, 1) {
            return Decision {
                proposal: Proposal::Evaluate(reference),
                recommendation: None,
            };
        }
        let comparison = self.log.comparison();
        let assessment = comparison
            .reference()
            .cloned()
            .and_then(|reference| self.assess(&comparison, &reference));
        let Some(assessment) = assessment else {
            return self.decide_without_model(stop);
        };
        // After a single evaluation and without a prior, only the reference is recommended.
        let is_blind = self.options.prior.is_empty() && self.log.evaluations() < 2;
        let recommendation = Recommendation {
            point: if is_blind { reference } else { assessment.best },
            expected_regret: (!is_blind).then_some(assessment.regret),
            regret_bound: (!is_blind).then_some(assessment.regret_bound),
        };
        let proposal = match (stop, assessment.next) {
            (Some(reason), _) => Proposal::Stop(reason),
            (None, None) => Proposal::Stop(StopReason::Complete),
            (None, Some(next)) if self.surprises.unconfirmed().is_some() => {
                Proposal::Evaluate(self.confirmation().unwrap_or(next))
            }
            (None, Some(_)) if self.has_converged(&assessment) => {
                let gap = assessment
                    .is_steep
                    .then(|| self.gap_beside(assessment.best));
                gap.flatten()
                    .map_or(Proposal::Stop(StopReason::Converged), Proposal::Evaluate)
            }
            (None, Some(next)) => Proposal::Evaluate(next),
        };
        Decision {
            proposal,
            recommendation: Some(recommendation),
        }
    }

    /// Whether the recommendation is good enough to stop the search, or cannot be improved.
    fn has_converged(&self, assessment: &Assessment) -> bool {
        let max_risk = match self.options.is_replay {
            true => MAX_REMAINING_RISK_IN_REPLAY,
            false => MAX_REMAINING_RISK,
        };
        let is_good =
            assessment.regret < self.options.acceptable_regret && assessment.risk < max_risk;
        self.log.evaluations() >= MIN_EVALUATIONS
            && (is_good || assessment.is_limit_risk_irreducible || !assessment.is_worth_its_cost)
    }

    /// Evaluates every point in turn; used if time or energy is unknown and there is therefore nothing to model.
    fn decide_without_model(&self, stop: Option<StopReason>) -> Decision {
        let mut points = 0..self.log.space.points().len();
        let next = points.find(|point| !self.log.is_complete(*point, 1));
        let proposal = match (stop, next) {
            (Some(reason), _) => Proposal::Stop(reason),
            (None, Some(point)) => Proposal::Evaluate(point),
            (None, None) => Proposal::Stop(StopReason::Complete),
        };
        Decision {
            proposal,
            recommendation: self.log.recommend(),
        }
    }

    /// Runs the model on the measurements; `None` if they do not suffice for a prediction.
    fn assess(&mut self, comparison: &Comparison, of_reference: &Outcome) -> Option<Assessment> {
        let noise = self.default_noise();
        let active = self.active_points();
        let measurements = self.measurements(comparison, of_reference, &active, noise)?;
        let posterior = self.draw_samples(of_reference, &active, &measurements)?;
        self.surprises.predict(&active, &posterior.samples);
        let space = &self.log.space;
        let reference = active
            .iter()
            .position(|point| *point == space.reference())?;
        let criteria = &self.log.criteria;
        let (modelled, reported): (Vec<&Limit>, Vec<&Limit>) =
            criteria.limits.iter().partition(|limit| is_modelled(limit));
        let objective = ObjectiveSamples::new(
            &posterior.samples,
            reference,
            of_reference,
            criteria,
            &modelled,
            &breaks_limits(comparison, &active, &reported),
            posterior.untried_levels.clone(),
        )?;
        let best = objective.best();
        let seed = Seed::new(self.options.seed).label("guided").label("gain");
        let relative_noise = objective_noise(criteria, of_reference, noise)?;
        let gains = match modelled.is_empty() {
            true => objective.knowledge_gradients(relative_noise, seed),
            false => objective.knowledge_gradients_with_limits(&posterior.samples, noise, seed),
        };
        let is_measured = |index: usize| measurements.iter().any(|own| own.point == index);
        let is_neighbour =
            |index: usize| space.distance(active[index], active[best]) <= NEIGHBOUR_DISTANCE;
        let greatest = |scores: &[f64], is_wanted: &dyn Fn(usize) -> bool| {
            let mut wanted: Vec<usize> = (0..active.len()).collect();
            wanted.retain(|index| posterior.may_evaluate[*index] && is_wanted(*index));
            wanted
                .into_iter()
                .max_by(|a, b| scores[*a].total_cmp(&scores[*b]))
        };
        let is_new = |index: usize| !self.options.is_replay || !is_measured(index);
        let costs = self.evaluation_costs(&objective, &posterior.samples, best);
        let net_gains: Vec<f64> = gains.iter().zip(&costs).map(|(a, b)| a - b).collect();
        let mut next = greatest(&net_gains, &is_new);
        let gain = next.map_or(0.0, |next| gains[next]);
        let is_worth_its_cost = next.is_none_or(|next| costs[next] == 0.0 || net_gains[next] > 0.0);
        if self.options.is_replay && self.options.prior.is_empty() {
            let distances = self.distances_to_measurements(&active, &measurements);
            let is_equal_gain = |index: usize| is_new(index) && gains[index] >= EQUAL_GAIN * gain;
            next = greatest(&distances, &is_equal_gain).or(next);
        }
        if gain < NEGLIGIBLE_GAIN {
            let is_unknown_neighbour = |index: usize| !is_measured(index) && is_neighbour(index);
            next = greatest(objective.variances(), &is_unknown_neighbour).or(next);
        }
        let mut regrets = objective.regrets(best);
        regrets.sort_by(f64::total_cmp);
        let count = regrets.len() as f64;
        let regret = regrets.iter().sum::<f64>() / count;
        let quantile = regrets.get((BOUND_QUANTILE * count) as usize);
        let poor = regrets.iter().filter(|regret| **regret > POOR_REGRET);
        Some(Assessment {
            best: active[best],
            regret,
            regret_bound: quantile.copied().unwrap_or(regret).max(regret),
            risk: poor.count() as f64 / count,
            next: next.map(|index| active[index]),
            is_worth_its_cost,
            is_limit_risk_irreducible: !modelled.is_empty() && gain < NEGLIGIBLE_GAIN,
            is_steep: (0..active.len()).any(|index| {
                is_neighbour(index) && objective.relative_loss(index, best) > STEEP_LOSS
            }),
        })
    }

    /// For each point, what the job is expected to lose while the point is evaluated instead of the best one, as a share
    /// of the objective of the whole job. At a slower point an evaluation takes longer.
    fn evaluation_costs(
        &self,
        objective: &ObjectiveSamples,
        samples: &[Vec<f64>],
        best: usize,
    ) -> Vec<f64> {
        let share = self.options.share_of_job;
        let times = |point: usize| samples.iter().map(move |sample| libm::exp(sample[point]));
        let slowdown = |point: usize| times(point).sum::<f64>() / samples.len() as f64;
        let cost = |point: usize| match share > 0.0 {
            true => share * slowdown(point) * objective.relative_loss(point, best),
            false => 0.0,
        };
        (0..objective.points()).map(cost).collect()
    }

    /// Draws samples of time and energy at the active points from the posterior.
    fn draw_samples(
        &mut self,
        of_reference: &Outcome,
        active: &[usize],
        measurements: &[Measurement],
    ) -> Option<PosteriorSamples> {
        let power = Value::AveragePower.of(of_reference).ok()?;
        let noise_model = match (self.options.is_replay, self.log.is_noise_known()) {
            (true, _) => NoiseModel::Recorded,
            (false, true) => NoiseModel::Known,
            (false, false) => NoiseModel::Unknown,
        };
        self.levels.draw_samples(
            self.log.space.reference(),
            &Observations {
                reference_power: power / of_reference.gpus.max(1) as f64,
                prior: &self.options.prior,
                noise_model,
                active,
                measurements,
            },
        )
    }

    /// The noise that is assumed for an evaluation whose own noise is unknown.
    fn default_noise(&self) -> Noise {
        match self.options.is_replay {
            true => Noise::NONE,
            false => self.options.noise,
        }
    }

    /// The indices of the active points: those for which the model predicts time and energy.
    fn active_points(&self) -> Vec<usize> {
        let has_failed = |point: usize| self.log.has_failed(point);
        let is_measured = |point: usize| self.log.is_complete(point, 1) && !has_failed(point);
        active_points(
            &self.log.space,
            |point| self.levels.is_possible(point, &has_failed, &is_measured),
            is_measured,
            self.best,
        )
    }

    /// The measured times and energies of the active points, as log ratios to the reference.
    fn measurements(
        &self,
        comparison: &Comparison,
        of_reference: &Outcome,
        active: &[usize],
        default_noise: Noise,
    ) -> Option<Vec<Measurement>> {
        let (time, energy) = (of_reference.time.get(), of_reference.energy?.get());
        let points = active.iter().enumerate();
        let all = points.filter_map(|(index, point)| {
            let mean = match self.surprises.was_surprising(*point) {
                true => self.log.median(*point)?,
                false => comparison.mean(*point)?.clone(),
            };
            Some(Measurement {
                point: index,
                log_ratios: [
                    libm::log(mean.time.get() / time),
                    libm::log(mean.energy?.get() / energy),
                ],
                noise: match self.options.is_replay {
                    true => Noise::NONE,
                    false => self.log.noise_of_mean(*point, default_noise),
                },
            })
        });
        let is_finite = |own: &Measurement| own.log_ratios.iter().all(|value| value.is_finite());
        Some(all.filter(is_finite).collect())
    }
}

/// Whether the model predicts the value that a limit bounds.
fn is_modelled(limit: &Limit) -> bool {
    !matches!(limit.value(), Value::Reported(_))
}

/// For each point, whether its measured values break one of the limits; false if the point was not measured.
fn breaks_limits(comparison: &Comparison, points: &[usize], limits: &[&Limit]) -> Vec<bool> {
    let breaks_any = |point: &usize| {
        let mean = comparison.mean(*point);
        let breaks = |limit: &&Limit| {
            mean.is_some_and(|mean| limit.check(mean, comparison.basis()).is_err())
        };
        limits.iter().any(breaks)
    };
    points.iter().map(breaks_any).collect()
}

impl Strategy for Guided {
    fn ask(&mut self) -> Proposal {
        let decision = match self.decision {
            Some(decision) => decision,
            None => self.decide(),
        };
        self.decision = Some(decision);
        decision.proposal
    }

    fn tell(&mut self, point: usize, evaluation: Evaluation) {
        self.notice_surprise(point, &evaluation);
        self.log.record(point, evaluation);
        let decision = self.decision.take();
        if let Some(recommendation) = decision.and_then(|decision| decision.recommendation) {
            self.best = recommendation.point;
        }
    }

    fn recommend(&mut self) -> Option<Recommendation> {
        self.ask();
        self.decision?.recommendation
    }
}
