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
/// A value of the meter is a mean over some time, shown some time later. Which time is not known exactly, so it is
/// compared with the lowest mean power of the GPUs within the meter's delay while that is steady: the rest is then
/// rather too high than too low. While it changes, the rest is at least what the highest mean leaves of the value.
#[derive(Clone, Debug)]
pub struct RestOfNode {
    delay: Seconds,
    period: Seconds,
    /// The powers of the GPUs in the last period of the meter.
    newest: VecDeque<(Seconds, Watts)>,
    /// The mean powers of the GPUs over a period of the meter, each with its end.
    gpus: VecDeque<(Seconds, Watts)>,
    rest: VecDeque<(Seconds, Watts)>,
    /// What the first value of the meter showed, until the GPUs have been steady.
    first: Option<(Seconds, Watts)>,
}

impl RestOfNode {
    /// Nothing is known yet about a node whose meter shows the mean of a period, its end at most `delay` late.
    pub fn new(delay: Seconds, period: Seconds) -> Self {
        Self {
            delay,
            period,
            newest: VecDeque::new(),
            gpus: VecDeque::new(),
            rest: VecDeque::new(),
            first: None,
        }
    }

    /// Adds the power of all GPUs at a time.
    pub fn add_gpus(&mut self, now: Seconds, power: Watts) {
        self.newest.push_back((now, power));
        drop_before(&mut self.newest, now - self.period);
        let sum: Watts = self.newest.iter().map(|(_, power)| *power).sum();
        self.gpus.push_back((now, sum / self.newest.len() as f64));
        drop_before(&mut self.gpus, now - self.delay);
    }

    /// Adds a value of the meter that was read at a time.
    pub fn add_wall(&mut self, now: Seconds, wall: Watts) {
        let powers = || self.gpus.iter().map(|(_, power)| *power);
        let (Some(lowest), Some(highest)) =
            (powers().reduce(Watts::min), powers().reduce(Watts::max))
        else {
            return;
        };
        let is_steady = highest - lowest <= (highest * 0.1).max(Watts::new(10.0));
        if is_steady {
            self.first = None;
        } else if self.rest.is_empty() {
            self.first = Some((now, wall - lowest));
        }
        let gpus = if is_steady { lowest } else { highest };
        self.rest.push_back((now, (wall - gpus).max(Watts::ZERO)));
        let oldest = now - REMEMBERED;
        drop_before(&mut self.rest, oldest);
        self.first = self.first.filter(|(at, _)| *at >= oldest);
    }

    /// The power beside the GPUs, with the margin; `None` before the meter has shown any.
    pub fn rest(&self) -> Option<Watts> {
        let known = self.rest.iter().chain(&self.first);
        let highest = known.map(|(_, rest)| *rest).reduce(Watts::max)?;
        Some(highest + (highest * MARGIN_SHARE).max(MIN_MARGIN))
    }

    /// What the GPUs may draw together under a budget of the node; `None` before the meter has shown any power.
    pub fn left_for_gpus(&self, budget: Watts) -> Option<Watts> {
        Some((budget - self.rest()?).max(Watts::ZERO))
    }
}

/// Removes the values before a time, except for the last one.
fn drop_before(values: &mut VecDeque<(Seconds, Watts)>, oldest: Seconds) {
    while values.len() > 1 && values.front().is_some_and(|(at, _)| *at < oldest) {
        values.pop_front();
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
    fn run(budget: f64, efficiency: f64, pause: f64) -> (f64, f64) {
        let mut rest = RestOfNode::new(seconds(2.5), seconds(1.0));
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
            let pause = if tick % 5 == 0 { pause } else { 1.0 };
            gpus += (f64::min(demand, cap) * pause - gpus) * 0.4;
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
                let (worst, _) = run(budget, efficiency, 1.0);
                assert!(worst <= 1.01 * budget, "{budget} W: {worst}");
                assert!(worst >= 0.85 * budget, "{budget} W: {worst}");
            }
        }
    }

    /// Batches make the power of the GPUs rise and fall within each period of the meter.
    #[test]
    fn a_budget_is_kept_while_the_power_of_the_gpus_is_never_steady() {
        for pause in [0.0, 0.5] {
            let (worst, _) = run(800.0, 0.9, pause);
            assert!(worst <= 808.0, "{worst}");
        }
    }

    #[test]
    fn a_first_value_of_nothing_is_corrected_while_the_gpus_change() {
        let mut rest = RestOfNode::new(seconds(3.0), seconds(1.0));
        for tick in 0..100 {
            let now = seconds(0.1 * tick as f64);
            let gpus = Watts::new(if tick / 20 % 2 == 0 { 200.0 } else { 600.0 });
            rest.add_gpus(now, gpus);
            if tick % 10 == 0 {
                let wall = if tick == 0 { 0.0 } else { 900.0 };
                rest.add_wall(now, Watts::new(wall));
            }
        }
        assert!(rest.rest().unwrap() > Watts::new(300.0), "{rest:?}");
    }

    #[test]
    fn nothing_is_known_before_the_first_value() {
        let mut rest = RestOfNode::new(seconds(1.0), seconds(1.0));
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
