//! The energy of the node that the stand-ins measure.

use std::collections::VecDeque;

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds, Watts};

/// The energy of a node at its wall socket. It is the truth that a stand-in meter shows with its own errors.
pub trait NodeEnergy {
    /// The energy that the node has drawn up to a moment, from an origin that stays the same.
    fn energy_until(&self, moment: Moment) -> Joules;

    /// The mean power between two moments.
    fn mean_power(&self, from: Moment, to: Moment) -> Watts {
        (self.energy_until(to) - self.energy_until(from)) / (to - from)
    }
}

/// A power that changes in steps, for tests on a simulated clock.
#[derive(Clone, Debug)]
pub struct PowerSteps {
    /// The start of each step, the energy up to it, and the power from then on.
    steps: Vec<(Moment, Joules, Watts)>,
}

impl PowerSteps {
    /// A power that is constant.
    pub fn constant(power: Watts) -> Self {
        Self {
            steps: vec![(Moment::default(), Joules::ZERO, power)],
        }
    }

    /// Changes the power from a moment on; moments before the last change count as that change.
    #[must_use]
    pub fn then(mut self, from: Moment, power: Watts) -> Self {
        let last = self.steps.last().map_or(Moment::default(), |step| step.0);
        let from = from.max(last);
        let energy = self.energy_until(from);
        self.steps.push((from, energy, power));
        self
    }
}

impl NodeEnergy for PowerSteps {
    fn energy_until(&self, moment: Moment) -> Joules {
        let after = self.steps.partition_point(|step| step.0 <= moment);
        let (from, energy, power) = self.steps[after.saturating_sub(1)];
        energy + power * (moment - from)
    }
}

/// The recorded energy of a node over the last minutes.
#[derive(Clone, Debug)]
pub(crate) struct EnergyHistory {
    /// Moments, and the energy up to each. There are at least two.
    points: VecDeque<(Moment, Joules)>,
}

impl EnergyHistory {
    /// The time that is remembered: more than the longest averaging time of a meter.
    const LENGTH: Seconds = Seconds::new(150.0);

    /// Starts a history at a moment. Before it, the node is taken to have drawn this power.
    pub fn new(start: Moment, power: Watts) -> Self {
        let second = Seconds::new(1.0);
        let before = start + -second;
        Self {
            points: VecDeque::from([(before, -(power * (start - before))), (start, Joules::ZERO)]),
        }
    }

    /// The last recorded moment, and the energy up to it.
    pub fn last(&self) -> (Moment, Joules) {
        let none = (Moment::default(), Joules::ZERO);
        self.points.back().copied().unwrap_or(none)
    }

    /// Adds the energy up to a later moment.
    pub fn push(&mut self, moment: Moment, energy: Joules) {
        self.points.push_back((moment, energy));
        while self.points.len() > 2 && moment - self.points[1].0 > Self::LENGTH {
            self.points.pop_front();
        }
    }
}

impl NodeEnergy for EnergyHistory {
    /// Interpolates between the recorded points; outside of them, the power is that of the nearest two.
    fn energy_until(&self, moment: Moment) -> Joules {
        let after = self.points.partition_point(|point| point.0 <= moment);
        let upper = after.clamp(1, self.points.len() - 1);
        let ((from, low), (to, high)) = (self.points[upper - 1], self.points[upper]);
        low + (high - low) * ((moment - from) / (to - from)).get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Moment {
        Moment::default() + Seconds::new(seconds)
    }

    #[test]
    fn steps_add_up() {
        let steps = PowerSteps::constant(Watts::new(100.0))
            .then(at(10.0), Watts::new(50.0))
            .then(at(12.0), Watts::ZERO);
        let energy = |seconds| steps.energy_until(at(seconds)).get();
        assert_eq!(
            [energy(0.0), energy(5.0), energy(10.0)],
            [0.0, 500.0, 1000.0]
        );
        assert_eq!([energy(11.0), energy(99.0)], [1050.0, 1100.0]);
        assert_eq!(steps.mean_power(at(9.0), at(11.0)).get(), 75.0);
    }

    #[test]
    fn a_history_interpolates_and_extends_at_both_ends() {
        let mut history = EnergyHistory::new(at(100.0), Watts::new(10.0));
        history.push(at(101.0), Joules::new(20.0));
        history.push(at(103.0), Joules::new(30.0));
        let energy = |seconds| history.energy_until(at(seconds)).get();
        let expected = [-500.0, -10.0, 0.0, 10.0, 20.0, 25.0, 30.0, 35.0];
        let found = [50.0, 99.0, 100.0, 100.5, 101.0, 102.0, 103.0, 104.0].map(energy);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }
}
