//! What three evaluations can reach on measured curves: the reference and two other caps.
//!
//! Where a job draws less than the lowest cap, no cap has an effect, and what differs between the points is noise. No
//! search can know which of them is best there; what skill can do is to be right on all other curves. The figures: what two
//! caps at random give on the curves without effect, on average and how likely they give 90 % of all curves; and, found on
//! these very curves with hindsight, the two caps that turn out best, and the best rule that chooses the second cap by
//! whether the first one was better than the reference. The last two are no bounds: rules that look closer at the first
//! reading can fit the noise still better.
//!
//! Assumed is that the reference is one of the three, and that the answer is one of the points that were measured.

use anyhow::{Context, Result};
use sweetspot_benchmarks::OBJECTIVES;
use sweetspot_benchmarks::curves::{Curve, measured_curves};
use sweetspot_decide::Objective;

use super::objective_values;

/// Jobs that draw at most this many watts on average are far below the lowest caps of 100 W (V100) and 125 W (P100). The
/// next ones draw 92 W, where peaks reach the cap.
const IDLE_POWER: f64 = 76.0;
/// A choice counts as right within this share of the best point.
const TOLERANCE: f64 = 0.01;
/// The share of all curves that was asked for.
const GOAL: f64 = 0.9;

/// Prints, for each measured GPU and objective, the share of curves on which the best of three evaluations can be within
/// 1 % of the best point.
pub fn print() -> Result<()> {
    for gpu in ["v100", "p100"] {
        let Some(curves) = measured_curves(gpu)? else {
            println!("{gpu}: the measured curves are absent");
            continue;
        };
        let (flat, effective): (Vec<&Curve>, Vec<&Curve>) =
            curves.iter().partition(|curve| !has_effect(curve));
        println!(
            "{gpu}: {} curves, on {} of them the job draws less than the lowest cap",
            curves.len(),
            flat.len()
        );
        for objective in OBJECTIVES {
            let pairs = pairs(curves[0].caps.len() - 1);
            // For each pair the number of curves on which it is right, and for each curve the share of such pairs.
            let mut right = vec![0; pairs.len()];
            let mut chances = vec![0.0; flat.len()];
            for (right, pair) in right.iter_mut().zip(&pairs) {
                for (chance, curve) in chances.iter_mut().zip(&flat) {
                    let is_right = is_right(curve, objective, pair)?;
                    *right += usize::from(is_right);
                    *chance += f64::from(u8::from(is_right)) / pairs.len() as f64;
                }
            }
            let random = chances.iter().sum::<f64>();
            let wanted = (GOAL * curves.len() as f64).ceil() as usize;
            let luck = chance_of_at_least(wanted.saturating_sub(effective.len()), &chances);
            let hindsight = right.iter().copied().max().unwrap_or(0) as f64;
            let adaptive = best_adaptive(&flat, objective)? as f64;
            let share = |flat: f64| 100.0 * (effective.len() as f64 + flat) / curves.len() as f64;
            println!(
                "  {objective}: with all other curves right and two random caps {:.1} % ({:.0} % or more by luck in {:.1} %), with the two caps that turn out best {:.1} %, with the best rule for the second cap {:.1} %",
                share(random),
                100.0 * GOAL,
                100.0 * luck,
                share(hindsight),
                share(adaptive)
            );
        }
    }
    Ok(())
}

/// The probability that at least `wanted` of independent events happen that have these probabilities.
fn chance_of_at_least(wanted: usize, chances: &[f64]) -> f64 {
    // The probability of each number of events.
    let mut counts = vec![1.0];
    for chance in chances {
        counts.push(0.0);
        for number in (0..counts.len()).rev() {
            let one_less = number.checked_sub(1).map_or(0.0, |before| counts[before]);
            counts[number] = counts[number] * (1.0 - chance) + one_less * chance;
        }
    }
    counts.iter().skip(wanted).sum()
}

/// The number of curves on which the best rule is right that tries one cap first, and then one of two others: one if the
/// first was better than the reference, the other if not.
fn best_adaptive(curves: &[&Curve], objective: Objective) -> Result<usize> {
    let caps = curves.first().map_or(0, |curve| curve.caps.len() - 1);
    let mut best = 0;
    for first in 0..caps {
        // For each second cap, the curves on which it is right, after a better and after a worse first one.
        let mut right = vec![[0; 2]; caps];
        for curve in curves {
            let reference = curve.points.last().context("the curve has no points")?;
            let (values, _) = objective_values(&curve.points, reference, objective)?;
            let is_better = usize::from(values[first] < values[values.len() - 1]);
            for second in (0..caps).filter(|second| *second != first) {
                right[second][is_better] +=
                    usize::from(is_right(curve, objective, &[first, second])?);
            }
        }
        let most = |side: usize| right.iter().map(|own| own[side]).max().unwrap_or(0);
        best = best.max(most(0) + most(1));
    }
    Ok(best)
}

/// Whether a cap has an effect: the job draws more than [`IDLE_POWER`] at some cap.
fn has_effect(curve: &Curve) -> bool {
    let powers = curve.points.iter();
    let mut powers = powers.filter_map(|point| Some((point.energy? / point.time).get()));
    powers.any(|power| power > IDLE_POWER)
}

/// All pairs of two different points below `count`.
fn pairs(count: usize) -> Vec<[usize; 2]> {
    let all = (0..count).flat_map(|a| (a + 1..count).map(move |b| [a, b]));
    all.collect()
}

/// Whether the best of the reference and two other points is within [`TOLERANCE`] of the best point.
fn is_right(curve: &Curve, objective: Objective, pair: &[usize; 2]) -> Result<bool> {
    let reference = curve.points.last().context("the curve has no points")?;
    let (values, best) = objective_values(&curve.points, reference, objective)?;
    let own = pair.iter().copied().chain([values.len() - 1]);
    let own = own.filter_map(|point| values.get(point).copied());
    Ok(own.fold(f64::INFINITY, f64::min) <= best * (1.0 + TOLERANCE))
}
