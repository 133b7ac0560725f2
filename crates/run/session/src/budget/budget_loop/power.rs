//! The power of a GPU as its sensor shows it, and the time in which it shows nothing.

use sweetspot_control::ReadingGaps;
use sweetspot_control::hold::PowerReading;
use sweetspot_quantity::{Joules, Seconds, Watts};

/// The value of a sensor that stays the same for longer than this while kernels run is no reading: the sensor is stuck.
const STUCK_AFTER: Seconds = Seconds::new(1.0);

/// The power and the energy of a GPU.
#[derive(Debug)]
pub struct GpuPower {
    gaps: ReadingGaps,
    present: Option<Watts>,
    /// When the sensor last gave a new value.
    changed_at: Seconds,
    /// When kernels last ran while the value stayed the same.
    worked_at: Option<Seconds>,
    energy: Joules,
    /// The time that the energy is of.
    covered: Seconds,
}

impl GpuPower {
    /// Describes a GPU whose readings begin at time zero.
    pub fn new() -> Self {
        let mut gaps = ReadingGaps::default();
        gaps.start(Seconds::ZERO);
        Self {
            gaps,
            present: None,
            changed_at: Seconds::ZERO,
            worked_at: None,
            energy: Joules::ZERO,
            covered: Seconds::ZERO,
        }
    }

    /// Whether the sensor has shown the same value for a while, so that it matters whether kernels run.
    pub fn is_unchanged(&self, now: Seconds) -> bool {
        now - self.changed_at > STUCK_AFTER
    }

    /// Notes that kernels run.
    pub fn note_work(&mut self, now: Seconds) {
        self.worked_at = Some(now);
    }

    /// Takes the readings since the last call, each with whether the sensor gave a new value.
    pub fn take(&mut self, now: Seconds, readings: &[(PowerReading, bool)]) {
        let (mut energy, mut time) = (Joules::ZERO, Seconds::ZERO);
        let mut span: Option<(Seconds, Seconds)> = None;
        for (reading, is_new) in readings {
            if *is_new {
                self.changed_at = now;
            }
            let (from, to) = (reading.from.max(Seconds::ZERO), reading.to);
            if to <= from || self.is_stuck(now) {
                continue;
            }
            energy += reading.power * (to - from);
            time += to - from;
            let (first, last) = span.unwrap_or((from, to));
            span = Some((first.min(from), last.max(to)));
        }
        let Some((from, to)) = span else { return };
        let (before, is_gap) = (self.gaps.last_end(), self.gaps.is_silent(from));
        let Some(new) = self.gaps.record(from, to) else {
            return;
        };
        let mean = energy / time;
        // A sensor may show a shorter time than the one between its values.
        let covered = match before {
            Some(before) if !is_gap => to - before,
            _ => new,
        };
        self.energy += mean * covered;
        self.covered += covered;
        self.present = Some(mean);
    }

    /// Whether the sensor repeats its value although kernels run.
    fn is_stuck(&self, now: Seconds) -> bool {
        let works = self.worked_at.is_some_and(|at| now - at < STUCK_AFTER);
        works && self.is_unchanged(now)
    }

    /// The power at present; `None` if there is no reading, or none for a while.
    pub fn present(&self, now: Seconds) -> Option<Watts> {
        self.present.filter(|_| !self.is_silent(now))
    }

    /// Whether there has been no reading for a while.
    pub fn is_silent(&self, now: Seconds) -> bool {
        self.gaps.is_silent(now)
    }

    /// The end of the last reading.
    pub fn last_end(&self) -> Option<Seconds> {
        self.gaps.last_end()
    }

    /// The time without readings.
    pub fn unread(&self, now: Seconds) -> Seconds {
        self.gaps.unread_until(now)
    }

    /// The energy in the time with readings, and that time.
    pub fn energy(&self) -> (Joules, Seconds) {
        (self.energy, self.covered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sensor that shows the mean of 25 ms ten times a second, at 100 W; stuck from one time to another.
    fn read(time: f64, stuck: (f64, f64), works: bool) -> GpuPower {
        let mut power = GpuPower::new();
        for tick in 1..=(time * 10.0) as u32 {
            let now = Seconds::new(f64::from(tick) * 0.1);
            let is_new = !(now.get() > stuck.0 && now.get() <= stuck.1);
            if works && power.is_unchanged(now) {
                power.note_work(now);
            }
            let reading = PowerReading {
                from: now - Seconds::new(0.025),
                to: now,
                power: Watts::new(100.0),
            };
            power.take(now, &[(reading, is_new)]);
        }
        power
    }

    #[test]
    fn energy_covers_the_time_between_readings() {
        let power = read(10.0, (99.0, 99.0), true);
        let (energy, covered) = power.energy();
        assert!((energy.get() - 1000.0).abs() < 10.0, "{energy}");
        assert!((covered.get() - 10.0).abs() < 0.1, "{covered}");
        assert_eq!(power.unread(Seconds::new(10.0)), Seconds::ZERO);
    }

    #[test]
    fn a_stuck_sensor_gives_no_readings_while_kernels_run() {
        let now = Seconds::new(9.0);
        let power = read(9.0, (2.0, 99.0), true);
        assert_eq!(power.present(now), None);
        let unread = power.unread(now).get();
        assert!((5.5..7.1).contains(&unread), "{unread}");
        let (energy, covered) = power.energy();
        assert!(covered.get() < 3.2 && energy.get() < 320.0, "{covered}");
        let idle = read(9.0, (2.0, 99.0), false);
        assert_eq!(idle.present(now), Some(Watts::new(100.0)));
        assert_eq!(idle.unread(now), Seconds::ZERO);
    }

    #[test]
    fn a_gap_is_not_part_of_the_energy() {
        let power = read(20.0, (5.0, 15.0), true);
        let now = Seconds::new(20.0);
        assert_eq!(power.present(now), Some(Watts::new(100.0)));
        let (_, covered) = power.energy();
        let both = covered + power.unread(now);
        assert!((both.get() - 20.0).abs() < 0.2, "{covered} of 20 s");
    }

    #[test]
    fn a_gpu_that_is_never_read_has_no_power() {
        let power = GpuPower::new();
        assert_eq!(power.present(Seconds::new(1.0)), None);
        assert_eq!(power.unread(Seconds::new(10.0)), Seconds::new(10.0));
    }
}
