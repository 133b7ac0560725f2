//! The algorithms of the BatchSizer paper (batch_sizer_2021), with their faults, for comparison: over batch sizes,
//! or over clocks at one batch size. `hold` uses them only if the user asks for them with `--mode`.
//!
//! Indices count from 1, as in Algorithm 1 of the paper.

use sweetspot_quantity::Watts;

use super::config::HoldMode;

/// The variant of the BatchSizer algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PaperAlgorithm {
    /// Algorithm 1 as printed, which never clears the highest power.
    AsPrinted {
        /// The highest power of all readings since the start, in watts.
        highest: f64,
    },
    /// Algorithm 1 with readings that are cleared after each decision.
    Windowed,
    /// The algorithm as the text of section 4.2 describes it.
    Prose,
    /// One step up at a time, and one step down from a setting above the cap.
    StepUp {
        /// The lowest index that exceeded the cap; absent if none did.
        ceiling: Option<usize>,
    },
}

/// A search over an ordered list of settings by an algorithm of the BatchSizer paper.
#[derive(Clone, Debug)]
pub struct PaperSearch {
    algorithm: PaperAlgorithm,
    alpha: f64,
    /// The lower bound of the search, as an index from 1.
    lower: usize,
    /// The upper bound of the search, as an index from 1.
    upper: usize,
    /// The largest index from 1 whose batch fits into memory.
    largest: usize,
    /// The index from 1 of the present setting.
    current: usize,
}

/// What the paper's algorithm decides after it has profiled a few batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperDecision {
    /// The search continues at this index, counted from 0.
    Use(usize),
    /// Even the first setting exceeds the cap.
    Infeasible,
}

impl PaperSearch {
    /// Creates a search over this many settings, which starts at the first one.
    pub fn new(mode: HoldMode, alpha: f64, settings: usize) -> Self {
        let algorithm = match mode {
            HoldMode::Paper => PaperAlgorithm::AsPrinted {
                highest: f64::NEG_INFINITY,
            },
            HoldMode::Text => PaperAlgorithm::Prose,
            HoldMode::StepUp => PaperAlgorithm::StepUp { ceiling: None },
            _ => PaperAlgorithm::Windowed,
        };
        Self {
            algorithm,
            alpha,
            lower: 1,
            upper: settings,
            largest: settings,
            current: 1,
        }
    }

    /// Resets the bounds of the search after a change of the cap; the algorithm as printed resets nothing.
    pub fn restart(&mut self) {
        match &mut self.algorithm {
            PaperAlgorithm::AsPrinted { .. } => return,
            PaperAlgorithm::StepUp { ceiling } => *ceiling = None,
            PaperAlgorithm::Windowed | PaperAlgorithm::Prose => {}
        }
        (self.lower, self.upper) = (1, self.largest);
    }

    /// Excludes all settings above this index, counted from 0, and returns the setting to use.
    pub fn exclude_above(&mut self, index: usize) -> usize {
        self.largest = (index + 1).min(self.largest);
        self.upper = self.upper.min(self.largest);
        self.lower = self.lower.min(self.upper);
        self.current = self.current.min(self.largest);
        self.current - 1
    }

    /// Decides by the highest power reading of the profiled batches.
    pub fn decide(&mut self, power: f64, cap: Watts) -> PaperDecision {
        let cap = cap.get();
        let before = self.current;
        let mut deciding_power = power;
        match &mut self.algorithm {
            PaperAlgorithm::AsPrinted { highest } => {
                *highest = highest.max(power);
                deciding_power = *highest;
                self.run_algorithm_1(deciding_power, cap);
            }
            PaperAlgorithm::Windowed => self.run_algorithm_1(power, cap),
            PaperAlgorithm::Prose => self.run_prose(power, cap),
            PaperAlgorithm::StepUp { ceiling } => {
                if power > cap {
                    *ceiling = Some(self.current);
                    self.current = self.current.saturating_sub(1).max(1);
                } else if self.current < self.largest && *ceiling != Some(self.current + 1) {
                    self.current += 1;
                }
            }
        }
        match before == 1 && self.current == 1 && deciding_power > cap {
            true => PaperDecision::Infeasible,
            false => PaperDecision::Use(self.current - 1),
        }
    }

    /// Runs lines 5 to 21 of Algorithm 1.
    fn run_algorithm_1(&mut self, power: f64, cap: f64) {
        if power < self.alpha * cap {
            self.lower = self.current;
            self.current = (self.lower + self.upper).div_ceil(2);
        }
        if power > cap {
            if self.current == self.lower {
                self.upper = self.current;
                self.lower = 1;
            } else {
                self.upper = self.current;
            }
            self.current = (self.lower + self.upper) / 2;
        }
    }

    /// Runs the algorithm of section 4.2: moves halfway to the smallest or to the largest setting.
    fn run_prose(&mut self, power: f64, cap: f64) {
        if power < self.alpha * cap {
            self.current = (self.current + self.largest).div_ceil(2);
        } else if power > cap {
            // The floor of (1 + current) / 2.
            self.current = self.current.div_ceil(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Watts = Watts::new(100.0);

    fn path(mode: HoldMode, powers: &[f64], steps: usize) -> Vec<usize> {
        let mut search = PaperSearch::new(mode, 0.8, powers.len());
        let mut at = 0;
        (0..steps)
            .map(|_| {
                if let PaperDecision::Use(next) = search.decide(powers[at], CAP) {
                    at = next;
                }
                at
            })
            .collect()
    }

    /// Faults of the printed algorithm: after one violation the batch size stays at 1 forever.
    #[test]
    fn the_printed_algorithm_locks_up_after_one_violation() {
        let powers = [50.0, 55.0, 60.0, 70.0, 120.0, 130.0, 140.0, 150.0, 160.0];
        let taken = path(HoldMode::Paper, &powers, 12);
        assert_eq!(taken[0], 4, "the middle of nine");
        assert_eq!(taken.last(), Some(&0));
    }

    /// Fault 4: one step from below alpha to above the cap.
    #[test]
    fn the_prose_cycles_where_one_step_crosses_the_margin() {
        let powers = [50.0, 60.0, 70.0, 120.0];
        let taken = path(HoldMode::Text, &powers, 20);
        assert!(taken[10..].contains(&3) && taken[10..].iter().any(|at| *at < 3));
    }

    #[test]
    fn the_windowed_algorithm_finds_a_setting_within_the_margin() {
        let powers = [50.0, 55.0, 60.0, 70.0, 75.0, 90.0, 140.0, 150.0, 160.0];
        assert_eq!(path(HoldMode::Windowed, &powers, 10).last(), Some(&5));
    }

    #[test]
    fn stepping_up_stays_below_a_setting_over_the_cap() {
        let powers = [50.0, 60.0, 99.0, 101.0, 120.0];
        assert_eq!(path(HoldMode::StepUp, &powers, 8), [1, 2, 3, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_violation_at_the_first_setting_is_infeasible() {
        let mut search = PaperSearch::new(HoldMode::Windowed, 0.8, 9);
        assert_eq!(search.decide(120.0, CAP), PaperDecision::Infeasible);
    }
}
