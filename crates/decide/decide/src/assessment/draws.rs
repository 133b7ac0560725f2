//! Random draws of the true cost of every configuration, given the runs.

use super::line_model::ModelDraws;

/// Random draws of the natural logarithm of the true cost of every configuration; less cost is better. All statements
/// about configurations are counted over these draws.
#[derive(Clone, Debug)]
pub struct CostDraws {
    points: usize,
    /// The costs of all configurations in the first draw, then in the second one, and so on.
    values: Vec<f64>,
    /// For each configuration, the mean over the draws.
    means: Vec<f64>,
    /// The configurations that others are compared with: those with the lowest means, and the reference.
    rivals: Vec<usize>,
    /// For each configuration, its position among the rivals, if it is one.
    rival_positions: Vec<Option<usize>>,
    /// For each configuration and each rival, the standard deviation of the difference of their costs.
    deviations: Vec<f64>,
    /// Draws from the most likely process, relative to their means; they show how far the largest of several
    /// differences may be from its mean.
    of_best_process: Vec<f64>,
    /// The standard deviations of the pairs in these draws.
    process_deviations: Vec<f64>,
    /// The index of the reference, if there is one.
    reference: Option<usize>,
    /// The number of standard deviations by which the reference must be worse than a configuration, so that with 95 %
    /// probability no configuration is called better than the reference wrongly.
    reference_critical: f64,
}

/// The maximum number of pairs of configurations that are compared; it bounds the computing time.
const MAX_PAIRS: usize = 20_000;
/// The least and the greatest number of configurations that all others are compared with.
const RIVALS: [usize; 2] = [4, 64];
/// The probability that all statements about pairs of configurations hold together.
const CONFIDENCE: f64 = 0.95;
/// A difference of so many standard deviations is beyond every critical value.
const OBVIOUS: f64 = 9.0;
/// A difference is significant only if it is absent in at most this share of the draws.
const MAX_DOUBT: f64 = 0.025;
/// Differences of log cost below this are rounding errors.
const ROUNDING: f64 = 1e-9;

impl CostDraws {
    /// Prepares comparisons of `points` configurations.
    pub(super) fn new(draws: ModelDraws, points: usize, reference: Option<usize>) -> Option<Self> {
        let ModelDraws {
            values,
            of_best_process,
        } = draws;
        values
            .len()
            .checked_div(points)
            .filter(|count| *count > 1)?;
        let means = means(&values, points);
        let mut rivals: Vec<usize> = (0..points).collect();
        rivals.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
        rivals.truncate((MAX_PAIRS / points).clamp(RIVALS[0], RIVALS[1]));
        if let Some(reference) = reference.filter(|reference| !rivals.contains(reference)) {
            rivals.push(reference);
        }
        let mut rival_positions = vec![None; points];
        for (position, rival) in rivals.iter().enumerate() {
            rival_positions[*rival] = Some(position);
        }
        let mut of_best_process = of_best_process;
        let centres = self::means(&of_best_process, points);
        for draw in of_best_process.chunks_exact_mut(points) {
            for (value, centre) in draw.iter_mut().zip(&centres) {
                *value -= centre;
            }
        }
        let mut draws = Self {
            points,
            deviations: pair_deviations(&values, &means, &rivals),
            process_deviations: pair_deviations(&of_best_process, &vec![0.0; points], &rivals),
            values,
            means,
            rivals,
            rival_positions,
            of_best_process,
            reference,
            reference_critical: 0.0,
        };
        if let Some(reference) = reference {
            let others: Vec<usize> = (0..points).collect();
            draws.reference_critical = draws.critical_value(&[reference], &others);
        }
        Some(draws)
    }

    /// The number of standard deviations by which, in 95 % of the draws, no configuration of `worse` is worse than one of
    /// `better` by chance. One of the two lists must contain rivals only.
    fn critical_value(&self, worse: &[usize], better: &[usize]) -> f64 {
        let pairs: Vec<(usize, usize, f64)> = worse
            .iter()
            .flat_map(|a| better.iter().map(move |b| (*a, *b)))
            .filter(|(a, b)| a != b)
            .filter_map(|(a, b)| {
                Some((a, b, 1.0 / self.deviation(&self.process_deviations, a, b)?))
            })
            .collect();
        let draws = self.of_best_process.chunks_exact(self.points);
        let mut largest: Vec<f64> = draws
            .map(|draw| {
                let scores = pairs
                    .iter()
                    .map(|(a, b, scale)| (draw[*a] - draw[*b]) * scale);
                scores.fold(0.0, f64::max)
            })
            .collect();
        largest.sort_by(f64::total_cmp);
        let last = largest.len().saturating_sub(1);
        let critical = largest.get((CONFIDENCE * last as f64) as usize);
        critical.copied().unwrap_or(f64::INFINITY)
    }

    /// The standard deviation of the difference of two configurations, of which at least one must be a rival.
    fn deviation(&self, deviations: &[f64], a: usize, b: usize) -> Option<f64> {
        let (row, column) = match self.rival_positions[b] {
            Some(column) => (a, column),
            None => (b, self.rival_positions[a]?),
        };
        deviations.get(row * self.rivals.len() + column).copied()
    }

    /// Whether configuration `a` costs more than `b` by at least this number of standard deviations, and in almost all
    /// draws: in a mixture, a few draws may be far from the others.
    fn is_worse(&self, a: usize, b: usize, critical: f64) -> bool {
        let Some(deviation) = self.deviation(&self.deviations, a, b) else {
            return false;
        };
        self.means[a] - self.means[b] > critical * deviation
            && self.share_not_worse(a, b) <= MAX_DOUBT
    }

    /// The share of the draws in which configuration `a` costs no more than `b`.
    fn share_not_worse(&self, a: usize, b: usize) -> f64 {
        let draws = self.values.chunks_exact(self.points);
        let count = draws.len() as f64;
        draws.filter(|draw| draw[a] <= draw[b]).count() as f64 / count
    }

    /// The mean difference of the log costs of the reference and a configuration, and the half-width of the interval
    /// that contains the differences of all configurations with 95 % probability; `None` without a reference.
    pub(super) fn gain_interval(&self, point: usize) -> Option<(f64, f64)> {
        let reference = self.reference?;
        let deviation = self.deviation(&self.deviations, reference, point)?;
        let mean = self.means[reference] - self.means[point];
        Some((mean, self.reference_critical * deviation))
    }

    /// Whether a configuration costs significantly less than the reference; false without a reference.
    pub(super) fn is_better_than_reference(&self, point: usize) -> bool {
        self.reference
            .is_some_and(|reference| self.is_worse(reference, point, self.reference_critical))
    }

    /// Whether configuration `a` costs significantly more than `b`, if these two alone are compared.
    pub(super) fn is_worse_alone(&self, a: usize, b: usize) -> bool {
        self.is_worse(a, b, self.critical_value(&[a], &[b]))
    }

    /// The configurations among `allowed` that may be the best of them. With 95 % probability, all that are truly best
    /// are included. Configurations that are clearly worse are removed first, so that fewer remain to be compared.
    pub(super) fn may_be_best(&self, allowed: &[usize]) -> Vec<usize> {
        let is_allowed = |rival: &usize| allowed.contains(rival);
        let rivals: Vec<usize> = self.rivals.iter().copied().filter(is_allowed).collect();
        let mut best = allowed.to_vec();
        let remove_worse = |best: &mut Vec<usize>, critical: f64| {
            best.retain(|point| {
                !rivals
                    .iter()
                    .any(|rival| self.is_worse(*point, *rival, critical))
            });
        };
        remove_worse(&mut best, OBVIOUS);
        loop {
            let before = best.len();
            let critical = self.critical_value(&best, &rivals);
            remove_worse(&mut best, critical);
            if best.len() == before {
                break;
            }
        }
        if best
            .iter()
            .any(|point| self.is_better_than_reference(*point))
        {
            best.retain(|point| Some(*point) != self.reference);
        }
        best
    }

    /// By how much the mean cost of a configuration exceeds the least mean cost of `others`, as a share.
    pub(super) fn mean_loss(&self, point: usize, others: &[usize]) -> f64 {
        let least = others.iter().map(|other| self.means[*other]);
        let least = least.fold(self.means[point], f64::min);
        libm::expm1(self.means[point] - least)
    }

    /// The share of the draws in which none of `others` costs less than `point` by more than this share.
    pub(super) fn share_none_better(&self, point: usize, others: &[usize], gain: f64) -> f64 {
        let draws = self.values.chunks_exact(self.points);
        let count = draws.len() as f64;
        let least_gain = -libm::log1p(-gain);
        let none_better = draws.filter(|draw| {
            let mut others = others.iter();
            others.all(|other| draw[point] - draw[*other] <= least_gain)
        });
        none_better.count() as f64 / count
    }

    /// The draws of the difference of the log costs of two configurations, in ascending order.
    pub(super) fn sorted_differences(&self, a: usize, b: usize) -> Vec<f64> {
        let draws = self.values.chunks_exact(self.points);
        let mut differences: Vec<f64> = draws.map(|draw| draw[a] - draw[b]).collect();
        differences.sort_by(f64::total_cmp);
        differences
    }

    /// The expected loss if `point` is used instead of the truly best configuration of `allowed`, as a share.
    pub(super) fn expected_loss(&self, point: usize, allowed: &[usize]) -> f64 {
        let draws = self.values.chunks_exact(self.points);
        let count = draws.len() as f64;
        let losses = draws.map(|draw| {
            let costs = allowed.iter().map(|other| draw[*other]);
            let least = costs.fold(draw[point], f64::min);
            libm::expm1(draw[point] - least)
        });
        losses.sum::<f64>() / count
    }
}

/// The mean log cost of each configuration over the draws.
fn means(values: &[f64], points: usize) -> Vec<f64> {
    let draws = values.chunks_exact(points);
    let count = draws.len() as f64;
    let mut means = vec![0.0; points];
    for draw in draws {
        for (mean, value) in means.iter_mut().zip(draw) {
            *mean += value / count;
        }
    }
    means
}

/// The standard deviation of the difference between every configuration and every rival.
fn pair_deviations(values: &[f64], means: &[f64], rivals: &[usize]) -> Vec<f64> {
    let draws = values.chunks_exact(means.len());
    let count = draws.len();
    let mut squares = vec![0.0; means.len() * rivals.len()];
    for draw in draws {
        let of_rivals: Vec<f64> = rivals
            .iter()
            .map(|rival| draw[*rival] - means[*rival])
            .collect();
        for (point, row) in squares.chunks_exact_mut(rivals.len()).enumerate() {
            let own = draw[point] - means[point];
            for (square, rival) in row.iter_mut().zip(&of_rivals) {
                *square += (own - rival) * (own - rival);
            }
        }
    }
    let freedom = count.saturating_sub(1).max(1) as f64;
    let deviation = |square: f64| libm::sqrt(square / freedom).max(ROUNDING);
    squares.into_iter().map(deviation).collect()
}
