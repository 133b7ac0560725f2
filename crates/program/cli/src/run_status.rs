//! The state of a command that is measured, in one line.

use sweetspot_quantity::{Joules, Seconds, Watts};

/// The time between two updates of a status line, which keeps recorded terminal sessions small.
pub const REFRESH_PERIOD: Seconds = Seconds::new(0.2);

/// The time, power, energy and items of the current run. `measure`, `run`, `tune` and `sweep` all show these.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunStatus {
    elapsed: Seconds,
    power: Option<Watts>,
    /// The approximate energy so far, from the power at each update.
    energy: Joules,
    items: f64,
}

impl RunStatus {
    /// Takes the present state. The elapsed time starts again at zero with each run.
    pub fn update(&mut self, elapsed: Seconds, power: Option<Watts>, items: f64) {
        if elapsed < self.elapsed {
            *self = Self::default();
        }
        if let Some(power) = power {
            self.energy += power * (elapsed - self.elapsed);
        }
        (self.elapsed, self.power, self.items) = (elapsed, power, items);
    }

    /// The state in one line; items are shown if there are any.
    pub fn text(&self) -> String {
        let Self {
            elapsed,
            power,
            energy,
            items,
        } = *self;
        let power = power.map_or_else(|| "- W".to_owned(), |power| format!("{power:.0}"));
        let items = match items > 0.0 {
            true => format!("  {items:.0} items"),
            false => String::new(),
        };
        format!("{:.1} s  {power}  about {energy:.1}{items}", elapsed.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_that_of_the_current_run() {
        let mut status = RunStatus::default();
        let watts = |power: f64| Some(Watts::new(power));
        status.update(Seconds::new(1.0), watts(100.0), 0.0);
        status.update(Seconds::new(3.0), watts(200.0), 12.0);
        assert_eq!(status.text(), "3.0 s  200 W  about 500.0 J  12 items");
        status.update(Seconds::new(0.5), None, 0.0);
        assert_eq!(status.text(), "0.5 s  - W  about 0.0 J");
    }
}
