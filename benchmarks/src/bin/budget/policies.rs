//! What the budgeter is compared with: the offline optimum and fixed shares.

use sweetspot_virtual_time::budget::BudgetPolicy;

use crate::mix::{CapPoint, MixGpu};

/// What a GPU takes from the budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counting {
    /// Its cap, or its power where that is higher: a program that starts on an idle GPU then keeps the budget.
    Caps,
    /// Its power, whatever the cap is: only for a policy that knows when programs start.
    Powers,
}

impl Counting {
    /// The whole watts that a GPU takes.
    fn watts(self, point: &CapPoint) -> usize {
        match self {
            Self::Caps => point.cap.max(point.power).round() as usize,
            Self::Powers => point.power.round() as usize,
        }
    }
}

/// The caps with the highest sum of relative throughputs that a budget allows, by dynamic programming over all caps in
/// steps of 5 W; `None` if no caps keep the budget.
pub fn optimal_points(mix: &[MixGpu], budget: f64, counting: Counting) -> Option<Vec<CapPoint>> {
    let watts = budget.round() as usize;
    let mut best = vec![0.0_f64; watts + 1];
    let mut choices: Vec<Vec<usize>> = Vec::new();
    for gpu in mix {
        let mut next = vec![f64::NEG_INFINITY; watts + 1];
        let mut chosen = vec![0; watts + 1];
        for (number, point) in gpu.table.iter().enumerate() {
            let used = counting.watts(point);
            for left in used..=watts {
                let value = best[left - used] + point.share;
                if value > next[left] {
                    (next[left], chosen[left]) = (value, number);
                }
            }
        }
        best = next;
        choices.push(chosen);
    }
    if !best[watts].is_finite() {
        return None;
    }
    let mut left = watts;
    let mut points: Vec<CapPoint> = Vec::new();
    for (gpu, chosen) in mix.iter().zip(&choices).rev() {
        let point = gpu.table[chosen[left]];
        left -= counting.watts(&point);
        points.push(point);
    }
    points.reverse();
    Some(points)
}

/// The sum of relative throughputs of an optimum, as a mean over the GPUs with a program.
pub fn optimal_throughput(mix: &[MixGpu], points: &[CapPoint]) -> f64 {
    let programs = mix.iter().filter(|gpu| gpu.program.is_some()).count();
    let sum: f64 = points.iter().map(|point| point.share).sum();
    sum / programs.max(1) as f64
}

/// Fixed shares of a budget.
pub struct Shares {
    /// The caps in watts.
    pub caps: Vec<f64>,
    /// Whether the GPUs keep the budget with these caps.
    pub keeps_budget: bool,
}

impl Shares {
    /// The shares that each weight gives, clamped to what each GPU can take. What is clamped is lost, or is missing.
    pub fn clamped(mix: &[MixGpu], budget: f64, weights: &[f64]) -> Self {
        let total: f64 = weights.iter().sum();
        Self::at_level(mix, budget, weights, budget / total)
    }

    /// The highest shares in proportion to the weights whose caps and powers keep the budget: what one GPU cannot take is
    /// handed on to the others, and where GPUs draw more than their caps, all get less.
    pub fn handed_on(mix: &[MixGpu], budget: f64, weights: &[f64]) -> Self {
        let fits =
            |shares: &Self| shares.keeps_budget && shares.caps.iter().sum::<f64>() <= budget + 0.5;
        let (mut low, mut high) = (0.0, budget);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            match fits(&Self::at_level(mix, budget, weights, middle)) {
                true => low = middle,
                false => high = middle,
            }
        }
        Self::at_level(mix, budget, weights, low)
    }

    fn at_level(mix: &[MixGpu], budget: f64, weights: &[f64], level: f64) -> Self {
        let pairs = mix.iter().zip(weights);
        let caps = pairs.map(|(gpu, weight)| (level * weight).clamp(gpu.caps.0, gpu.caps.1));
        let caps: Vec<f64> = caps.collect();
        let powers = mix.iter().zip(&caps).map(|(gpu, cap)| gpu.power(*cap));
        let power: f64 = powers.sum();
        Self {
            keeps_budget: power <= budget,
            caps,
        }
    }

    /// The policy that sets these caps.
    pub fn policy(&self, budget: f64) -> BudgetPolicy {
        BudgetPolicy::Shares(self.caps.iter().map(|cap| cap / budget).collect())
    }
}
