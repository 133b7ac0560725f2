//! The power sensors of a simulated hold: one that averages and lags, and one that buffers.

use sweetspot_control::hold::HoldEvent;

use super::{HoldSimulation, READING_PERIOD, power_reading};

impl HoldSimulation<'_> {
    /// An averaging sensor: the mean of the last second, a tenth of a second late.
    pub(super) fn read_average(&mut self, number: u64) {
        const AVERAGED: usize = 50;
        const DELAY: usize = 5;
        while self.readings.len() > AVERAGED + DELAY {
            self.readings.pop_front();
        }
        if !number.is_multiple_of(5) || self.silent || self.readings.len() < AVERAGED + DELAY {
            return;
        }
        let readings = self.readings.iter().take(AVERAGED);
        let sum: f64 = readings.map(|(_, power)| power).sum();
        let to = self.readings[AVERAGED - 1].0;
        let power = self.spike.take().unwrap_or(sum / AVERAGED as f64);
        self.send(HoldEvent::PowerRead(power_reading(
            to - AVERAGED as f64 * READING_PERIOD,
            to,
            power,
        )));
    }

    /// A buffering sensor: every reading of the last half second at once.
    pub(super) fn read_buffer(&mut self, number: u64) {
        if !number.is_multiple_of(25) {
            return;
        }
        while let Some((to, power)) = self.readings.pop_front() {
            if !self.silent {
                let power = self.spike.take().unwrap_or(power);
                self.send(HoldEvent::PowerRead(power_reading(
                    to - READING_PERIOD,
                    to,
                    power,
                )));
            }
        }
    }
}
