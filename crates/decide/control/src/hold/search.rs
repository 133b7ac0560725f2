//! The paper's searches, with their faults: over batch sizes, or over clocks at one batch size.
//!
//! Indices here count from 1, as in Algorithm 1 of batch_sizer_2021.

use sweetspot_quantity::Watts;

use super::terms::Mode;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Algorithm 1; its readings cleared after each decision or never.
    Algorithm {
        /// Whether they are.
        cleared: bool,
    },
    /// The prose of section 4.2.
    Prose,
    /// One step up at a time, one down where that was too much.
    StepUp,
}

/// A search over a ladder.
#[derive(Clone, Debug)]
pub struct Search {
    kind: Kind,
    alpha: f64,
    least: usize,
    most: usize,
    largest: usize,
    current: usize,
    highest: f64,
    /// The step that was too much ([`Kind::StepUp`]).
    ceiling: Option<usize>,
}

/// What a search makes of its readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on with this index, from 0.
    At(usize),
    /// Even the first is too much.
    Infeasible,
}

impl Search {
    /// Over so many rungs, from the first.
    pub fn new(mode: Mode, alpha: f64, rungs: usize) -> Self {
        let kind = match mode {
            Mode::Paper => Kind::Algorithm { cleared: false },
            Mode::Text => Kind::Prose,
            Mode::StepUp => Kind::StepUp,
            _ => Kind::Algorithm { cleared: true },
        };
        Self {
            kind,
            alpha,
            least: 1,
            most: rungs,
            largest: rungs,
            current: 1,
            highest: f64::NEG_INFINITY,
            ceiling: None,
        }
    }

    /// Algorithm 1 as printed decides after every batch; the others after a window.
    pub const fn decides_at_once(&self) -> bool {
        matches!(self.kind, Kind::Algorithm { cleared: false })
    }

    /// With another cap what was too much may be no more; as printed nothing is forgotten.
    pub fn begin_again(&mut self) {
        if !self.decides_at_once() {
            (self.least, self.most) = (1, self.largest);
            self.ceiling = None;
        }
    }

    /// Nothing above this index, from 0, fits.
    pub fn bound(&mut self, index: usize) -> usize {
        self.largest = (index + 1).min(self.largest);
        self.most = self.most.min(self.largest);
        self.least = self.least.min(self.most);
        self.current = self.current.min(self.largest);
        self.current - 1
    }

    /// The highest power of a window, or of a batch, and the cap.
    pub fn decide(&mut self, power: f64, cap: Watts) -> Verdict {
        let cap = cap.get();
        let highest = match self.kind {
            Kind::Algorithm { cleared: false } => {
                self.highest = self.highest.max(power);
                self.highest
            }
            _ => power,
        };
        let was = self.current;
        match self.kind {
            Kind::Algorithm { .. } => self.algorithm(highest, cap),
            Kind::Prose => self.prose(highest, cap),
            Kind::StepUp => self.step_up(highest, cap),
        }
        match was == 1 && self.current == 1 && highest > cap {
            true => Verdict::Infeasible,
            false => Verdict::At(self.current - 1),
        }
    }

    /// Lines 5 to 21.
    fn algorithm(&mut self, highest: f64, cap: f64) {
        if highest < self.alpha * cap {
            self.least = self.current;
            self.current = (self.least + self.most).div_ceil(2);
        }
        if highest > cap {
            if self.current == self.least {
                self.most = self.current;
                self.least = 1;
            } else {
                self.most = self.current;
            }
            self.current = (self.least + self.most) / 2;
        }
    }

    /// To the middle of here and the smallest, or of here and the largest.
    fn prose(&mut self, highest: f64, cap: f64) {
        if highest < self.alpha * cap {
            self.current = (self.current + self.largest).div_ceil(2);
        } else if highest > cap {
            // The floor of (1 + current) / 2.
            self.current = self.current.div_ceil(2);
        }
    }

    fn step_up(&mut self, highest: f64, cap: f64) {
        if highest > cap {
            self.ceiling = Some(self.current);
            self.current = self.current.saturating_sub(1).max(1);
        } else if self.current < self.largest && self.ceiling != Some(self.current + 1) {
            self.current += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Watts = Watts::new(100.0);

    fn path(mode: Mode, powers: &[f64], steps: usize) -> Vec<usize> {
        let mut search = Search::new(mode, 0.8, powers.len());
        let mut at = 0;
        (0..steps)
            .map(|_| {
                if let Verdict::At(next) = search.decide(powers[at], CAP) {
                    at = next;
                }
                at
            })
            .collect()
    }

    /// Faults 1 and 3 of `facts/tuning.md`: one violation, and the batch falls to 1 for good.
    #[test]
    fn as_printed_it_locks_up_after_one_violation() {
        let powers = [50.0, 55.0, 60.0, 70.0, 120.0, 130.0, 140.0, 150.0, 160.0];
        let taken = path(Mode::Paper, &powers, 12);
        assert_eq!(taken[0], 4, "the middle of nine");
        assert_eq!(taken.last(), Some(&0));
    }

    /// Fault 4: one step from below alpha to above the cap.
    #[test]
    fn with_a_step_across_the_margin_the_prose_cycles() {
        let powers = [50.0, 60.0, 70.0, 120.0];
        let taken = path(Mode::Text, &powers, 20);
        assert!(taken[10..].contains(&3) && taken[10..].iter().any(|at| *at < 3));
    }

    #[test]
    fn in_windows_it_finds_what_lies_in_the_margin() {
        let powers = [50.0, 55.0, 60.0, 70.0, 75.0, 90.0, 140.0, 150.0, 160.0];
        assert_eq!(path(Mode::Windowed, &powers, 10).last(), Some(&5));
    }

    #[test]
    fn stepping_up_stays_below_what_was_too_much() {
        let powers = [50.0, 60.0, 99.0, 101.0, 120.0];
        assert_eq!(path(Mode::StepUp, &powers, 8), [1, 2, 3, 2, 2, 2, 2, 2]);
    }

    #[test]
    fn a_violation_at_the_first_is_infeasible() {
        let mut search = Search::new(Mode::Windowed, 0.8, 9);
        assert_eq!(search.decide(120.0, CAP), Verdict::Infeasible);
    }
}
