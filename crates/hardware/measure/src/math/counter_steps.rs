//! Energy counters: numbers that step at intervals, and may wrap around or be reset.

use sweetspot_device::Moment;
use sweetspot_quantity::{Joules, Ratio, Seconds};

use super::readings::{CounterReading, Gap, GapReason, Span};
use super::update_schedule::UpdateSchedule;

/// The change between two readings of an energy counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterChange {
    /// The counter's value did not change.
    Same,
    /// The counter advanced by this energy.
    Grew(Joules),
    /// The counter advanced by this energy and wrapped around to zero at its modulus.
    Wrapped(Joules),
    /// The counter was reset, or advanced by more than the device can have drawn: the energy since the previous
    /// reading is unknown.
    Reset,
}

impl CounterChange {
    /// Classifies the change between two readings; `most` is the energy that the device can have drawn
    /// meanwhile. A lower second value is a wrap-around if the modulus is known and the implied energy is at
    /// most `most`; otherwise it is a reset.
    pub fn between(before: Joules, after: Joules, modulus: Option<Joules>, most: Joules) -> Self {
        if after == before {
            return Self::Same;
        }
        if after > before {
            return match after - before <= most {
                true => Self::Grew(after - before),
                false => Self::Reset,
            };
        }
        match modulus {
            Some(modulus) if before <= modulus && modulus - before + after <= most => {
                Self::Wrapped(modulus - before + after)
            }
            _ => Self::Reset,
        }
    }
}

/// A moment at which an energy counter was updated, and the energy that it had counted by then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterStep {
    /// The time span within which the counter was updated.
    pub span: Span,
    /// The energy counted since the first step after the last reset, corrected for wrap-arounds.
    pub energy: Joules,
    /// The number of counter resets before this step. Only energies with the same number can be compared.
    pub run: usize,
}

impl CounterStep {
    /// The best estimate of the step's time: the middle of its span.
    pub fn at(&self) -> Moment {
        self.span.middle()
    }
}

/// An upper bound on the power of any device, in watts.
const MAX_WATTS: f64 = 5_000.0;
/// The counter counts as stuck if it does not step for this many of its update periods.
const STUCK_PERIODS: f64 = 2.0;
/// A counter that updates often is not stuck before this time: a busy machine may delay an update.
const MIN_STUCK_TIME: Seconds = Seconds::new(0.02);

/// The shortest span over which the counter is compared with power sensors: a difference over a shorter one is
/// mostly noise.
const MIN_COMPARED_SPAN: Seconds = Seconds::new(0.25);

/// The steps of an energy counter, found from its readings, and the gaps without readings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterSteps {
    /// The steps in order of time; several readings of one value make one step.
    pub steps: Vec<CounterStep>,
    /// The time spans in which the counter was reset or stuck.
    pub gaps: Vec<Gap>,
    /// The relative standard deviation of the counter's update period; `None` if no regular schedule was
    /// found.
    pub period_deviation: Option<Ratio>,
}

/// Consecutive readings of a counter that showed the same value.
#[derive(Clone, Copy)]
struct Level {
    first: Span,
    last: Span,
    value: Joules,
}

impl CounterSteps {
    /// Finds the steps of a counter that updates every `period`. If reads enclose enough steps closely, a
    /// regular schedule is fitted, which locates each step far better than the reads around it.
    pub fn from_readings(
        readings: &[CounterReading],
        period: Seconds,
        modulus: Option<Joules>,
    ) -> Self {
        let mut levels = levels(readings);
        let mut result = Self {
            gaps: remove_wrong_values(&mut levels, period),
            ..Self::default()
        };
        let (mut run, mut energy) = (0, Joules::ZERO);
        for (index, level) in levels.iter().enumerate() {
            if let Some(before) = index.checked_sub(1).map(|before| &levels[before]) {
                let most = before.most_until(level, period);
                match CounterChange::between(before.value, level.value, modulus, most) {
                    CounterChange::Same => {}
                    CounterChange::Grew(by) | CounterChange::Wrapped(by) => energy += by,
                    CounterChange::Reset => {
                        (run, energy) = (run + 1, Joules::ZERO);
                        let lost = Span::new(before.last.end, level.first.end);
                        result.gaps.push(gap(lost, GapReason::Reset));
                    }
                }
            }
            let silent = Span::new(level.first.end, level.last.begin);
            if silent.end > silent.begin
                && silent.length() > MIN_STUCK_TIME.max(period * STUCK_PERIODS)
            {
                // The moment at which it got stuck is unknown, so this value belongs to no moment.
                result.gaps.push(gap(silent, GapReason::Stuck));
                continue;
            }
            let span = level.appearance(index, &levels, period);
            result.steps.push(CounterStep { span, energy, run });
        }
        result.fit_to_schedule(period);
        result
    }

    /// Compares the counter with the energy that power sensors measured between two steps; `drawn` computes
    /// that energy. A counter that wrapped around unnoticed, possibly more than once, is corrected; one that
    /// was reset unnoticed begins a new run.
    pub fn correct_by_power(
        &mut self,
        modulus: Option<Joules>,
        drawn: impl Fn(&Span) -> Option<Joules>,
    ) {
        /// The largest relative difference between counter and power sensors that is not an unnoticed
        /// wrap-around or reset.
        const MAX_DIFFERENCE: f64 = 0.3;
        let (mut more, mut runs) = (Joules::ZERO, 0);
        for index in 1..self.steps.len() {
            let (before, now) = (self.steps[index - 1], self.steps[index]);
            let (before_energy, before_run) = (before.energy - more, before.run - runs);
            self.steps[index].energy += more;
            self.steps[index].run += runs;
            let span = Span::new(before.at(), now.at());
            let counted = now.energy - before_energy;
            let expected = match drawn(&span) {
                Some(expected) if before_run == now.run && span.length() > MIN_COMPARED_SPAN => {
                    expected
                }
                _ => continue,
            };
            if (counted - expected).abs() <= expected * MAX_DIFFERENCE {
                continue;
            }
            let turns = modulus.map(|modulus| {
                let turns = ((expected - counted) / modulus).get().round().max(0.0);
                modulus * turns
            });
            match turns.filter(|by| (counted + *by - expected).abs() <= expected * MAX_DIFFERENCE) {
                Some(by) => {
                    more += by;
                    self.steps[index].energy += by;
                }
                None => {
                    runs += 1;
                    self.steps[index].run += 1;
                    self.gaps.push(gap(span, GapReason::Reset));
                }
            }
        }
    }

    /// Moves every step to the regular schedule on which the counter updates, if such a schedule fits the
    /// readings.
    fn fit_to_schedule(&mut self, period: Seconds) {
        let seen: Vec<Span> = self.steps.iter().map(|step| step.span).collect();
        let Some(schedule) = UpdateSchedule::fit(&seen, period) else {
            return;
        };
        // A read across an update that no other read separates from the previous one has no place on the
        // schedule.
        let placed: Vec<CounterStep> = self
            .steps
            .iter()
            .filter_map(|step| {
                let span = schedule.update_in(&step.span)?;
                Some(CounterStep { span, ..*step })
            })
            .collect();
        if 2 * placed.len() >= self.steps.len() {
            self.period_deviation = Some(schedule.period_deviation());
            self.steps = placed;
        }
    }

    /// The last step at or before a moment, and the first step after it.
    pub fn around(&self, moment: Moment) -> (Option<&CounterStep>, Option<&CounterStep>) {
        let split = self.steps.partition_point(|step| step.at() <= moment);
        (
            split.checked_sub(1).and_then(|index| self.steps.get(index)),
            self.steps.get(split),
        )
    }
}

impl Level {
    /// The most energy that a device can have drawn between the readings of this value and those of a later one.
    fn most_until(&self, later: &Self, period: Seconds) -> Joules {
        let silence = later.first.end - self.last.begin;
        Joules::new(MAX_WATTS * (silence + period * 2.0).get())
    }

    /// Whether this value is wrong: the counter went on from the value before it as if it had not been there. A
    /// counter that was reset meanwhile would have counted more energy since then than the device can have drawn.
    fn is_wrong_between(&self, before: &Self, after: &Self, period: Seconds) -> bool {
        let most = before.most_until(after, period);
        let goes_on = after.value >= before.value && after.value - before.value <= most;
        let is_too_high = self.value > after.value
            && (self.value - before.value > before.most_until(self, period) || before.value > most);
        let is_too_low = self.value < before.value
            && (after.value - self.value > self.most_until(after, period)
                || self.value > before.most_until(self, period));
        goes_on && (is_too_high || is_too_low)
    }

    /// The time span in which the counter changed to this value: after the last read of the previous value,
    /// before the first read of this value, and at least one update period before the first read of the next
    /// value.
    fn appearance(&self, index: usize, levels: &[Self], period: Seconds) -> Span {
        let mut begin = self.last.begin + -period;
        let mut end = self.first.end;
        if let Some(before) = index.checked_sub(1).map(|before| &levels[before]) {
            begin = begin.max(before.last.begin);
        }
        if let Some(after) = levels.get(index + 1) {
            end = end.min(after.first.end + -period);
        }
        // Readings that contradict the period are used without it.
        if begin > end {
            (begin, end) = (self.first.begin + -period, self.first.end);
        }
        Span::new(begin, end)
    }
}

/// Groups consecutive readings with the same value.
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

/// Removes the values that the counter cannot have had, given the values before and after them, and returns the
/// gaps that they leave.
fn remove_wrong_values(levels: &mut Vec<Level>, period: Seconds) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut right: Vec<Level> = Vec::with_capacity(levels.len());
    for (index, level) in levels.iter().enumerate() {
        match right.last_mut() {
            Some(before)
                if levels
                    .get(index + 1)
                    .is_some_and(|after| level.is_wrong_between(before, after, period)) =>
            {
                let span = Span::new(before.last.end, level.last.end);
                gaps.push(gap(span, GapReason::Implausible));
            }
            Some(before) if before.value == level.value => before.last = level.last,
            _ => right.push(*level),
        }
    }
    *levels = right;
    gaps
}

/// Creates a gap in the readings of the energy counter.
const fn gap(span: Span, reason: GapReason) -> Gap {
    Gap {
        sensor: sweetspot_device::SensorKind::EnergyCounter,
        span,
        reason,
    }
}
