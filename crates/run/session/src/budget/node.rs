//! A budget of the whole machine: the meter at the wall says what is left for the GPUs.

use sweetspot_control::budget::{BudgetStatistics, RestOfNode};
use sweetspot_control::{MAX_READING_GAP, ReadingGaps};
use sweetspot_quantity::{Seconds, Watts};

use super::result::NodeBudgetResult;
use crate::node::NodeMeters;

/// The meters of a machine, and the budget that is kept at them.
pub(super) struct NodeBudget {
    meters: NodeMeters,
    rest: RestOfNode,
    /// The budget of the whole machine.
    pub budget: Watts,
    /// The power at the wall; `None` while the meter shows nothing.
    pub wall: Option<Watts>,
    /// How late the meter may show a change.
    delay: Seconds,
    /// How well the budget was kept at the wall.
    statistics: BudgetStatistics,
    last: Seconds,
    /// The time without new values of the meter.
    gaps: ReadingGaps,
    /// The time in which the meter did not answer.
    failed: Seconds,
    last_read: Option<sweetspot_device::Moment>,
    is_failing: bool,
}

/// The least that is left for the GPUs: they then have their lowest caps.
const LEAST_SHARE: Watts = Watts::new(1.0);
/// A smaller change of what is left for the GPUs is not passed on.
const SMALLEST_CHANGE: Watts = Watts::new(2.0);

impl NodeBudget {
    pub fn new(mut meters: NodeMeters, budget: Watts) -> Self {
        let (delay, period) = meters.delay_and_period();
        let mut gaps = ReadingGaps::longer_than(MAX_READING_GAP + delay + period);
        gaps.start(Seconds::ZERO);
        Self {
            meters,
            rest: RestOfNode::new(delay, period),
            budget,
            wall: None,
            delay,
            statistics: BudgetStatistics::default(),
            last: Seconds::ZERO,
            gaps,
            failed: Seconds::ZERO,
            last_read: None,
            is_failing: false,
        }
    }

    /// What the GPUs may draw before anything is known about the rest: the power at the wall contains theirs, so this is
    /// rather too little.
    pub fn first_share(&mut self) -> Result<Watts, String> {
        let (_, wall) = self.meters.power()?;
        self.wall = Some(wall);
        Ok((self.budget - wall).max(LEAST_SHARE))
    }

    /// Takes the present power of the GPUs, if it is known, and of the meters. Returns a message if the meter has stopped or
    /// resumed.
    pub fn read(&mut self, now: Seconds, gpus: Option<Watts>) -> Option<String> {
        if let Some(gpus) = gpus {
            self.rest.add_gpus(now, gpus);
        }
        let passed = now - std::mem::replace(&mut self.last, now);
        let problem = match self.meters.power() {
            Ok((at, wall)) => {
                if self.last_read.replace(at) != Some(at) {
                    self.gaps.record(now, now);
                    self.rest.add_wall(now, wall);
                }
                self.wall = Some(wall);
                let is_silent = self.gaps.is_silent(now);
                is_silent
                    .then(|| format!("meter {}: no new value for a while", self.meters.names()))
            }
            Err(problem) => {
                self.failed += passed;
                Some(problem)
            }
        };
        let was_failing = std::mem::replace(&mut self.is_failing, problem.is_some());
        if problem.is_some() {
            self.wall = None;
        }
        match self.wall {
            // Until then the meter may show the time before the budget.
            Some(wall) if now > self.delay => {
                self.statistics.record(passed, wall, self.budget);
            }
            Some(_) => {}
            None => self.statistics.skip(),
        }
        match (problem, was_failing) {
            (Some(problem), false) => Some(format!(
                "{problem}; the GPUs keep the power that was left for them"
            )),
            (None, true) => Some(format!("meter {}: readings resumed", self.meters.names())),
            _ => None,
        }
    }

    /// What is left for the GPUs, if it differs from what they have.
    pub fn new_share(&self, present: Watts) -> Option<Watts> {
        let left = self.rest.left_for_gpus(self.budget)?.max(LEAST_SHARE);
        let change = left - present;
        // Less power is passed on at once.
        (change.get() < -0.5 || change > SMALLEST_CHANGE).then_some(left)
    }

    /// How the budget was kept at the wall.
    pub fn result(&self, time: Seconds) -> NodeBudgetResult {
        NodeBudgetResult {
            meter: self.meters.names(),
            above_share: self.statistics.above_share(),
            mean_power: self.statistics.mean_power(),
            highest_mean: self.statistics.highest(),
            used_share: self.statistics.used_share(),
            unread: self.gaps.unread_until(time).max(self.failed),
        }
    }
}
