//! How the holder sees power: late and averaged, or in samples that come together.

use sweetspot_control::hold::HoldEvent;

use super::{BIN, Pump, reading};

impl Pump<'_> {
    pub(super) fn average(&mut self, number: u64) {
        const KEPT: usize = 50;
        const LATE: usize = 5;
        while self.bins.len() > KEPT + LATE {
            self.bins.pop_front();
        }
        if !number.is_multiple_of(5) || self.silent || self.bins.len() < KEPT + LATE {
            return;
        }
        let bins = self.bins.iter().take(KEPT);
        let sum: f64 = bins.map(|(_, power)| power).sum();
        let to = self.bins[KEPT - 1].0;
        let power = self.spike.take().unwrap_or(sum / KEPT as f64);
        self.tell(HoldEvent::PowerRead(reading(
            to - KEPT as f64 * BIN,
            to,
            power,
        )));
    }

    pub(super) fn buffer(&mut self, number: u64) {
        if !number.is_multiple_of(25) {
            return;
        }
        while let Some((to, power)) = self.bins.pop_front() {
            if !self.silent {
                let power = self.spike.take().unwrap_or(power);
                self.tell(HoldEvent::PowerRead(reading(to - BIN, to, power)));
            }
        }
    }
}
