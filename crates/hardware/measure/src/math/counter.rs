//! An energy counter as what it is: a number that steps now and then, and may wrap or be set back.

use serde::{Deserialize, Serialize};
use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::period::Lattice;
use super::readings::{CounterReading, Gap, GapReason, Span};

/// What happened between two readings of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advance {
    /// It shows the same.
    Same,
    /// It has counted so much more.
    Grew(Joules),
    /// It has counted so much more and started again from zero at its modulus on the way.
    Wrapped(Joules),
    /// It was set back: how much was counted since the reading before is unknown.
    Reset,
}

impl Advance {
    /// A smaller value is a wrap where the modulus is known and what it implies could have been drawn in
    /// the time at `most` so much; otherwise it is a reset.
    pub fn between(before: Joules, after: Joules, modulus: Option<Joules>, most: Joules) -> Self {
        if after == before {
            return Self::Same;
        }
        if after > before {
            return Self::Grew(after - before);
        }
        match modulus {
            Some(modulus) if before <= modulus && modulus - before + after <= most => {
                Self::Wrapped(modulus - before + after)
            }
            _ => Self::Reset,
        }
    }
}

/// The energy at a move of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Knot {
    /// When the counter moved: as far as it is known.
    pub moved: Span,
    /// Counted since the first knot of its run, wraps undone.
    pub energy: Joules,
    /// Knots of one run can be compared; a reset begins a new one.
    pub run: usize,
}

impl Knot {
    /// The best single moment.
    pub fn at(&self) -> Moment {
        self.moved.middle()
    }
}

/// More than any board draws.
const MOST_WATTS: f64 = 5_000.0;
/// A counter that does not move for so many of its periods is stuck.
const STUCK_PERIODS: f64 = 2.0;

/// Between knots nearer than this a difference says little.
const LONG: Seconds = Seconds::new(0.25);

/// A counter's readings as knots, and what is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Knots {
    /// In order of time; several readings of one value make one knot.
    pub knots: Vec<Knot>,
    /// Resets and stretches in which it was stuck.
    pub gaps: Vec<Gap>,
    /// How well the time between knots is known, against itself, where they lie on a lattice.
    pub drift: Option<Ratio>,
}

/// Readings of one value, one after another.
#[derive(Clone, Copy)]
struct Level {
    first: Span,
    last: Span,
    value: Joules,
}

impl Knots {
    /// The counter moves every `period`; where its moves were seen closely enough, at moments that are known
    /// far better than by the reads around each.
    pub fn from_readings(
        readings: &[CounterReading],
        period: Seconds,
        modulus: Option<Joules>,
    ) -> Self {
        let levels = levels(readings);
        let mut result = Self::default();
        let (mut run, mut energy) = (0, Joules::ZERO);
        for (index, level) in levels.iter().enumerate() {
            if let Some(before) = index.checked_sub(1).map(|before| &levels[before]) {
                let silence = level.first.end - before.last.begin;
                let most = Joules::new(MOST_WATTS * (silence + period * 2.0).get());
                match Advance::between(before.value, level.value, modulus, most) {
                    Advance::Same => {}
                    Advance::Grew(by) | Advance::Wrapped(by) => energy += by,
                    Advance::Reset => {
                        (run, energy) = (run + 1, Joules::ZERO);
                        let lost = Span::new(before.last.end, level.first.end);
                        result.gaps.push(gap(lost, GapReason::Reset));
                    }
                }
            }
            let silent = Span::new(level.first.end, level.last.begin);
            if silent.end > silent.begin && silent.length() > period * STUCK_PERIODS {
                // When it got stuck is unknown, so this value belongs to no moment.
                result.gaps.push(gap(silent, GapReason::Stuck));
                continue;
            }
            let moved = level.moved(index, &levels, period);
            result.knots.push(Knot { moved, energy, run });
        }
        result.align(period);
        result
    }

    /// Against what power sensors add up to between two knots: a counter that wrapped unseen, more than once
    /// perhaps, is set right; one that was set back unseen begins a new run.
    pub fn compare(&mut self, modulus: Option<Joules>, drawn: impl Fn(&Span) -> Option<Joules>) {
        /// Far beyond what sensors differ by.
        const FAR: f64 = 0.3;
        let (mut more, mut runs) = (Joules::ZERO, 0);
        for index in 1..self.knots.len() {
            let (before, now) = (self.knots[index - 1], self.knots[index]);
            let (before_energy, before_run) = (before.energy - more, before.run - runs);
            self.knots[index].energy += more;
            self.knots[index].run += runs;
            let span = Span::new(before.at(), now.at());
            let counted = now.energy - before_energy;
            let expected = match drawn(&span) {
                Some(expected) if before_run == now.run && span.length() > LONG => expected,
                _ => continue,
            };
            if (counted - expected).abs() <= expected * FAR {
                continue;
            }
            let turns = modulus.map(|modulus| {
                let turns = ((expected - counted) / modulus).get().round().max(0.0);
                modulus * turns
            });
            match turns.filter(|by| (counted + *by - expected).abs() <= expected * FAR) {
                Some(by) => {
                    more += by;
                    self.knots[index].energy += by;
                }
                None => {
                    runs += 1;
                    self.knots[index].run += 1;
                    self.gaps.push(gap(span, GapReason::Reset));
                }
            }
        }
    }

    /// Moves every knot's time to the lattice on which the counter ticks, where there is one that agrees with
    /// what was seen.
    fn align(&mut self, period: Seconds) {
        let seen: Vec<Span> = self.knots.iter().map(|knot| knot.moved).collect();
        let Some(lattice) = Lattice::fit(&seen, period) else {
            return;
        };
        // A read across a beat that no other read tells from the one before has no place on it.
        let placed: Vec<Knot> = self
            .knots
            .iter()
            .filter_map(|knot| {
                let moved = lattice.tick_in(&knot.moved)?;
                Some(Knot { moved, ..*knot })
            })
            .collect();
        if 2 * placed.len() >= self.knots.len() {
            self.drift = Some(lattice.drift());
            self.knots = placed;
        }
    }

    /// The last knot at or before a moment and the first after it.
    pub fn around(&self, moment: Moment) -> (Option<&Knot>, Option<&Knot>) {
        let split = self.knots.partition_point(|knot| knot.at() <= moment);
        (
            split.checked_sub(1).and_then(|index| self.knots.get(index)),
            self.knots.get(split),
        )
    }
}

impl Level {
    /// It appeared after the level before was last seen and before this one was; it had not been followed
    /// by another when it was last seen, and had been when the next one was.
    fn moved(&self, index: usize, levels: &[Self], period: Seconds) -> Span {
        let mut begin = self.last.begin + -period;
        let mut end = self.first.end;
        if let Some(before) = index.checked_sub(1).map(|before| &levels[before]) {
            begin = begin.max(before.last.begin);
        }
        if let Some(after) = levels.get(index + 1) {
            end = end.min(after.first.end + -period);
        }
        // Readings that contradict the period are taken as they are.
        if begin > end {
            (begin, end) = (self.first.begin + -period, self.first.end);
        }
        Span::new(begin, end)
    }
}

fn levels(readings: &[CounterReading]) -> Vec<Level> {
    let mut levels: Vec<Level> = Vec::new();
    for reading in readings {
        match levels.last_mut() {
            Some(level) if level.value == reading.value => level.last = reading.call,
            _ => levels.push(Level {
                first: reading.call,
                last: reading.call,
                value: reading.value,
            }),
        }
    }
    levels
}

const fn gap(span: Span, reason: GapReason) -> Gap {
    Gap {
        sensor: sweetspot_device::SensorKind::EnergyCounter,
        span,
        reason,
    }
}
