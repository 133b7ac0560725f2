//! Energy per phase, for phases shorter than the sensors can see.
//!
//! Each reading is a mixture of the phases that were under way shortly before it; many readings with
//! different mixtures tell the phases' powers. The mixture depends on the sensor's response, which is fitted
//! along with the powers. Powers are not negative, and with the rest they add up to the window's energy.

mod design;
mod result;
mod solve;
mod spans;

use sweetspot_quantity::{Joules, Seconds, Watts};
use sweetspot_stats::Seed;

use self::design::{Lag, Row, averaged, between_knots, looked_at, sampled};
pub use self::result::{Attribution, AttributionError, PhaseEnergy};
use self::solve::{Sums, blocks};
pub use self::spans::{PhaseSpan, Timeline};
use super::energy::{Energy, Z95};
use super::readings::{Response, Span};
use super::window::Ledger;
use crate::method::MethodChoice;

/// Below this scaled eigenvalue noise decides.
const SINGULAR: f64 = 2e-3;
/// Readings per phase at least.
const READINGS: usize = 12;
/// A phase with less than this part of the window's time is given the mean power.
const NEGLIGIBLE: f64 = 2e-3;
const CONSTANTS: [f64; 9] = [
    0.002, 0.005, 0.008, 0.011, 0.014, 0.017, 0.020, 0.025, 0.032,
];
const DELAYS: [f64; 7] = [-0.004, -0.002, 0.0, 0.002, 0.004, 0.006, 0.009];
/// Around the best, those that may be right as well.
const AWAY: [f64; 9] = [
    -0.004, -0.002, -0.001, -0.0004, 0.0, 0.0004, 0.001, 0.002, 0.004,
];
/// Seconds of a block: longer than the residuals' memory.
const BLOCK: f64 = 1.0;
const FEWEST_BLOCKS: usize = 12;
const REPLICATES: u64 = 200;

/// A response that was tried, what the rows say under it, block by block, and the best powers.
struct Tried {
    lag: Option<Lag>,
    blocks: Vec<Sums>,
    powers: Vec<f64>,
    squares: f64,
    rows: usize,
}

/// Everything that does not depend on the response.
struct Problem<'a> {
    ledger: &'a Ledger<'a>,
    timeline: &'a Timeline,
    window: Span,
    /// Seconds of each phase and of the rest; of those with next to none, apart.
    times: Vec<f64>,
    negligible: Vec<f64>,
    energy: f64,
    block: f64,
    block_count: usize,
}

impl Ledger<'_> {
    /// The energy of each phase in a window.
    pub fn phases(
        &self,
        spans: &[PhaseSpan],
        window: &Span,
    ) -> Result<Attribution, AttributionError> {
        let total = self.energy(window, MethodChoice::Auto)?;
        let window = total.covered;
        let timeline = Timeline::new(spans, &window);
        if timeline.names.is_empty() {
            return Err(AttributionError::NoPhases);
        }
        let length = window.length().get();
        let mean = total.power().get();
        let mut times = timeline.times();
        let negligible: Vec<f64> = times
            .iter_mut()
            .map(|time| match *time < NEGLIGIBLE * length {
                true => std::mem::take(time),
                false => 0.0,
            })
            .collect();
        let block = BLOCK.min(length / FEWEST_BLOCKS as f64);
        let problem = Problem {
            ledger: self,
            timeline: &timeline.without(|phase| times[phase] == 0.0),
            window,
            energy: total.value.get() - mean * negligible.iter().sum::<f64>(),
            times,
            negligible,
            block,
            block_count: (length / block).ceil() as usize,
        };
        let (best, rivals) = problem.profile()?;
        problem.refuse(&best)?;
        let deviations = problem.deviations(&best, &rivals, total.deviation().get());
        Ok(problem.report(&best, &deviations, total))
    }
}

impl Problem<'_> {
    fn columns(&self) -> usize {
        self.times.len()
    }

    /// No phase draws less than the device was ever seen to draw.
    fn floor(&self) -> f64 {
        self.ledger.range.lowest()
    }

    /// The response under which the readings fit best, and others about it, each with how likely it is.
    fn profile(&self) -> Result<(Tried, Vec<(f64, Tried)>), AttributionError> {
        if self.ledger.trace().buffer.len() < READINGS {
            let tried = self.try_lag(None).ok_or(self.too_few())?;
            return Ok((tried, Vec::new()));
        }
        let coarse = CONSTANTS.iter().flat_map(|constant| {
            let lag = |delay: &f64| Lag {
                constant: *constant,
                delay: *delay,
            };
            DELAYS.iter().map(lag)
        });
        let tried = coarse.filter_map(|lag| self.try_lag(Some(lag)));
        let mut best = tried.min_by(cheaper).ok_or(self.too_few())?;
        let mut step = 0.0015;
        while step > 1e-5 {
            let nearer = self.neighbours(&best, &[-step, 0.0, step]);
            match nearer.into_iter().min_by(cheaper) {
                Some(better) if better.cost() < best.cost() => best = better,
                _ => step /= 2.0,
            }
        }
        // Blocks err independently of each other, rows do not.
        let degrees = (self.block_count as f64 - self.columns() as f64).max(4.0);
        let rivals = self.neighbours(&best, &AWAY).into_iter().map(|rival| {
            let worse = rival.cost() / best.cost().max(1e-12) - 1.0;
            ((-0.5 * degrees * worse.max(0.0)).exp(), rival)
        });
        let rivals = rivals.filter(|(likely, _)| *likely > 1e-3).collect();
        Ok((best, rivals))
    }

    fn neighbours(&self, centre: &Tried, away: &[f64]) -> Vec<Tried> {
        let Some(near) = centre.lag else {
            return Vec::new();
        };
        let mut tried = Vec::new();
        for constant in away {
            for delay in away {
                let lag = Lag {
                    constant: (near.constant + constant).max(0.001),
                    delay: near.delay + delay,
                };
                tried.extend(self.try_lag(Some(lag)));
            }
        }
        tried
    }

    fn try_lag(&self, lag: Option<Lag>) -> Option<Tried> {
        let trace = self.ledger.trace();
        let (timeline, window) = (self.timeline, &self.window);
        let knots = averaged(timeline, window, between_knots(&self.ledger.knots().knots));
        let mut groups: Vec<Vec<Row>> = match lag {
            Some(lag) => {
                let first = trace
                    .buffer
                    .partition_point(|sample| sample.at < window.begin);
                vec![sampled(timeline, window, &trace.buffer[first..], lag)]
            }
            None if !trace.instant.is_empty() => {
                let model = &trace.model.instant;
                vec![averaged(timeline, window, looked_at(&trace.instant, model))]
            }
            None => {
                let model = &trace.model.average;
                vec![averaged(timeline, window, looked_at(&trace.average, model))]
            }
        };
        groups.push(knots);
        let rows: usize = groups.iter().map(Vec::len).sum();
        if rows < READINGS * self.columns() {
            return None;
        }
        // Each kind of reading counts by how well it fits, found with all alike at first.
        let mut weights = vec![1.0; groups.len()];
        for round in 0..2 {
            let mut sums = vec![Sums::new(self.columns()); self.block_count];
            for (group, weight) in groups.iter().zip(&weights) {
                let parts = blocks(group, self.columns(), self.block, *weight, self.block_count);
                for (sum, part) in sums.iter_mut().zip(&parts) {
                    sum.add(part);
                }
            }
            let whole = total(&sums, self.columns());
            let powers = whole.solve(&self.times, self.energy, self.floor())?;
            if round == 1 {
                // Costs of different responses are compared on the samples alone.
                let of_samples = unweighted_cost(&groups[0], &powers);
                return Some(Tried {
                    lag,
                    blocks: sums,
                    squares: of_samples,
                    powers,
                    rows: groups[0].len().max(1),
                });
            }
            for (group, weight) in groups.iter().zip(weights.iter_mut()) {
                let mean = unweighted_cost(group, &powers) / group.len().max(1) as f64;
                *weight = 1.0 / mean.max(1e-6);
            }
        }
        None
    }

    fn too_few(&self) -> AttributionError {
        let trace = self.ledger.trace();
        let polled = trace.instant.len() + trace.average.len();
        AttributionError::TooFew {
            readings: trace.buffer.len().max(polled),
            phases: self.columns(),
        }
    }

    fn is_negligible(&self, column: usize) -> bool {
        self.times[column] == 0.0
    }

    fn name(&self, column: usize) -> String {
        let names = &self.timeline.names;
        names
            .get(column)
            .cloned()
            .unwrap_or_else(|| OTHER.to_owned())
    }

    fn refuse(&self, best: &Tried) -> Result<(), AttributionError> {
        let whole = total(&best.blocks, self.columns());
        let kept: Vec<usize> = (0..self.columns())
            .filter(|column| !self.is_negligible(*column))
            .collect();
        let Some((value, first, second)) = whole.only(&kept).weakest() else {
            return Ok(());
        };
        if value < SINGULAR {
            return Err(AttributionError::Inseparable {
                first: self.name(kept[first]),
                second: self.name(kept[second]),
                reason: format!(
                    "{value:.1e} of the information that independent phases would give"
                ),
            });
        }
        Ok(())
    }

    /// Deviations of the powers: blocks of readings drawn again and again, so that readings which err
    /// together are kept together, with responses that fit nearly as well among them.
    fn deviations(&self, best: &Tried, rivals: &[(f64, Tried)], of_total: f64) -> Vec<f64> {
        let seed = Seed::new(self.window.begin.nanos()).label("phases");
        let likely: f64 = rivals.iter().map(|(likely, _)| likely).sum();
        let choose = |mut at: f64| {
            for (share, rival) in rivals {
                at -= share / likely;
                if at <= 0.0 {
                    return rival;
                }
            }
            best
        };
        let mut squares = vec![0.0; self.columns()];
        let mut count = 0.0;
        for replicate in 0..REPLICATES {
            let draw = seed.number(replicate);
            let energy = self.energy + of_total * draw.label("energy").normal();
            let picks: Vec<usize> = (0..self.block_count as u64)
                .map(|slot| (draw.number(slot).uniform() * self.block_count as f64) as usize)
                .collect();
            // One of the responses that the readings allow.
            let tried = choose(draw.label("response").uniform());
            let mut sums = Sums::new(self.columns());
            for pick in picks {
                sums.add(&tried.blocks[pick]);
            }
            let both = sums
                .solve(&self.times, energy, self.floor())
                .zip(sums.solve_unbounded(&self.times, energy));
            let Some((powers, unbounded)) = both else {
                continue;
            };
            for (column, square) in squares.iter_mut().enumerate() {
                // A power that is held at the floor would seem well known: how far it would go tells better.
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

    fn report(&self, best: &Tried, deviations: &[f64], total: Energy) -> Attribution {
        let mean = total.power().get();
        let phase = |column: usize| {
            let time = self.times[column] + self.negligible[column];
            let (power, half) = if self.is_negligible(column) {
                (mean, mean)
            } else {
                (best.powers[column], Z95 * deviations[column])
            };
            let (low, high) = ((power - half).max(0.0), power + half);
            PhaseEnergy {
                name: self.name(column),
                time: Seconds::new(time),
                count: self.timeline.counts.get(column).copied().unwrap_or(0),
                energy: Joules::new(power * time),
                interval95: (Joules::new(low * time), Joules::new(high * time)),
                power: Watts::new(power),
                power_interval95: (Watts::new(low), Watts::new(high)),
            }
        };
        let response = best.lag.map(|lag| Response {
            time_constant: Seconds::new(lag.constant),
            delay: Seconds::new(lag.delay),
        });
        Attribution {
            phases: (0..self.columns() - 1).map(phase).collect(),
            other: phase(self.columns() - 1),
            total,
            response,
            readings: best.rows,
            residual: Watts::new(best.cost().sqrt()),
        }
    }
}

/// What belongs to no phase.
const OTHER: &str = "other";

impl Tried {
    /// Mean square of what the powers leave unexplained.
    fn cost(&self) -> f64 {
        self.squares / self.rows as f64
    }
}

fn cheaper(a: &Tried, b: &Tried) -> std::cmp::Ordering {
    a.cost().total_cmp(&b.cost())
}

fn total(blocks: &[Sums], columns: usize) -> Sums {
    blocks.iter().fold(Sums::new(columns), |mut sum, block| {
        sum.add(block);
        sum
    })
}

fn unweighted_cost(rows: &[Row], powers: &[f64]) -> f64 {
    rows.iter()
        .map(|row| {
            let expected: f64 = row.shares.iter().zip(powers).map(|(s, p)| s * p).sum();
            (row.watts - expected).powi(2)
        })
        .sum()
}
