//! The results of a replay.

use sweetspot_decide::search::{StopReason, StrategyName};

/// The results of one strategy on all curves.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The strategy that was replayed.
    pub strategy: StrategyName,
    /// The result on each curve, in the order of the curves.
    pub curves: Vec<ReplayedCurve>,
}

/// The result of one strategy on one curve.
#[derive(Clone, Debug)]
pub struct ReplayedCurve {
    /// The names and values of the columns that identify the curve.
    pub group: Vec<(String, String)>,
    /// The number of recorded points of the curve.
    pub points: usize,
    /// The number of evaluations, including the reference.
    pub evaluations: usize,
    /// Why the search stopped.
    pub stop_reason: StopReason,
    /// The chosen setting; `None` if no evaluated point meets the limits.
    pub choice: Option<Vec<(String, f64)>>,
    /// The best recorded setting; `None` if no point meets the limits.
    pub optimum: Option<Vec<(String, f64)>>,
    /// Whether the objective is the same at all points of the curve.
    pub all_equal: bool,
    /// How much worse the choice is than the optimum, as a share of the optimum's value; `None` without an optimum.
    pub regret: Option<f64>,
    /// The bound of the regret that the strategy states; nothing if it states none.
    pub regret_bound: Option<f64>,
    /// The choice's gain over the reference as a share of the optimum's gain; `None` if the optimum gains nothing.
    pub gain_share: Option<f64>,
    /// The regret of the choice after 1, 2, 3... evaluations, when the strategy continues after it would have stopped.
    pub regrets: Vec<f64>,
    /// The bound of the regret that the strategy states after 1, 2, 3... evaluations, if it does not stop early.
    pub regret_bounds: Vec<Option<f64>>,
}

impl Replay {
    /// The median over the curves of the number of evaluations.
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

    /// The largest number of evaluations on any curve.
    pub fn evaluations_max(&self) -> usize {
        let all = self.curves.iter().map(|curve| curve.evaluations);
        all.max().unwrap_or(0)
    }

    /// The number of curves with an optimum, that is, with at least one point that meets the limits.
    pub fn curves_with_optimum(&self) -> usize {
        let judged = |curve: &&ReplayedCurve| curve.optimum.is_some();
        self.curves.iter().filter(judged).count()
    }

    /// The share of the curves with an optimum on which the regret is at most `regret`.
    pub fn share_within(&self, regret: f64) -> f64 {
        let good = |curve: &&ReplayedCurve| curve.regret.is_some_and(|own| own <= regret);
        self.curves.iter().filter(good).count() as f64 / self.curves_with_optimum().max(1) as f64
    }

    /// The mean regret over the curves that have an optimum; `None` if none has.
    pub fn regret_mean(&self) -> Option<f64> {
        mean(self.curves.iter().filter_map(|curve| curve.regret))
    }

    /// The mean of `gain_share` over the curves for which it is known.
    pub fn gain_share_mean(&self) -> Option<f64> {
        mean(self.curves.iter().filter_map(|curve| curve.gain_share))
    }

    /// The mean regret after 1, 2, 3... evaluations, when the strategy continues after it would have stopped.
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

    /// The share of the curves with an optimum on which the regret is at most `regret` after 1, 2, 3... evaluations, when
    /// the strategy continues after it would have stopped.
    pub fn share_within_by_evaluations(&self, regret: f64) -> Vec<f64> {
        let longest = self.curves.iter().map(|curve| curve.regrets.len()).max();
        let after = |number: usize| {
            let good = self.curves.iter().filter(|curve| {
                let own = curve.regrets.get(number).or(curve.regrets.last());
                own.is_some_and(|own| *own <= regret)
            });
            good.count() as f64 / self.curves_with_optimum().max(1) as f64
        };
        (0..longest.unwrap_or(0)).map(after).collect()
    }

    /// The share of the stated bounds of the regret that hold; `None` if the strategy states none.
    pub fn bounds_held(&self) -> Option<f64> {
        share_held(
            self.curves
                .iter()
                .filter_map(|curve| Some((curve.regret?, curve.regret_bound?))),
        )
    }

    /// The share of the bounds that hold of those stated after 1, 2, 3... evaluations, when the strategy continues after
    /// it would have stopped; `None` where it states none.
    pub fn bounds_held_by_evaluations(&self) -> Vec<Option<f64>> {
        let longest = self.curves.iter().map(|curve| curve.regrets.len()).max();
        let after = |number: usize| {
            let stated = self.curves.iter().filter_map(|curve| {
                let last = curve.regrets.len().checked_sub(1)?;
                let number = number.min(last);
                let bound = curve.regret_bounds.get(number).copied().flatten()?;
                Some((curve.regrets[number], bound))
            });
            share_held(stated)
        };
        (0..longest.unwrap_or(0)).map(after).collect()
    }

    /// The median of the stated bounds of the regret; `None` if the strategy states none.
    pub fn bound_median(&self) -> Option<f64> {
        let bounds = self.curves.iter().filter_map(|curve| curve.regret_bound);
        let mut bounds: Vec<f64> = bounds.collect();
        bounds.sort_by(f64::total_cmp);
        let middle = bounds.len() / 2;
        let upper = *bounds.get(middle)?;
        Some(match bounds.len() % 2 {
            1 => upper,
            _ => 0.5 * (bounds[middle - 1] + upper),
        })
    }
}

/// The share of pairs of a regret and a bound in which the regret is at most the bound, apart from rounding; `None` if
/// there are no pairs.
fn share_held(pairs: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    mean(pairs.map(|(regret, bound)| f64::from(u8::from(regret <= bound + 1e-9))))
}

/// The mean of some values; `None` if there are none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
