//! When to look at a power sensor: just before and just after it moves.

use sweetspot_device::{Moment, SensorKind};
use sweetspot_quantity::{Seconds, Watts};

use crate::math::{Lattice, PolledPower, Span, update_period};

/// Between two looks while the beat is learnt.
const LEARNING: Seconds = Seconds::new(0.002);
const LEARN_FOR: Seconds = Seconds::new(0.6);
/// On either side of an expected move.
const ASIDE: Seconds = Seconds::new(0.003);
/// A value that stays the same for so many periods is kept again: it is as new as any other. In step the look
/// after a beat comes a period after the last; otherwise a move may still come.
const REPEAT_IN_STEP: f64 = 0.95;
const REPEAT: f64 = 1.1;
const REMEMBERED: usize = 32;
/// Looks in a row that found no move where one was expected.
const MOST_MISSED: u32 = 12;

#[derive(Debug)]
enum Rhythm {
    Fixed(Seconds),
    Learning { until: Moment },
    InStep(Lattice),
}

#[derive(Debug)]
pub(crate) struct PollPlan {
    sensor: SensorKind,
    period: Seconds,
    rhythm: Rhythm,
    due: Moment,
    moves: Vec<Span>,
    last: Option<(Moment, Watts)>,
    kept: Option<Moment>,
    missed: u32,
}

impl PollPlan {
    /// Every so often, whatever the sensor does.
    pub fn fixed(sensor: SensorKind, every: Seconds, period: Seconds, now: Moment) -> Self {
        Self::new(sensor, period, Rhythm::Fixed(every), now)
    }

    /// In step with the sensor.
    pub fn in_step(sensor: SensorKind, period: Seconds, now: Moment) -> Self {
        let until = now + LEARN_FOR;
        Self::new(sensor, period, Rhythm::Learning { until }, now)
    }

    fn new(sensor: SensorKind, period: Seconds, rhythm: Rhythm, now: Moment) -> Self {
        Self {
            sensor,
            period,
            rhythm,
            due: now,
            moves: Vec::new(),
            last: None,
            kept: None,
            missed: 0,
        }
    }

    pub fn sensor(&self) -> SensorKind {
        self.sensor
    }

    pub fn due(&self) -> Moment {
        self.due
    }

    pub fn failed(&mut self, again: Moment) {
        self.due = again;
    }

    /// What is to be kept of a look.
    pub fn read(&mut self, at: Moment, power: Watts) -> Option<PolledPower> {
        let before = self.last.replace((at, power));
        let has_moved = before.is_some_and(|(_, shown)| shown != power);
        let since = before.map_or(at, |(moment, _)| moment);
        if has_moved {
            if self.moves.len() == REMEMBERED {
                self.moves.remove(0);
            }
            self.moves.push(Span::new(since, at));
        }
        self.follow(at, has_moved);
        let repeat = match self.rhythm {
            Rhythm::InStep(_) => REPEAT_IN_STEP,
            _ => REPEAT,
        };
        let is_due = self
            .kept
            .is_none_or(|kept| at - kept >= self.period * repeat);
        if !(has_moved || is_due) {
            return None;
        }
        self.kept = Some(at);
        let appeared = Span::new(since, at);
        Some(PolledPower { appeared, power })
    }

    fn follow(&mut self, at: Moment, has_moved: bool) {
        match &self.rhythm {
            Rhythm::Fixed(every) => self.due = at + *every,
            Rhythm::Learning { until } if at < *until => self.due = at + LEARNING,
            Rhythm::Learning { .. } => {
                self.period = update_period(&self.moves).unwrap_or(self.period);
                match Lattice::fit(&self.moves, self.period) {
                    Some(lattice) => self.step(lattice, at),
                    // It does not move, or not in a beat: look four times in a period.
                    None => self.rhythm = Rhythm::Fixed(self.period / 4.0),
                }
            }
            Rhythm::InStep(lattice) => {
                let lattice = Lattice::fit(&self.moves, lattice.period()).unwrap_or(*lattice);
                self.missed = if has_moved { 0 } else { self.missed + 1 };
                if self.missed > MOST_MISSED {
                    self.missed = 0;
                    self.rhythm = Rhythm::Learning {
                        until: at + LEARN_FOR,
                    };
                    self.due = at + LEARNING;
                } else {
                    self.step(lattice, at);
                }
            }
        }
    }

    /// The next look: before the next move or after it, whichever is next.
    fn step(&mut self, lattice: Lattice, at: Moment) {
        let aside = ASIDE.min(lattice.period() / 5.0);
        let next = lattice.next(at + -aside);
        self.due = [next + -aside, next + aside]
            .into_iter()
            .find(|due| *due > at)
            .unwrap_or_else(|| lattice.next(at) + aside);
        self.rhythm = Rhythm::InStep(lattice);
    }
}
