//! The meter's integration of power to energy.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Seconds};

use crate::NodeEnergy;

/// The state of the integration.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Reset,
    Running { since: Moment },
    Stopped,
    TimeUp,
}

/// The integration of the meter, which can be stopped and continued.
#[derive(Clone, Debug)]
pub(super) struct Integration {
    state: State,
    /// Whether the integration starts again whenever its timer ends.
    pub is_continuous: bool,
    /// The time after which the integration ends; zero if it runs until it is stopped.
    pub timer: Seconds,
    /// The energy and time before the last start.
    before: (Joules, Seconds),
}

impl Integration {
    /// Creates an integration that has not begun.
    pub fn new() -> Self {
        Self {
            state: State::Reset,
            is_continuous: false,
            timer: Seconds::ZERO,
            before: (Joules::ZERO, Seconds::ZERO),
        }
    }

    /// Whether the integration runs.
    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// The name of the state.
    pub fn state(&self) -> &'static str {
        match self.state {
            State::Reset => "RESET",
            State::Running { .. } => "START",
            State::Stopped => "STOP",
            State::TimeUp => "TIMEUP",
        }
    }

    /// Starts or continues; `false` if the integration runs already or its time is up.
    pub fn start(&mut self, now: Moment) -> bool {
        let can_start = matches!(self.state, State::Reset | State::Stopped);
        if can_start {
            self.state = State::Running { since: now };
        }
        can_start
    }

    /// Stops; `false` if the integration does not run.
    pub fn stop(&mut self, now: Moment, node: &dyn NodeEnergy) -> bool {
        let State::Running { since } = self.state else {
            return false;
        };
        self.before.0 += node.energy_until(now) - node.energy_until(since);
        self.before.1 += now - since;
        self.state = State::Stopped;
        true
    }

    /// Resets energy and time; `false` if the integration runs.
    pub fn reset(&mut self) -> bool {
        if self.is_running() {
            return false;
        }
        (self.state, self.before) = (State::Reset, (Joules::ZERO, Seconds::ZERO));
        true
    }

    /// Ends the integration if its timer has ended, or starts it again.
    pub fn advance(&mut self, now: Moment, node: &dyn NodeEnergy) {
        while let State::Running { since } = self.state {
            let end = since + (self.timer - self.before.1);
            if self.timer <= Seconds::ZERO || now < end {
                return;
            }
            if self.is_continuous {
                self.before = (Joules::ZERO, Seconds::ZERO);
                self.state = State::Running { since: end };
            } else {
                self.stop(end, node);
                self.state = State::TimeUp;
            }
        }
    }

    /// The energy and the time of the integration up to a moment; `None` before it has begun.
    pub fn total(&self, until: Moment, node: &dyn NodeEnergy) -> Option<(Joules, Seconds)> {
        match self.state {
            State::Reset => None,
            State::Running { since } => {
                let until = until.max(since);
                let energy = node.energy_until(until) - node.energy_until(since);
                Some((self.before.0 + energy, self.before.1 + (until - since)))
            }
            State::Stopped | State::TimeUp => Some(self.before),
        }
    }
}
