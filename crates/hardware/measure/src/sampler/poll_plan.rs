//! Decides when to poll a power sensor: just before and just after its updates.

use sweetspot_device::{Moment, SensorKind};
use sweetspot_quantity::{Seconds, Watts};

use crate::math::{PolledPower, Span, UpdateSchedule, update_period};

/// The interval between polls while the sensor's update times are learnt.
const LEARNING_INTERVAL: Seconds = Seconds::new(0.002);
/// The time for which the sensor's update times are learnt.
const LEARNING_TIME: Seconds = Seconds::new(0.6);
/// Polls come this long before and after each expected update.
const UPDATE_MARGIN: Seconds = Seconds::new(0.003);
/// If the polls follow the sensor's updates, an unchanged value counts as a new one after this many update
/// periods.
const REPEAT_PERIODS_IN_STEP: f64 = 0.95;
/// If the sensor's update times are unknown, an unchanged value counts as a new one only after this many
/// update periods, because an update may be late.
const REPEAT_PERIODS: f64 = 1.1;
/// The number of recent updates to which the sensor's schedule is fitted.
const FITTED_UPDATES: usize = 32;
/// After this many polls in a row without the expected update, the sensor's update times are learnt again.
const MAX_MISSED: u32 = 12;

/// How the times of polls are chosen.
#[derive(Debug)]
enum PollMode {
    Fixed(Seconds),
    Learning { until: Moment },
    InStep(UpdateSchedule),
}

/// Decides when a power sensor is polled next.
#[derive(Debug)]
pub(crate) struct PollPlan {
    sensor: SensorKind,
    period: Seconds,
    mode: PollMode,
    due: Moment,
    updates: Vec<Span>,
    last: Option<(Moment, Watts)>,
    last_new_value: Option<Moment>,
    missed: u32,
}

impl PollPlan {
    /// Creates a plan that polls at a fixed interval, `every`. `period` is the sensor's update period.
    pub fn fixed(sensor: SensorKind, every: Seconds, period: Seconds, now: Moment) -> Self {
        Self::new(sensor, period, PollMode::Fixed(every), now)
    }

    /// Creates a plan that polls just before and just after each update of the sensor, after it has learnt
    /// their times.
    pub fn in_step(sensor: SensorKind, period: Seconds, now: Moment) -> Self {
        let until = now + LEARNING_TIME;
        Self::new(sensor, period, PollMode::Learning { until }, now)
    }

    /// Creates a plan whose first poll is due at once.
    fn new(sensor: SensorKind, period: Seconds, mode: PollMode, now: Moment) -> Self {
        Self {
            sensor,
            period,
            mode,
            due: now,
            updates: Vec::new(),
            last: None,
            last_new_value: None,
            missed: 0,
        }
    }

    /// The power sensor that is polled.
    pub fn sensor(&self) -> SensorKind {
        self.sensor
    }

    /// When the next poll is due.
    pub fn due(&self) -> Moment {
        self.due
    }

    /// Records a failed poll, and schedules the next one for `again`.
    pub fn failed(&mut self, again: Moment) {
        self.due = again;
    }

    /// Records the result of a poll, and returns the value if it counts as a new one.
    pub fn read(&mut self, at: Moment, power: Watts) -> Option<PolledPower> {
        let before = self.last.replace((at, power));
        let is_update = before.is_some_and(|(_, shown)| shown != power);
        let since = before.map_or(at, |(moment, _)| moment);
        if is_update {
            if self.updates.len() == FITTED_UPDATES {
                self.updates.remove(0);
            }
            self.updates.push(Span::new(since, at));
        }
        self.schedule_next(at, is_update);
        let repeat = match self.mode {
            PollMode::InStep(_) => REPEAT_PERIODS_IN_STEP,
            _ => REPEAT_PERIODS,
        };
        let is_due = self
            .last_new_value
            .is_none_or(|last| at - last >= self.period * repeat);
        if !(is_update || is_due) {
            return None;
        }
        self.last_new_value = Some(at);
        let appeared = Span::new(since, at);
        Some(PolledPower { appeared, power })
    }

    /// Schedules the next poll after one at `at`; `is_update` says whether that poll showed a new value.
    fn schedule_next(&mut self, at: Moment, is_update: bool) {
        match &self.mode {
            PollMode::Fixed(every) => self.due = at + *every,
            PollMode::Learning { until } if at < *until => self.due = at + LEARNING_INTERVAL,
            PollMode::Learning { .. } => {
                self.period = update_period(&self.updates).unwrap_or(self.period);
                match UpdateSchedule::fit(&self.updates, self.period) {
                    Some(schedule) => self.poll_around_update(schedule, at),
                    // The value does not change, or not regularly: poll four times in a period.
                    None => self.mode = PollMode::Fixed(self.period / 4.0),
                }
            }
            PollMode::InStep(schedule) => {
                let schedule =
                    UpdateSchedule::fit(&self.updates, schedule.period()).unwrap_or(*schedule);
                self.missed = if is_update { 0 } else { self.missed + 1 };
                if self.missed > MAX_MISSED {
                    self.missed = 0;
                    self.mode = PollMode::Learning {
                        until: at + LEARNING_TIME,
                    };
                    self.due = at + LEARNING_INTERVAL;
                } else {
                    self.poll_around_update(schedule, at);
                }
            }
        }
    }

    /// Schedules the next poll, before or after the next update, whichever comes first.
    fn poll_around_update(&mut self, schedule: UpdateSchedule, at: Moment) {
        let margin = UPDATE_MARGIN.min(schedule.period() / 5.0);
        let next = schedule.next_after(at + -margin);
        self.due = [next + -margin, next + margin]
            .into_iter()
            .find(|due| *due > at)
            .unwrap_or_else(|| schedule.next_after(at) + margin);
        self.mode = PollMode::InStep(schedule);
    }
}
