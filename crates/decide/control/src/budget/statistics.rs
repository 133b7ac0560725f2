//! How well a budget was kept.

use std::collections::VecDeque;

use sweetspot_quantity::{Joules, Ratio, Seconds, Watts};

/// The time over which the sum of powers is averaged before it is compared with the budget, in seconds.
const AVERAGING_TIME: f64 = 1.0;

/// The share of time in which the mean of a second was above the budget, and other sums.
#[derive(Clone, Debug, Default)]
pub struct BudgetStatistics {
    /// The parts of the last second: length and energy.
    parts: VecDeque<(f64, f64)>,
    covered: f64,
    recent_energy: f64,
    time: f64,
    judged: f64,
    above: f64,
    highest: Option<f64>,
    energy: f64,
    budget_energy: f64,
}

impl BudgetStatistics {
    /// Takes the mean sum of all powers over a time, and the budget at its end. Returns the mean of the last second, once
    /// a second has passed.
    pub fn record(&mut self, time: Seconds, sum: Watts, budget: Watts) -> Option<Watts> {
        let (time, sum, budget) = (time.get(), sum.get(), budget.get());
        if !(time > 0.0 && sum.is_finite()) {
            return None;
        }
        self.time += time;
        self.energy += sum * time;
        self.budget_energy += budget * time;
        self.parts.push_back((time, sum * time));
        self.covered += time;
        self.recent_energy += sum * time;
        while let Some((length, energy)) = self.parts.front().copied()
            && self.covered - length >= AVERAGING_TIME - 1e-6
        {
            self.parts.pop_front();
            self.covered -= length;
            self.recent_energy -= energy;
        }
        if self.covered < AVERAGING_TIME - 1e-6 {
            return None;
        }
        let mean = self.recent_energy / self.covered;
        self.judged += time;
        // Rounding must not count.
        if mean > budget * (1.0 + 1e-6) {
            self.above += time;
        }
        self.highest = Some(self.highest.map_or(mean, |highest: f64| highest.max(mean)));
        Some(Watts::new(mean))
    }

    /// Leaves out a time in which the sum of powers is unknown: no mean of a second contains it.
    pub fn skip(&mut self) {
        self.parts.clear();
        self.covered = 0.0;
        self.recent_energy = 0.0;
    }

    /// The share of time in which the mean of a second was above the budget; `None` before the first second.
    pub fn above_share(&self) -> Option<Ratio> {
        (self.judged > 0.0).then(|| Ratio::new(self.above / self.judged))
    }

    /// The highest mean of a second.
    pub fn highest(&self) -> Option<Watts> {
        self.highest.map(Watts::new)
    }

    /// The mean power of all GPUs together.
    pub fn mean_power(&self) -> Option<Watts> {
        (self.time > 0.0).then(|| Watts::new(self.energy / self.time))
    }

    /// The share of the budget that was used.
    pub fn used_share(&self) -> Option<Ratio> {
        (self.budget_energy > 0.0).then(|| Ratio::new(self.energy / self.budget_energy))
    }

    /// The energy of all GPUs.
    pub fn energy(&self) -> Joules {
        Joules::new(self.energy)
    }

    /// The time that was recorded.
    pub fn time(&self) -> Seconds {
        Seconds::new(self.time)
    }
}
