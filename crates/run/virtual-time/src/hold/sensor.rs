//! The power sensors of a simulated run of `hold`: one that averages and lags, one that buffers, and one that is fast.

use sweetspot_control::hold::HoldEvent;

use super::{HoldSimulation, INSTANT_WINDOW, READING_PERIOD, power_reading};

impl HoldSimulation<'_> {
    /// Reads an averaging sensor, which shows the mean power of a whole second, 0.1 s late.
    pub(super) fn read_average(&mut self, number: u64) {
        /// The number of power readings in one second.
        const AVERAGED_READINGS: usize = 50;
        /// The number of power readings by which the sensor is late.
        const DELAY_READINGS: usize = 5;
        while self.readings.len() > AVERAGED_READINGS + DELAY_READINGS {
            self.readings.pop_front();
        }
        if !number.is_multiple_of(5)
            || self.silent
            || self.readings.len() < AVERAGED_READINGS + DELAY_READINGS
        {
            return;
        }
        let readings = self.readings.iter().take(AVERAGED_READINGS);
        let sum: f64 = readings.map(|(_, power)| power).sum();
        let to = self.readings[AVERAGED_READINGS - 1].0;
        let power = self.spike.take().unwrap_or(sum / AVERAGED_READINGS as f64);
        self.send(HoldEvent::PowerRead(power_reading(
            to - AVERAGED_READINGS as f64 * READING_PERIOD,
            to,
            power,
        )));
    }

    /// Reads a sensor that shows the mean power of the last 10 ms at once.
    pub(super) fn read_instant(&mut self, to: f64, power: f64) {
        self.readings.clear();
        if self.silent {
            return;
        }
        let power = self.spike.take().unwrap_or(power);
        self.send(HoldEvent::PowerRead(power_reading(
            to - INSTANT_WINDOW,
            to,
            power,
        )));
    }

    /// Reads a buffering sensor, which delivers all readings of the last half second at once.
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
