//! Strategies that `guided` is compared with and that the program does not have: random choice, and a plain Gaussian
//! process with expected improvement.

use sweetspot_decide::search::{
    Evaluation, Proposal, Recommendation, SearchSpace, StopReason, Strategy,
};
use sweetspot_decide::{Objective, Outcome};
use sweetspot_stats::{Cholesky, Seed};

/// The measured points and their mean costs, which all of these strategies need.
struct Costs {
    space: SearchSpace,
    objective: Objective,
    /// The outcomes of each point.
    outcomes: Vec<Vec<Outcome>>,
}

impl Costs {
    fn new(space: SearchSpace, objective: Objective) -> Self {
        Self {
            outcomes: vec![Vec::new(); space.points().len()],
            space,
            objective,
        }
    }

    fn record(&mut self, point: usize, evaluation: Evaluation) {
        if let Evaluation::Measured { outcome, .. } = evaluation {
            self.outcomes[point].push(*outcome);
        }
    }

    fn is_measured(&self, point: usize) -> bool {
        !self.outcomes[point].is_empty()
    }

    /// The logarithm of the objective at each measured point.
    fn measured(&self) -> Vec<(usize, f64)> {
        let mean = |point: usize| Outcome::mean(&self.outcomes[point]);
        let Some(reference) = mean(self.space.reference()) else {
            return Vec::new();
        };
        let cost = |point: usize| {
            let value = self.objective.value(&mean(point)?, &reference).ok()?;
            Some((point, value.ln()))
        };
        (0..self.outcomes.len()).filter_map(cost).collect()
    }

    /// The best measured point.
    fn best(&self) -> Option<(usize, f64)> {
        let measured = self.measured().into_iter();
        measured.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn recommend(&self) -> Option<Recommendation> {
        self.best().map(|(point, _)| Recommendation {
            point,
            expected_regret: None,
            regret_bound: None,
        })
    }
}

/// Evaluates the reference, then the other points in a random order.
pub struct RandomSearch {
    costs: Costs,
    order: Vec<usize>,
}

impl RandomSearch {
    pub fn new(space: SearchSpace, objective: Objective, seed: Seed) -> Self {
        let mut order: Vec<usize> = (0..space.points().len()).collect();
        let key = |point: &usize| match *point == space.reference() {
            true => -1.0,
            false => seed.number(*point as u64).uniform(),
        };
        order.sort_by(|a, b| key(a).total_cmp(&key(b)));
        Self {
            costs: Costs::new(space, objective),
            order,
        }
    }
}

impl Strategy for RandomSearch {
    fn ask(&mut self) -> Proposal {
        let mut order = self.order.iter();
        let next = order.find(|point| !self.costs.is_measured(**point));
        next.map_or(Proposal::Stop(StopReason::Complete), |point| {
            Proposal::Evaluate(*point)
        })
    }

    fn tell(&mut self, point: usize, evaluation: Evaluation) {
        self.costs.record(point, evaluation);
    }

    fn recommend(&mut self) -> Option<Recommendation> {
        self.costs.recommend()
    }
}

/// A Gaussian process over the knob, whose next evaluation has the greatest expected improvement.
pub struct GaussianProcess {
    costs: Costs,
}

/// The correlation length of the process, as a share of the knob's range.
const LENGTH: f64 = 0.25;
/// The smallest standard deviation of the process, and the noise of an evaluation.
const MIN_DEVIATION: f64 = 0.03;
const NOISE: f64 = 0.01;

impl GaussianProcess {
    pub fn new(space: SearchSpace, objective: Objective) -> Self {
        Self {
            costs: Costs::new(space, objective),
        }
    }

    /// The mean and the standard deviation of the process at each point.
    fn predict(&self) -> Option<Vec<(f64, f64)>> {
        let measured = self.costs.measured();
        let count = measured.len();
        let mean = measured.iter().map(|(_, cost)| cost).sum::<f64>() / count as f64;
        let squares = measured.iter().map(|(_, cost)| (cost - mean).powi(2));
        let variance = (squares.sum::<f64>() / count as f64).max(MIN_DEVIATION.powi(2));
        let values = || self.costs.space.points().iter().map(|point| point[0]);
        let low = values().fold(f64::INFINITY, f64::min);
        let high = values().fold(f64::NEG_INFINITY, f64::max);
        let place = |point: usize| {
            (self.costs.space.points()[point][0] - low) / (high - low).max(f64::MIN_POSITIVE)
        };
        let covariance = |a: usize, b: usize| {
            let x = 5.0_f64.sqrt() * (place(a) - place(b)).abs() / LENGTH;
            variance * (1.0 + x + x * x / 3.0) * (-x).exp()
        };
        let mut matrix = vec![0.0; count * count];
        for (row, (a, _)) in measured.iter().enumerate() {
            for (column, (b, _)) in measured.iter().enumerate() {
                let noise = if row == column { NOISE * NOISE } else { 0.0 };
                matrix[row * count + column] = covariance(*a, *b) + noise;
            }
        }
        let cholesky = Cholesky::of(&matrix, count)?;
        let mut weights: Vec<f64> = measured.iter().map(|(_, cost)| cost - mean).collect();
        cholesky.solve(&mut weights);
        let predict = |point: usize| {
            let mut with: Vec<f64> = measured
                .iter()
                .map(|(other, _)| covariance(point, *other))
                .collect();
            let own = mean + with.iter().zip(&weights).map(|(a, b)| a * b).sum::<f64>();
            cholesky.whiten(&mut with);
            let explained: f64 = with.iter().map(|x| x * x).sum();
            (own, (variance - explained).max(0.0).sqrt())
        };
        Some((0..self.costs.outcomes.len()).map(predict).collect())
    }
}

impl Strategy for GaussianProcess {
    fn ask(&mut self) -> Proposal {
        let reference = self.costs.space.reference();
        if !self.costs.is_measured(reference) {
            return Proposal::Evaluate(reference);
        }
        let (Some(predictions), Some((_, best))) = (self.predict(), self.costs.best()) else {
            return Proposal::Stop(StopReason::Complete);
        };
        let improvement = |point: &usize| {
            let (mean, deviation) = predictions[*point];
            let z = (best - mean) / deviation.max(1e-12);
            let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
            (best - mean) * normal_share_below(z) + deviation * density
        };
        let points = 0..predictions.len();
        let unknown = points.filter(|point| !self.costs.is_measured(*point));
        let next = unknown.max_by(|a, b| improvement(a).total_cmp(&improvement(b)));
        next.map_or(Proposal::Stop(StopReason::Complete), Proposal::Evaluate)
    }

    fn tell(&mut self, point: usize, evaluation: Evaluation) {
        self.costs.record(point, evaluation);
    }

    fn recommend(&mut self) -> Option<Recommendation> {
        let predictions = self.predict()?;
        let measured = self.costs.measured().into_iter().map(|(point, _)| point);
        let best = measured.min_by(|a, b| predictions[*a].0.total_cmp(&predictions[*b].0));
        best.map(|point| Recommendation {
            point,
            expected_regret: None,
            regret_bound: None,
        })
    }
}

/// The share of a standard normal distribution below `z` (an approximation with an error below 0.0001).
fn normal_share_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let tail = density
        * t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    if z > 0.0 { 1.0 - tail } else { tail }
}
