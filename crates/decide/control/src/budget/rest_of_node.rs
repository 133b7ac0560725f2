//! The power of a machine beside its GPUs, from a meter at the wall that shows it late.

use std::collections::VecDeque;

use sweetspot_quantity::{Seconds, Watts};

/// The power beside the GPUs counts for this time after it was seen: it may rise to it again.
const REMEMBERED: Seconds = Seconds::new(30.0);
/// The margin for what the meter does not show yet, as a share of the power beside the GPUs, and its least value. The
/// losses of a supply grow with the power of the GPUs, and fans follow their heat.
const MARGIN_SHARE: f64 = 0.03;
const MIN_MARGIN: Watts = Watts::new(5.0);

/// Learns how much of a node's power is not that of its GPUs, and what is left for them under a budget of the node.
///
/// A value of the meter shows the power of some time ago. Which time is not known exactly, so it is compared with the
/// lowest power of the GPUs within the meter's delay: the rest is then rather too high than too low.
#[derive(Clone, Debug)]
pub struct RestOfNode {
    delay: Seconds,
    gpus: VecDeque<(Seconds, Watts)>,
    rest: VecDeque<(Seconds, Watts)>,
}

impl RestOfNode {
    /// Nothing is known yet about a node whose meter shows its power at most `delay` late.
    pub fn new(delay: Seconds) -> Self {
        Self {
            delay,
            gpus: VecDeque::new(),
            rest: VecDeque::new(),
        }
    }

    /// Adds the power of all GPUs at a time.
    pub fn add_gpus(&mut self, now: Seconds, power: Watts) {
        self.gpus.push_back((now, power));
        let oldest = now - self.delay - Seconds::new(1.0);
        while self.gpus.front().is_some_and(|(at, _)| *at < oldest) {
            self.gpus.pop_front();
        }
    }

    /// Adds a value of the meter that was read at a time.
    pub fn add_wall(&mut self, now: Seconds, wall: Watts) {
        let covered = self
            .gpus
            .iter()
            .filter(|(at, _)| *at >= now - self.delay && *at <= now);
        let Some(lowest) = covered.map(|(_, power)| *power).reduce(Watts::min) else {
            return;
        };
        // While the power of the GPUs changes, the meter cannot tell the rest: only a steady time counts, once any is known.
        let highest = self
            .gpus
            .iter()
            .map(|(_, power)| *power)
            .fold(lowest, Watts::max);
        let is_steady = highest - lowest <= (highest * 0.1).max(Watts::new(10.0));
        if is_steady || self.rest.is_empty() {
            let rest = (wall - lowest).max(Watts::ZERO);
            if self.rest.len() == 1
                && is_steady
                && self.rest.front().is_some_and(|(_, first)| *first > rest)
            {
                self.rest.clear();
            }
            self.rest.push_back((now, rest));
        }
        while self.rest.len() > 1
            && self
                .rest
                .front()
                .is_some_and(|(at, _)| now - *at > REMEMBERED)
        {
            self.rest.pop_front();
        }
    }

    /// The power beside the GPUs, with the margin; `None` before the meter has shown any.
    pub fn rest(&self) -> Option<Watts> {
        let highest = self.rest.iter().map(|(_, rest)| *rest).reduce(Watts::max)?;
        Some(highest + (highest * MARGIN_SHARE).max(MIN_MARGIN))
    }

    /// What the GPUs may draw together under a budget of the node; `None` before the meter has shown any power.
    pub fn left_for_gpus(&self, budget: Watts) -> Option<Watts> {
        Some((budget - self.rest()?).max(Watts::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(time: f64) -> Seconds {
        Seconds::new(time)
    }

    /// A node of GPUs and 200 W beside them, behind a meter that shows a mean of 1 s one second late; the GPUs obey the
    /// cap within 0.3 s.
    fn run(budget: f64, efficiency: f64) -> (f64, f64) {
        let mut rest = RestOfNode::new(seconds(2.5));
        let (mut cap, mut gpus) = (600.0f64, 100.0f64);
        let mut walls: Vec<f64> = Vec::new();
        let (mut worst, mut last) = (0.0f64, 0.0);
        for tick in 0..1200 {
            let now = tick as f64 * 0.1;
            let demand = if tick < 50 || (tick / 200) % 2 == 1 {
                120.0
            } else {
                900.0
            };
            gpus += (f64::min(demand, cap) - gpus) * 0.4;
            let wall = (gpus + 200.0) / efficiency;
            walls.push(wall);
            rest.add_gpus(seconds(now), Watts::new(gpus));
            if tick % 10 == 0 && tick > 20 {
                let shown: f64 = walls[tick - 20..tick - 10].iter().sum::<f64>() / 10.0;
                rest.add_wall(seconds(now), Watts::new(shown));
            }
            if let Some(left) = rest.left_for_gpus(Watts::new(budget)) {
                cap = left.get();
            }
            if tick > 300 {
                let mean = walls[tick - 9..=tick].iter().sum::<f64>() / 10.0;
                worst = worst.max(mean);
            }
            last = wall;
        }
        (worst, last)
    }

    #[test]
    fn a_budget_at_the_wall_is_kept_and_used() {
        for budget in [600.0, 800.0, 1000.0] {
            for efficiency in [0.9, 1.0] {
                let (worst, _) = run(budget, efficiency);
                assert!(worst <= 1.01 * budget, "{budget} W: {worst}");
                assert!(worst >= 0.85 * budget, "{budget} W: {worst}");
            }
        }
    }

    #[test]
    fn nothing_is_known_before_the_first_value() {
        let mut rest = RestOfNode::new(seconds(1.0));
        assert_eq!(rest.left_for_gpus(Watts::new(500.0)), None);
        rest.add_wall(seconds(1.0), Watts::new(300.0));
        assert_eq!(rest.rest(), None);
        rest.add_gpus(seconds(1.5), Watts::new(100.0));
        rest.add_wall(seconds(2.0), Watts::new(300.0));
        assert_eq!(
            rest.left_for_gpus(Watts::new(500.0)),
            Some(Watts::new(294.0))
        );
        assert_eq!(rest.left_for_gpus(Watts::new(100.0)), Some(Watts::ZERO));
    }
}
