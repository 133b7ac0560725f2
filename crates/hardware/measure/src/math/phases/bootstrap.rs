//! The uncertainty of the phases' powers.

use sweetspot_stats::Seed;

use super::solve::NormalEquations;
use super::{Candidate, Problem};

/// The number of bootstrap samples from which the standard deviations are computed.
const BOOTSTRAP_REPLICATES: u64 = 200;

impl Problem<'_> {
    /// Computes the standard deviation of each phase's power by a block bootstrap, which includes the
    /// alternative responses that fit nearly as well. Blocks preserve the correlation between neighbouring
    /// errors.
    pub(super) fn deviations(
        &self,
        best: &Candidate,
        alternatives: &[(f64, Candidate)],
        total_deviation: f64,
    ) -> Vec<f64> {
        let seed = Seed::new(self.window.begin.nanos()).label("phases");
        let likelihood: f64 = alternatives.iter().map(|(likelihood, _)| likelihood).sum();
        let choose = |mut at: f64| {
            for (share, alternative) in alternatives {
                at -= share / likelihood;
                if at <= 0.0 {
                    return alternative;
                }
            }
            best
        };
        let mut squares = vec![0.0; self.columns()];
        let mut count = 0.0;
        for replicate in 0..BOOTSTRAP_REPLICATES {
            let draw = seed.number(replicate);
            let energy = self.energy + total_deviation * draw.label("energy").normal();
            let picks: Vec<usize> = (0..self.block_count as u64)
                .map(|slot| (draw.number(slot).uniform() * self.block_count as f64) as usize)
                .collect();
            // One of the responses that the readings allow, drawn by likelihood.
            let candidate = choose(draw.label("response").uniform());
            let mut sums = NormalEquations::new(self.columns());
            for pick in picks {
                sums.add(&candidate.blocks[pick]);
            }
            let both = sums
                .solve(&self.times, energy, self.floor())
                .zip(sums.solve_unbounded(&self.times, energy));
            let Some((powers, unbounded)) = both else {
                continue;
            };
            for (column, square) in squares.iter_mut().enumerate() {
                // A power at the floor would seem too well known; its unbounded value shows the uncertainty.
                let power = match best.powers[column] > self.floor() {
                    true => powers[column],
                    false => unbounded[column],
                };
                *square += (power - best.powers[column]).powi(2);
            }
            count += 1.0;
        }
        squares
            .into_iter()
            .map(|square| {
                if count > 0.0 {
                    (square / count).sqrt()
                } else {
                    f64::INFINITY
                }
            })
            .collect()
    }
}
